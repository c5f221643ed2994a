"""Secure and private aggregation through whole algorithms."""

import functools

import numpy as np
import pytest
import tensorflow_federated as tff

from tests.algorithms import harness
from tests.algorithms.divergence_aware import follower
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import l_dawa
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.federated import optimizers
from tff_ssl.settings import learning
from tff_ssl.settings import methods

# Above n_k times every update of these tests; the quantum is 2 * 4096 / 2**32 = 2e-6.
_BOUND = 4096.0
_STALE = (methods.Dcco(stale_statistics=True), learning.StepClients(), harness.SEED)
_FRESH = (methods.Dcco(), learning.StepClients(), harness.SEED)
# `dcco` has two exchanges; `make test-long` tests the others.
_NAMES = ('dcco', 'stale', 'fedavg', 'l_dawa')
# FedAvg of a few weights stays where the sums are private.
_PRIVATE = 'few weights'


def _secure():
  return aggregations.secure(value_bound=_BOUND, max_examples_per_client=64)


def _build(name, aggregation):
  """Returns a process by name: what is under test under any aggregation."""
  fedavg_config = fedavg.Training(seed=harness.SEED)
  method, *arguments = {
    'fedavg': (fedavg.fedavg, fedavg_config),
    'l_dawa': (l_dawa.l_dawa, fedavg_config),
    'stale': (dcco.dcco, *_STALE),
    _PRIVATE: (fedavg.fedavg, fedavg_config),
  }.get(name, (dcco.dcco, *_FRESH))
  objective = follower.Follower() if name == _PRIVATE else harness.cco()
  algorithm = method(objective, optimizers.build_optimizer(harness.SGD), *arguments)
  return harness.process(algorithm, aggregation=aggregation)


@functools.cache
def _plain(name):
  return _build(name, None)


@functools.cache
def _secured(name):
  return _build(name, _secure())


def _cohorts():
  clients = harness.split([1, 2, 5, 4])
  return [harness.cohort(clients)] * 2


@pytest.mark.long_for('stale', 'fedavg', 'l_dawa')
@pytest.mark.parametrize('name', _NAMES)
def test_nothing_leaves_a_client_but_through_secure_sums(name):
  tff.test.assert_not_contains_unsecure_aggregation(_secured(name).next)
  tff.test.assert_contains_secure_aggregation(_secured(name).next)


def test_the_plain_process_is_not():
  tff.test.assert_contains_unsecure_aggregation(_plain('dcco').next)


def test_secure_sums_of_nothing_change_nothing(tff_context):
  process = _secured('dcco')
  states, metrics = harness.rounds_of(process, [harness.cohort([[], []])])
  before, after = (harness.weights(process, s) for s in states)
  np.testing.assert_array_equal(before, after)
  assert metrics[0]['client_work']['empty_clients'] == 2


@functools.cache
def _private(name, noise_multiplier, update_clip, statistics_clip):
  return _build(
    name,
    aggregations.private(
      noise_multiplier, update_clip, statistics_clip, metrics_clip=1e4
    ),
  )


@pytest.mark.long_for('dcco', 'fedavg')
@pytest.mark.parametrize('name', [_PRIVATE, 'dcco', 'fedavg'])
def test_private_without_clipping_or_noise_to_speak_of_is_plain(tff_context, name):
  plain, private = _plain(name), _private(name, 1e-12, 1e4, 1e4)
  states, metrics = harness.rounds_of(plain, _cohorts())
  private_states, private_metrics = harness.rounds_of(private, _cohorts())
  assert (
    harness.relative(
      harness.weights(private, private_states[2]), harness.weights(plain, states[2])
    )
    < 1e-5
  )
  for a, b in zip(private_metrics, metrics, strict=True):
    # Four clients say in which of 32 intervals their updates are, without noise alone.
    assert b['client_work'].pop('outlying_clients') == 0
    b['client_work']['bytes_up'] -= 4 * 32 * 4
    for metric, value in b['client_work'].items():
      assert a['client_work'][metric] == pytest.approx(value, rel=1e-4), metric


def test_private_clips_and_noises_the_update(tff_context):
  rate = harness.SGD.learning_rate
  cohort = harness.cohort(harness.split([1, 2, 5, 4]))
  quiet = _private(_PRIVATE, 1e-12, 0.25, 1e4)
  states, _ = harness.rounds_of(quiet, [cohort])
  step = np.subtract(*(harness.weights(quiet, s) for s in states)) / rate
  # Four clients, each clipped to 1/4, over 12 examples.
  assert 0.5 * 0.25 * 4 / 12 < np.linalg.norm(step) <= 0.25 * 4 / 12 * 1.001
  loud = _private(_PRIVATE, 10.0, 1.0, 1e-3)
  start = loud.initialize()
  ends = [harness.weights(loud, loud.next(start, cohort).state) for _ in range(30)]
  steps = (harness.weights(loud, start) - ends) / rate
  # The noise drowns the rest: a standard deviation of 10 clips over 12 examples. Of 180
  # numbers; within six standard errors.
  assert steps.std() == pytest.approx(10 / 12, rel=0.3)


def test_private_with_no_examples_changes_nothing(tff_context):
  process = _private(_PRIVATE, 10.0, 1.0, 1e-3)
  states, _ = harness.rounds_of(process, [harness.cohort([[], []])])
  np.testing.assert_array_equal(*(harness.weights(process, s) for s in states))
