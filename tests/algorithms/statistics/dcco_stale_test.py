"""DCCO with the statistics of the round before, against float64."""

import numpy as np
import pytest
import tensorflow_federated as tff

from tests.algorithms import harness
from tests.algorithms.statistics import dcco_reference
from tff_ssl.settings import learning
from tff_ssl.settings import methods

_CONFIG = (methods.Dcco(stale_statistics=True), learning.StepClients(), harness.SEED)
_RATE = harness.SGD.learning_rate
_SPLIT = harness.split([1, 2, 5, 4])
_EMPTY = [[], []]


def _process(loss_name='cco'):
  return harness.build_dcco(loss_name, config=_CONFIG)


def _run(*cohorts, loss_name='cco'):
  process = _process(loss_name)
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


@pytest.mark.long
def test_it_converts_to_map_reduce_form():
  form = tff.backends.mapreduce.get_map_reduce_form_for_computation(_process().next)
  assert isinstance(form, tff.backends.mapreduce.MapReduceForm)
