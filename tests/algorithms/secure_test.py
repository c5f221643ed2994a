"""Secure and private aggregation through whole algorithms."""

import functools

import numpy as np
import pytest
import tensorflow_federated as tff

from tests import tiny
from tests.algorithms import harness
from tests.algorithms import shaken
from tests.algorithms import table
from tests.algorithms.divergence_aware import follower
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import optimizers

# Above n_k times every value that a client sends. Gradients of correlations are longer:
# there it is the default of secure sums; FedEMA's metrics have its scaler; and
# MAML's steps are above 64 with the last digits of a processor without AVX-512.
_BOUND, _BOUNDS = (
  64.0,
  {
    'dcco': 4096.0,
    'dcco_stale': 4096.0,
    'fedavg_cco': 4096.0,
    'fedema': 256.0,
    'maml_ssfl': 256.0,
    'ssd': 256.0,
  },
)
# Above every n_k.
_EXAMPLES = 8
_SIZES = [2, 2, 1, 4]
_DRAWS = 6
# The row that `make test` has.
_STAYS = 'fedavg_nt_xent'
# `fedavg_nt_xent` stays: a mean of updates.
_LONG = (
  *table.LONG,
  'dcco',
  'fedavg_batch_norm',
  'fedca',
  'fedema',
  'fedsup',
)
_FEDERATED = [name for name, row in table.TABLE.items() if row.federated]
# Of what is computed of two numbers of float32, to each of which the last digit is due.
_DIGITS = 2.0**-22


def _bound(name):
  return _BOUNDS.get(name, _BOUND)


def _build(name, aggregation):
  return table.process(name, aggregation=aggregation, optimizer=harness.SGD)


def _rounds(process, draw=None):
  """Returns weights and metrics after each of two rounds, and how many were clipped."""
  state, found, clipped = process.initialize(), {}, 0
  cohort = harness.cohort(harness.split(_SIZES), tiny.floats())
  for round in range(2):
    if draw is not None:
      state = shaken.drawn(state, draw and 10 * draw + round)
    output = process.next(state, cohort)
    state = output.state
    weights = process.get_model_weights(state)
    found[round, 'weights'] = harness.flat([*weights])
    clipped += _clipped(output.metrics)
    for group, metrics in output.metrics.items():
      if group != 'aggregator':
        found.update(
          ((round, f'{group}/{metric}'), np.float64(value))
          for metric, value in metrics.items()
        )
  return found, clipped


@functools.cache
def _shaken(name):
  """Returns the plain numbers, and how far those of each draw are from them."""
  process = _build(name, shaken.aggregation(_bound(name), _EXAMPLES))
  plain, _ = _rounds(process, 0)
  apart = {key: [] for key in plain}
  for draw in range(1, _DRAWS + 1):
    moved, _ = _rounds(process, draw)
    for key, value in plain.items():
      apart[key].append(np.abs(moved[key] - value))
  return plain, apart


def _excess(name, secure):
  """Returns by how many times what is allowed each kind of number is off."""
  plain, apart = _shaken(name)
  assert secure.keys() == plain.keys()
  excess = {}
  for key, value in plain.items():
    # Of a sum of errors with random signs the root of the mean square is one deviation.
    deviation = np.sqrt(np.mean(np.square(apart[key]), axis=0))
    allowed = 5 * deviation + _DIGITS * np.abs(value)
    off = np.abs(secure[key] - value)
    assert np.all(np.isnan(secure[key]) == np.isnan(value)), key
    ratio = np.divide(
      off, allowed, out=np.where(off > 0, np.inf, 0.0), where=allowed > 0
    )
    excess[key] = float(np.nanmax(ratio, initial=0.0))
  return excess


def _clipped(metrics):
  """Returns how many clients were clipped, of all sums of a round."""
  counts = [
    int(value)
    for path, value in _leaves(metrics.get('aggregator', {}))
    if path.endswith('clipped_count')
  ]
  return sum(counts)


def _leaves(structure, path=''):
  if not hasattr(structure, 'items'):
    return [(path, structure)]
  return [
    leaf for key, value in structure.items() for leaf in _leaves(value, f'{path}/{key}')
  ]


@pytest.mark.long_for(*_LONG)
@pytest.mark.parametrize('name', _FEDERATED)
def test_secure_rounds_differ_by_the_quantisation_alone(tff_context, name):
  process = _build(name, aggregations.secure(_bound(name), _EXAMPLES))
  secure, clipped = _rounds(process)
  assert clipped == 0
  excess = _excess(name, secure)
  assert max(excess.values()) <= 1, {k: v for k, v in excess.items() if v > 1}
  # What is allowed is little: far below what a round changes.
  plain, apart = _shaken(name)
  step = np.abs(plain[1, 'weights'] - plain[0, 'weights']).max()
  deviation = np.sqrt(np.mean(np.square(apart[1, 'weights']), axis=0)).max()
  assert deviation < 1e-2 * step
  print(
    f'{name}: off by {max(excess.values()):.2f} of what is allowed; of weights one '
    f'deviation is {deviation / step:.0e} of a step'
  )


def test_zero_perturbation_equals_the_plain_round(tff_context):
  plain, _ = _rounds(_build(_STAYS, None))
  unmoved, apart = _shaken(_STAYS)
  assert unmoved.keys() == plain.keys()
  for key, value in plain.items():
    np.testing.assert_array_equal(unmoved[key], value)
  # Draws move weights, each draw others, if only by float32's last digits.
  assert np.any(np.ptp(apart[1, 'weights'], axis=0))


@pytest.mark.long
def test_coarser_sums_than_the_bounds_say_are_found(tff_context):
  coarse = aggregations.secure(2**11 * _BOUND, _EXAMPLES)
  excess = _excess(_STAYS, _rounds(_build(_STAYS, coarse))[0])
  assert excess[0, 'weights'] > 5 and excess[1, 'weights'] > 5


def _few_weights(aggregation=None):
  optimizer = optimizers.build_optimizer(harness.SGD)
  algorithm = fedavg.fedavg(follower.Follower(), optimizer)
  return harness.process(algorithm, aggregation=aggregation)


def test_the_plain_process_is_not_secure():
  """What leaves a client through secure sums alone: forms_test, for all algorithms."""
  tff.test.assert_contains_unsecure_aggregation(_few_weights().next)


@pytest.mark.parametrize(
  'aggregation',
  [aggregations.secure(4096.0, 64), aggregations.private(10.0, 1.0, 1e-3)],
  ids=['secure', 'private'],
)
def test_sums_of_nothing_change_nothing(tff_context, aggregation):
  process = _few_weights(aggregation)
  states, _ = harness.rounds_of(process, [harness.cohort([[], []])])
  np.testing.assert_array_equal(*(harness.weights(process, s) for s in states))
