"""Algorithms with stateless clients in their other forms: deployable, and secure.

Each exchange is a computation of one aggregation: DCCO has two.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tests.algorithms import numbered
from tests.algorithms import table
from tests.algorithms.labels_at_server import labels
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import fedrgd
from tff_ssl.federated import optimizers
from tff_ssl.federated import single
from tff_ssl.objectives import contextual

_FORMS = (
  tff.backends.mapreduce.get_map_reduce_form_for_computation,
  tff.backends.mapreduce.get_distribute_aggregate_form_for_computation,
)
# `dcco` stays, with two exchanges and values of two kinds.
_LONG = (*table.LONG, 'fedca', 'fedavg_nt_xent', 'fedavg_batch_norm')
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
    form = _FORMS[0](computation, _graphs(name))
    assert isinstance(form, tff.backends.mapreduce.MapReduceForm), phase


def test_the_other_form_of_deployment_computes_the_same(tff_context):
  phases = _single('dcco')
  state, cohort = phases.initialize(), harness.cohort(harness.split([2, 3, 4]))
  expected, _ = phases.exchanges['statistics'](state, cohort)
  form = _FORMS[1](phases.exchanges['statistics'])
  assert isinstance(form, tff.backends.mapreduce.DistributeAggregateForm)
  restored = tff.backends.mapreduce.get_computation_for_distribute_aggregate_form(form)
  got, _ = restored(state, cohort)
  found, wanted = (
    harness.flat(tf.nest.flatten(extra)) for extra in (got['extra'], expected.extra)
  )
  assert harness.relative(found, wanted) < 1e-6


@pytest.mark.parametrize('form', _FORMS)
def test_the_one_computation_does_not_convert(form):
  # The forms hold one way to the clients and one way back; here what is sent to the
  # clients a second time depends on what came back from them.
  with pytest.raises(ValueError, match='broadcast dependent on aggregate'):
    form(table.process('dcco', False).next)


def test_states_and_server_data_are_refused():
  objective, optimizer = harness.cco(), optimizers.build_optimizer(harness.SGD)
  stateful = fed_ssl.fed_ssl(objective, optimizer, fedavg.Training())
  with pytest.raises(ValueError, match='clients that keep a state; to be one comp'):
    single.build_single_phases(stateful, harness.ELEMENT)
  at_server = fedrgd.fedrgd(labels.pseudo_labels(), labels.labelled(), harness.ELEMENT)
  with pytest.raises(ValueError, match='data at the server'):
    single.build_single_phases(at_server, harness.ELEMENT)


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
