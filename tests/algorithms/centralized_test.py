"""Centralized steps and training: the gradient of the union, FedAvg of one client."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.statistics import dcco_reference
from tests.objectives import warming
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import centralized_training
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import optimizers
from tff_ssl.settings import learning


@functools.cache
def _process():
  return centralized.Centralized(
    harness.cco(), optimizers.build_optimizer(harness.SGD), harness.SEED
  )


def test_a_step_is_the_gradient_of_the_union():
  process = _process()
  states, metrics = harness.rounds_of(process, [harness.cohort(harness.split([5, 7]))])
  before, after = (harness.weights(process, s) for s in states)
  params = dcco_reference.unflatten(before)
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, _ = harness.cco().loss(
      params, harness.tensors(harness.arrays()), harness.round_seed(0)
    )
  gradient = harness.flat(tape.gradient(loss, params))
  expected = harness.SGD.learning_rate * gradient
  assert harness.relative(before - after, expected) < 1e-4
  work = metrics[0]['client_work']
  assert float(work['loss']) == pytest.approx(float(loss), rel=1e-4)
  assert int(work['examples']) == 12
  assert int(work['nonfinite_batches']) == 0


def test_the_seed_moves_on_as_in_federated_rounds():
  process = _process()
  states, _ = harness.rounds_of(process, [harness.cohort(harness.split([5, 7]))] * 2)
  for round, state in enumerate(states):
    np.testing.assert_array_equal(state.round_seed, harness.round_seed(round))


def test_statistics_that_are_not_finite_change_nothing():
  """The gradient is finite: weights of 1e25 overflow in the squares of activations."""
  process = centralized.Centralized(
    harness.cco(batch_norm=True),
    optimizers.build_optimizer(learning.SgdServer(1e25)),
  )
  states, metrics = harness.rounds_of(process, [harness.cohort([range(12)])])
  assert int(metrics[0]['client_work']['nonfinite_batches']) == 1
  before, after = (process.get_model_weights(state) for state in states)
  for name, value in before.non_trainable.items():
    np.testing.assert_array_equal(after.non_trainable[name], value)


@pytest.mark.parametrize(('total', 'expected'), [(10, 1.4), (None, -4.0)])
def test_objectives_receive_the_round(total, expected):
  """With rate 1, w is 2 - (1 + 2 + 3) / total, which is 1 where it is unknown."""
  process = centralized.Centralized(
    warming.Warming(),
    optimizers.build_optimizer(learning.SgdServer()),
    total_rounds=total,
  )
  states, _ = harness.rounds_of(process, [harness.cohort(harness.split([5, 7]))] * 3)
  assert [int(state.round) for state in states] == [0, 1, 2, 3]
  assert harness.weights(process, states[-1])[0] == pytest.approx(expected)


def test_an_empty_cohort_is_refused():
  process = _process()
  with pytest.raises(ValueError, match='cohort is empty'):
    process.next(process.initialize(), [])


_CLIENTS = learning.AdamClients(0.01, 'steps', steps=(1,), epochs=2, batch_size=5)
_TRAINING = fedavg.Training(_CLIENTS, harness.SEED)


# With batch norm, whose population statistics each round replaces.
_OBJECTIVE = harness.cco(batch_norm=True)


def _centralized():
  return centralized_training.CentralizedTraining(_OBJECTIVE, _TRAINING)


def test_objectives_of_whole_trainings_receive_the_round():
  """Two rounds of two epochs of one batch, rate 1: 2 - 2 x (1 + 2) / 10."""
  process = centralized_training.CentralizedTraining(
    warming.Warming(), fedavg.Training(learning.SgdClients(1.0, epochs=2), rounds=10)
  )
  states, _ = harness.rounds_of(process, [harness.cohort([range(12)])] * 2)
  assert harness.weights(process, states[-1])[0] == pytest.approx(1.4)


def test_it_is_fedavg_with_one_client(tff_context):
  federated = harness.build_fedavg(_OBJECTIVE, learning.SgdServer(), _TRAINING)
  together = harness.cohort([range(12)])
  expected, expected_metrics = harness.rounds_of(federated, [together] * 2)
  # The union of data sets, in the same order.
  apart = harness.cohort([range(5), range(5, 12)])
  got, metrics = harness.rounds_of(_centralized(), [together, apart])
  for before, after, ours, next_ours in zip(
    expected, expected[1:], got, got[1:], strict=False
  ):
    step = harness.weights(federated, after) - harness.weights(federated, before)
    own = harness.weights(_centralized(), next_ours) - harness.weights(
      _centralized(), ours
    )
    assert harness.relative(own, step) < 1e-3
    ours, theirs = (
      harness.flat(process.get_model_weights(state).non_trainable)
      for process, state in ((_centralized(), next_ours), (federated, after))
    )
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-5)
  for theirs, own in zip(expected_metrics, metrics, strict=True):
    assert float(own['client_work']['loss']) == pytest.approx(
      theirs['client_work']['loss'], rel=1e-4
    )
