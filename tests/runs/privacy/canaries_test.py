"""Canaries find what is broken, and no fault where there is none."""

import dataclasses
import math

import numpy as np
import pytest

from tests.runs.privacy import canaries
from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import expected_counts
from tff_ssl.runs.privacy import loss_distributions

_Z, _CLIP, _DELTA = 2.0, 0.3, 1e-5
# Of 960 canaries estimates of epsilon have a deviation of a tenth.
_FEW = canaries.Canaries(clients=60, rounds=16, dimension=2048, absent=1000)


def _normal(shift, count, seed):
  return np.random.default_rng(seed).normal(shift, 1, count)


@pytest.mark.long_for('0.0', '2.0')
@pytest.mark.parametrize('shift', [0.0, 0.5, 2.0, 4.0])
def test_the_bound_is_below_what_normal_scores_have(shift):
  delta, above = 1e-3, 0
  for seed in range(20):
    found = canaries.lower_bound(
      _normal(shift, 400, [seed, 1]), _normal(0, 4000, [seed, 2]), delta
    )
    above += found > loss_distributions.gaussian_epsilon(shift, delta)
  # Of 20 bounds at 95 % one may be wrong; more than three in one of 6000 such tests.
  assert above <= 4
  if shift == 4:
    assert found > 2


def test_scores_that_are_told_apart_have_a_large_bound():
  found = canaries.lower_bound(_normal(50, 400, 1), _normal(0, 4000, 2), 1e-5)
  # No false alarm in 2000: at most 0.0018 at 97.5 %; all of 200: at least 0.98.
  assert found == pytest.approx(math.log(0.9817 / 0.00184), abs=0.02)


# Divided by the clients, or by what a round would have in the mean; and a norm that the
# canaries, a thousand times longer, raise from round to round.
@pytest.mark.long_for('fixed', 'expected')
@pytest.mark.parametrize(
  ('clip', 'expected'),
  [
    (_CLIP, None),
    (_CLIP, expected_counts.Expected(10, 10.0)),
    (adaptive_clipping.AdaptiveClip(0.5, _FEW.clients, initial=_CLIP), None),
  ],
  ids=['fixed', 'expected', 'adaptive'],
)
def test_a_sound_clip_passes(tff_context, clip, expected):
  sound = aggregations.private(_Z, clip, 1.0, expected=expected)
  found = canaries.audit(sound, _Z, _CLIP, _DELTA, _FEW)
  assert not found.is_broken
  assert found.claimed == loss_distributions.gaussian_epsilon(0.5, _DELTA)
  # The scores see nearly all there is to see.
  assert found.estimate == pytest.approx(found.claimed, rel=0.4)


def test_a_round_that_is_released_again_shows_more_and_claims_more(tff_context):
  sound = aggregations.private(_Z, _CLIP, 1.0)
  again = dataclasses.replace(_FEW, releases=4)
  found = canaries.audit(sound, _Z, _CLIP, _DELTA, again)
  # Four releases with noise z are one with half of it.
  assert found.claimed == loss_distributions.gaussian_epsilon(2 / _Z, _DELTA)
  assert not found.is_broken
  assert found.estimate == pytest.approx(found.claimed, rel=0.4)
  assert found.estimate > 1.5 * loss_distributions.gaussian_epsilon(1 / _Z, _DELTA)


def test_a_clip_a_hundred_times_too_large_is_caught(tff_context):
  # With the same noise; of clients apart.
  broken = aggregations.private(_Z / 100, 100 * _CLIP, 1.0)
  apart = dataclasses.replace(_FEW, num_packs=0, rounds=2)
  found = canaries.audit(broken, _Z, _CLIP, _DELTA, apart)
  assert found.is_broken
  assert found.lower_bound > 2 * found.claimed
