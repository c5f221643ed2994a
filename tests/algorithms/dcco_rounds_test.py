"""DCCO's two single-round computations: one round in two, each of them deployable."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.algorithms import dcco_client
from tff_ssl.algorithms import dcco_rounds
from tff_ssl.algorithms import optimizers

_FORMS = (
  tff.backends.mapreduce.get_map_reduce_form_for_computation,
  tff.backends.mapreduce.get_distribute_aggregate_form_for_computation,
)


def _cohort():
  return harness.cohort(harness.split([1, 2, 5, 4]))


def test_two_computations_are_one_round(tff_context):
  process, rounds = harness.build_dcco(), harness.build_rounds()
  states, metrics = harness.rounds_of(process, [_cohort()] * 2)
  state = rounds.initialize()
  for number, expected in enumerate(metrics, start=1):
    state, collected = rounds.collect(state, _cohort())
    # Collecting leaves the model alone.
    np.testing.assert_array_equal(
      harness.flat(rounds.get_model_weights(state).trainable),
      harness.weights(process, states[number - 1]),
    )
    assert collected['examples'] == 12
    state, updated = rounds.update(state, _cohort())
    got = harness.flat(rounds.get_model_weights(state).trainable)
    assert harness.relative(got, harness.weights(process, states[number])) < 1e-6
    for name, value in expected['client_work'].items():
      if name != 'bytes_down':
        assert updated[name] == pytest.approx(value, rel=1e-5), name


def test_the_model_is_sent_twice(tff_context):
  rounds = harness.build_rounds()
  state, _ = rounds.collect(rounds.initialize(), _cohort())
  _, metrics = rounds.update(state, _cohort())
  model = harness.flat(rounds.get_model_weights(state).trainable).size
  seed, d = 2, harness.DIMENSION
  assert metrics['bytes_down'] == 4 * 4 * (2 * (model + seed) + d**2 + 4 * d)


def test_states_keep_their_type():
  rounds = harness.build_rounds()
  state_type = rounds.initialize.type_signature.result
  for computation in (rounds.collect, rounds.update):
    assert state_type.is_identical_to(computation.type_signature.result[0])
    assert computation.type_signature.parameter[0].is_identical_to(state_type)


@pytest.mark.parametrize('form', _FORMS)
@pytest.mark.parametrize('name', ['collect', 'update'])
def test_each_converts_to_a_deployment_form(form, name):
  converted = form(getattr(harness.build_rounds(), name))
  expected = (
    tff.backends.mapreduce.MapReduceForm,
    tff.backends.mapreduce.DistributeAggregateForm,
  )[_FORMS.index(form)]
  assert isinstance(converted, expected)


def test_a_converted_computation_computes_the_same(tff_context):
  rounds = harness.build_rounds()
  state = rounds.initialize()
  expected, _ = rounds.collect(state, _cohort())
  form = _FORMS[1](rounds.collect)
  restored = tff.backends.mapreduce.get_computation_for_distribute_aggregate_form(form)
  got, _ = restored(state, _cohort())
  assert (
    harness.relative(
      harness.flat(tf.nest.flatten(got['aggregated'])),
      harness.flat(tf.nest.flatten(expected['aggregated'])),
    )
    < 1e-6
  )


@pytest.mark.parametrize('form', _FORMS)
def test_the_one_computation_does_not_convert(form):
  # The forms hold one way to the clients and one way back; here what is sent to the
  # clients a second time depends on what came back from them.
  with pytest.raises(ValueError, match='broadcast dependent on aggregate'):
    form(harness.build_dcco().next)


def test_the_stale_variant_has_one_round_already():
  with pytest.raises(ValueError, match='stale_statistics is True'):
    dcco_rounds.build_rounds(
      harness.cco(),
      harness.ELEMENT,
      optimizers.build_optimizer(harness.SGD),
      dcco_client.DCCOConfig(stale_statistics=True),
    )
