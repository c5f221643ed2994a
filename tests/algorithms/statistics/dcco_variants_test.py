"""DCCO with statistics of the round before, and of encodings in a ball."""

import functools

import numpy as np
import pytest

from tests.algorithms import harness
from tests.algorithms.statistics import dcco_reference
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import statistics
from tff_ssl.settings import learning
from tff_ssl.settings import methods

_CONFIG = (methods.Dcco(stale_statistics=True), learning.StepClients(), harness.SEED)
_RATE = harness.SGD.learning_rate
_SPLIT = harness.split([1, 2, 5, 4])
_EMPTY = [[], []]


def _run(*cohorts, loss_name='cco'):
  process = harness.build_dcco(loss_name, config=_CONFIG)
  states, metrics = harness.rounds_of(process, [harness.cohort(c) for c in cohorts])
  return [harness.weights(process, s) for s in states], metrics


def test_the_first_round_only_collects(tff_context):
  weights, metrics = _run(_SPLIT)
  np.testing.assert_array_equal(weights[1], weights[0])
  work = metrics[0]['client_work']
  assert work['examples'] == 12
  assert work['nonfinite_clients'] == 0
  loss = harness.cco().loss_of(
    dcco_reference.statistics_of_all(weights[0], harness.round_seed(0))
  )
  assert work['loss'] == pytest.approx(float(loss), rel=1e-4)


def test_each_round_trains_on_the_statistics_of_the_one_before(tff_context):
  weights, _ = _run(_SPLIT, _SPLIT, harness.split([6, 6]))
  update = dcco_reference.mean_update(
    _CONFIG[1], weights[1], _SPLIT, harness.round_seed(1), harness.round_seed(0)
  )
  assert harness.relative(weights[1] - weights[2], _RATE * update) < 1e-4
  # In the third round they are those of other weights, too.
  update = dcco_reference.mean_update(
    _CONFIG[1],
    weights[2],
    harness.split([6, 6]),
    harness.round_seed(2),
    harness.round_seed(1),
    statistics_vector=weights[1],
  )
  assert harness.relative(weights[2] - weights[3], _RATE * update) < 1e-3
  fresh = dcco_reference.mean_update(
    _CONFIG[1], weights[1], _SPLIT, harness.round_seed(1), harness.round_seed(1)
  )
  assert harness.relative(weights[1] - weights[2], _RATE * fresh) > 1e-2


@pytest.mark.long
def test_directions_are_those_of_the_statistics(tff_context):
  weights, _ = _run(_SPLIT, _SPLIT, loss_name='lejepa')
  np.testing.assert_array_equal(weights[1], weights[0])
  before, fresh = (
    dcco_reference.mean_update(
      _CONFIG[1], weights[1], _SPLIT, harness.round_seed(1), seed, loss_name='lejepa'
    )
    for seed in (harness.round_seed(0), harness.round_seed(1))
  )
  # A step of 1e-3 is rounded with the weights.
  assert harness.relative(weights[1] - weights[2], _RATE * before) < 1e-3
  assert harness.relative(weights[1] - weights[2], _RATE * fresh) > 1e-2


def test_a_round_without_examples_keeps_the_statistics(tff_context):
  weights, metrics = _run(_SPLIT, _EMPTY, _SPLIT)
  np.testing.assert_array_equal(weights[2], weights[0])
  assert metrics[1]['client_work']['empty_clients'] == 2
  update = dcco_reference.mean_update(
    _CONFIG[1], weights[2], _SPLIT, harness.round_seed(2), harness.round_seed(0)
  )
  assert harness.relative(weights[2] - weights[3], _RATE * update) < 1e-4


def test_statistics_are_waited_for(tff_context):
  weights, _ = _run(_EMPTY, _SPLIT, _SPLIT)
  np.testing.assert_array_equal(weights[2], weights[0])
  assert (weights[3] != weights[2]).any()


# Of 24 encodings in the first round most are farther than the first from the
# reference, and none as far as the second.
_NORM, _FAR = 0.25, 1e3
_SIZES = [1, 2, 5, 4]
_STEP = learning.SgdServer(0.1)


def _objective(norm, loss_name='cco'):
  return statistics.StatisticsObjective(
    harness.model(), harness.STATISTICS_LOSSES[loss_name], encoding_norm=norm
  )


# To trace a process takes seconds.
@functools.cache
def _bounded_process(norm):
  optimizer = optimizers.build_optimizer(_STEP)
  algorithm = dcco.dcco(_objective(norm), optimizer, seed=harness.SEED)
  return processes.build(algorithm, harness.ELEMENT)


def _step(process, rounds=1):
  cohorts = [harness.cohort(harness.split(_SIZES))] * rounds
  states, metrics = harness.rounds_of(process, cohorts)
  first, last = (harness.weights(process, state) for state in (states[0], states[-1]))
  return last - first, metrics[-1]['client_work']


@pytest.mark.long
def test_a_norm_that_no_encoding_exceeds_changes_nothing(tff_context):
  moved, metrics = _step(_bounded_process(_FAR), rounds=2)
  expected, expected_metrics = _step(_bounded_process(None), rounds=2)
  np.testing.assert_array_equal(moved, expected)
  assert metrics == expected_metrics
  bounded, _ = _step(_bounded_process(_NORM))
  unbounded, _ = _step(_bounded_process(None))
  assert harness.relative(bounded, unbounded) > 0.05


def test_a_round_is_a_centralized_step(tff_context):
  moved, metrics = _step(_bounded_process(_NORM))
  union = centralized.Centralized(
    _objective(_NORM), optimizers.build_optimizer(_STEP), harness.SEED
  )
  expected, expected_metrics = _step(union)
  assert harness.relative(moved, expected) < 1e-4
  assert metrics['loss'] == pytest.approx(expected_metrics['loss'], rel=1e-4)


@pytest.mark.parametrize('loss_name', ['cco', 'vicreg'])
def test_the_loss_is_that_of_encodings_in_the_ball(loss_name):
  objective, free = _objective(_NORM, loss_name), _objective(None, loss_name)
  params, seed = objective.init((1, 2)), harness.round_seed(3)
  examples = harness.tensors(harness.arrays())
  centre = {name: x.numpy() for name, x in free.reference(params, seed).items()}
  inside = {}
  for name, x in free.encode(params, examples, seed).items():
    away = x.numpy().astype(np.float64) - centre[name]
    length = np.linalg.norm(away, axis=1, keepdims=True)
    inside[name] = centre[name] + away * np.minimum(1, _NORM / length)
  for name, x in objective.encode(params, examples, seed).items():
    np.testing.assert_allclose(x, inside[name], atol=1e-6)
  reference = objective.reference(params, seed)
  sent = objective.statistics(params, examples, seed, reference)
  loss, _ = objective.loss(params, examples, seed)
  assert float(objective.loss_of(sent)) == pytest.approx(float(loss), rel=1e-4)
  flat = np.linalg.norm(harness.flat(sent))
  assert flat <= objective.share_bound
  assert free.share_bound is None


def test_statistics_of_the_round_before_are_around_another_reference():
  objective = _objective(_NORM)
  with pytest.raises(ValueError, match=r'encoding_norm is 0\.25; it must be None when'):
    objective.centre(objective.no_statistics(), objective.no_reference())
