"""Algorithms with stateless clients in their other forms: deployable, and secure."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tests.algorithms import numbered
from tests.algorithms import table
from tff_ssl.aggregators import aggregations
from tff_ssl.federated import single
from tff_ssl.objectives import contextual

# `dcco` stays, with two exchanges and values of two kinds.
_LONG = (*table.LONG, 'fedca', 'fedavg_nt_xent', 'l_dawa', 'decentralized')
# Those with stateless clients and no data at the server.
_ALGORITHMS = {
  name: algorithm
  for name, row in table.TABLE.items()
  if row.federated
  and not (algorithm := row.algorithm()).is_stateful
  and algorithm.server_spec is None
}


@functools.cache
def _single(name, secure=False):
  algorithm = _ALGORITHMS[name]
  aggregation = aggregations.secure(4096.0, 64) if secure else None
  element = harness.element(algorithm)
  return single.build_single_phases(algorithm, element, aggregation)


def _graphs(name):
  """Returns how graphs of a form are optimized: for one algorithm as for users."""
  config = tf.compat.v1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = name != 'dcco'
  return config


@pytest.mark.long_for(*_LONG)
@pytest.mark.parametrize('name', _ALGORITHMS)
def test_each_phase_converts_to_map_reduce_form(name):
  for phase, computation in _single(name).exchanges.items():
    form = tff.backends.mapreduce.get_map_reduce_form_for_computation(
      computation, _graphs(name)
    )
    assert isinstance(form, tff.backends.mapreduce.MapReduceForm), phase


def test_the_other_form_of_deployment_has_the_same_shape():
  convert = tff.backends.mapreduce.get_distribute_aggregate_form_for_computation
  for phase, computation in _single('dcco').exchanges.items():
    form = convert(computation)
    assert isinstance(form, tff.backends.mapreduce.DistributeAggregateForm), phase


@pytest.mark.long_for(*_LONG)
@pytest.mark.parametrize('name', _ALGORITHMS)
def test_secure_sums_are_all_that_leaves_a_client(name):
  for computation in _single(name, secure=True).exchanges.values():
    tff.test.assert_not_contains_unsecure_aggregation(computation)
    tff.test.assert_contains_secure_aggregation(computation)


@pytest.mark.long_for(*_LONG)
@pytest.mark.parametrize('name', _ALGORITHMS)
def test_phases_one_after_another_are_the_round(tff_context, name):
  process, phases = table.process(name, False), _single(name)
  cohort = harness.cohort(harness.split([2, 3, 4]))
  rounds = table.TABLE[name].collects + 1
  states, metrics = harness.rounds_of(process, [cohort] * rounds)
  if contextual.CLIENT in _ALGORITHMS[name].client_numbers:
    cohort = [numbered.numbered(dataset) for dataset in cohort]
  state = phases.initialize()
  for _ in range(rounds):
    for computation in phases.exchanges.values():
      state, measured = computation(state, cohort)
  got = harness.flat(phases.get_model_weights(state).trainable)
  start, expected = (harness.weights(process, s) for s in (states[0], states[-1]))
  assert harness.relative(got - start, expected - start) < 1e-4
  for metric, value in metrics[-1]['client_work'].items():
    if metric != 'bytes_down':  # Each computation tells the model.
      found = measured['client_work'][metric]
      assert found == pytest.approx(value, rel=1e-4, abs=1e-6), metric
  assert np.isfinite(got).all()
