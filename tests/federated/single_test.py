"""DCCO as two computations of one aggregation each; all algorithms: `forms_test`."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import fedrgd
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.federated import optimizers
from tff_ssl.federated import single

_FORMS = (
  tff.backends.mapreduce.get_map_reduce_form_for_computation,
  tff.backends.mapreduce.get_distribute_aggregate_form_for_computation,
)


@functools.cache
def _single() -> single.SinglePhases:
  algorithm = dcco.dcco(
    harness.cco(),
    optimizers.build_optimizer(harness.SGD),
    seed=harness.SEED,
  )
  return single.build_single_phases(algorithm, harness.ELEMENT)


def _cohort():
  return harness.cohort(harness.split([1, 2, 5, 4]))


def test_two_computations_are_one_round(tff_context):
  process, phases = harness.build_dcco(), _single()
  states, metrics = harness.rounds_of(process, [_cohort()] * 2)
  state = phases.initialize()
  for number, expected in enumerate(metrics, start=1):
    state, collected = phases.exchanges['statistics'](state, _cohort())
    # Collecting leaves the model alone.
    np.testing.assert_array_equal(
      harness.flat(phases.get_model_weights(state).trainable),
      harness.weights(process, states[number - 1]),
    )
    assert not collected
    assert state.extra['num_examples'] == 12
    assert state.round == number - 1
    state, updated = phases.exchanges['train'](state, _cohort())
    got = harness.flat(phases.get_model_weights(state).trainable)
    assert harness.relative(got, harness.weights(process, states[number])) < 1e-6
    for name, value in expected['client_work'].items():
      if name != 'bytes_down':
        assert updated['client_work'][name] == pytest.approx(value, rel=1e-5), name


def test_the_model_is_sent_twice(tff_context):
  phases = _single()
  state, _ = phases.exchanges['statistics'](phases.initialize(), _cohort())
  _, metrics = phases.exchanges['train'](state, _cohort())
  model = harness.flat(phases.get_model_weights(state).trainable).size
  seed, d = 2, harness.DIMENSION
  expected = 4 * 4 * (2 * (model + seed + 2 * d) + d**2 + 4 * d)
  assert metrics['client_work']['bytes_down'] == expected


def test_a_converted_computation_computes_the_same(tff_context):
  phases = _single()
  state = phases.initialize()
  expected, _ = phases.exchanges['statistics'](state, _cohort())
  form = _FORMS[1](phases.exchanges['statistics'])
  restored = tff.backends.mapreduce.get_computation_for_distribute_aggregate_form(form)
  got, _ = restored(state, _cohort())
  assert (
    harness.relative(
      harness.flat(tf.nest.flatten(got['extra'])),
      harness.flat(tf.nest.flatten(expected.extra)),
    )
    < 1e-6
  )


@pytest.mark.parametrize('form', _FORMS)
def test_the_one_computation_does_not_convert(form):
  # The forms hold one way to the clients and one way back; here what is sent to the
  # clients a second time depends on what came back from them.
  with pytest.raises(ValueError, match='broadcast dependent on aggregate'):
    form(harness.build_dcco().next)


def test_states_and_server_data_are_refused_by_map_reduce_forms():
  objective, optimizer = harness.cco(), optimizers.build_optimizer(harness.SGD)
  stateful = fed_ssl.fed_ssl(objective, optimizer, fedavg.Training())
  with pytest.raises(ValueError, match='clients that keep a state; to be one comp'):
    single.build_single_phases(stateful, harness.ELEMENT)
  at_server = fedrgd.fedrgd(labels.pseudo_labels(), labels.labelled(), harness.ELEMENT)
  with pytest.raises(ValueError, match='data at the server'):
    single.build_single_phases(at_server, harness.ELEMENT)
