"""Tests of LeJEPA's loss against NumPy float64, closed forms and its bound."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.losses import lejepa
from tff_ssl.losses import statistics_loss

_SEED = tf.constant([3, 5])
_LOSS = lejepa.LejepaLoss(weight=0.7, directions=6, knots=5, t_max=2.5).with_seed(_SEED)


def _encodings(n, d=4, seed=0):
  generator = np.random.default_rng(seed)
  f = generator.normal(size=(n, d))
  return f, f + 0.3 * generator.normal(size=(n, d))


def _directions(d, loss=_LOSS):
  return loss.directions_in(d).numpy().astype(np.float64)


def _epps_pulley(x):
  """Epps and Pulley's statistic of a sample over its size, in closed form.

  Of exp(-t^2/2) the integrals over t of exp(-t^2/2), exp(-t^2/2) |phi(t)|^2 and
  exp(-t^2) cos(t x).
  """
  pairs = np.exp(-((x[:, np.newaxis] - x) ** 2) / 2).mean()
  single = np.exp(-(x**2) / 4).mean()
  return (
    math.sqrt(2 * math.pi) * pairs
    - 2 * math.sqrt(math.pi) * single
    + math.sqrt(2 * math.pi / 3)
  )


@pytest.mark.parametrize(
  ('knots', 't_max', 'tolerance'), [(40, 9.0, 1e-12), (8, 3.0, 0.01)]
)
def test_the_distance_is_that_of_epps_and_pulley(knots, t_max, tolerance):
  loss = lejepa.LejepaLoss(directions=3, knots=knots, t_max=t_max).with_seed(_SEED)
  for scale in (0.1, 1.0, 2.0):
    f, g = (scale * x for x in _encodings(9))
    got = loss.epps_pulley(loss.statistics(tf.constant(f), tf.constant(g)))
    along = np.concatenate([f, g]) @ _directions(4, loss)
    expected = [_epps_pulley(x) for x in along.T]
    np.testing.assert_allclose(got, expected, atol=tolerance)


@pytest.mark.parametrize(('weight', 'grows'), [(0.29, False), (0.33, True)])
def test_a_point_is_left_above_the_least_weight(weight, grows):
  """Of encodings of variance v that have nothing in common the invariance is v / 2."""
  loss = lejepa.LejepaLoss(weight, directions=1, knots=60, t_max=9.0)
  t = np.linspace(0, 9.0, 61)[1:]

  def value(variance):
    cos = np.exp(-variance * t**2 / 2)
    return float(
      loss.loss(
        {
          'cos': tf.constant([cos]),
          'sin': tf.constant([0 * cos]),
          'invariance': tf.constant(variance / 2, tf.float64),
        }
      )
    )

  assert (value(1e-4) < value(0.0)) == grows


def test_directions_are_uniform_and_those_of_the_seed():
  loss = lejepa.LejepaLoss(directions=4000)
  a = _directions(3, loss.with_seed(_SEED))
  np.testing.assert_allclose(np.linalg.norm(a, axis=0), 1.0, rtol=1e-6)
  # On a sphere in three dimensions a coordinate is uniform in [-1, 1].
  for axis in (*np.eye(3), np.ones(3) / math.sqrt(3)):
    ranks = np.sort(axis @ a)
    assert np.abs(ranks - np.linspace(-1, 1, 4000)).max() < 0.06
  # Three at a time are orthogonal, and each three are others.
  bases = a[:, :3999].T.reshape(-1, 3, 3)
  np.testing.assert_allclose(
    bases @ bases.swapaxes(1, 2), np.tile(np.eye(3), (1333, 1, 1)), atol=1e-5
  )
  assert np.abs(bases[0] - bases[1]).max() > 0.1
  few = _directions(50, lejepa.LejepaLoss(directions=20).with_seed(_SEED))
  np.testing.assert_allclose(few.T @ few, np.eye(20), atol=1e-5)
  np.testing.assert_array_equal(a, _directions(3, loss.with_seed(_SEED)))
  assert np.abs(a - _directions(3, loss.with_seed(_SEED + 1))).max() > 0.1
  with pytest.raises(ValueError, match='seed of LejepaLoss is None; it must be that'):
    loss.directions_in(3)


@pytest.mark.parametrize('n', [1, 6])
def test_the_worst_encodings_are_near_the_bound(n):
  """Far apart, but by whole periods of every direction that there is."""
  loss = lejepa.LejepaLoss(directions=1, knots=5, t_max=2.5).with_seed(_SEED)
  assert _LOSS.share_bound(None) == _LOSS.share_bound(0.1) == math.sqrt(6 * 5 + 1)
  a = _directions(4, loss)[:, 0]
  f = np.tile(np.arange(4.0), (n, 1))
  # The knots are multiples of 1/2.
  g = f + 4 * math.pi * a / (a @ a)
  sent = loss.statistics(tf.constant(f), tf.constant(g))
  total = n * np.sqrt(sum(np.sum(np.square(x)) for x in sent.values()))
  assert total == pytest.approx(n * loss.share_bound(None), rel=1e-6)
  # Of equal views the invariance alone is missing.
  sent = loss.statistics(tf.constant(f), tf.constant(f))
  total = n * np.sqrt(sum(np.sum(np.square(x)) for x in sent.values()))
  assert total == pytest.approx(n * math.sqrt(5), rel=1e-12)


def test_the_invariance_has_a_limit_and_its_gradient_none():
  f, g = tf.constant([[6.0, 0.0], [0.2, 0.0]]), tf.zeros([2, 2])
  with tf.GradientTape() as tape:
    tape.watch(f)
    invariance = _LOSS.statistics(f, g)['invariance']
  # (6^2 / 4 + 0) / 2 = 4.5 and (0.2^2 / 4 + 0) / 2 = 0.005.
  np.testing.assert_allclose(invariance, (1.0 + 0.005) / 2, rtol=1e-6)
  expected = np.array([[6.0, 0.0], [0.2, 0.0]]) / 8
  np.testing.assert_allclose(tape.gradient(invariance, f), expected, rtol=1e-6)


def test_it_ignores_no_shift_and_has_statistics_around_0_only():
  f, g = (tf.constant(x) for x in _encodings(4))
  shifted = (_LOSS.loss(_LOSS.statistics(f + k, g + k)) for k in (0.0, 1.0))
  assert float(next(shifted)) != pytest.approx(float(next(shifted)), rel=1e-2)
  assert _LOSS.ignores_shift == statistics_loss.NO_SHIFT
  sent = _LOSS.statistics(f, g)
  assert _LOSS.moved(sent, {statistics_loss.SEED: tf.zeros([2], tf.int32)}) == sent
