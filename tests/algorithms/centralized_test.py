"""Tests of the centralized step, against the objective's own gradient."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.statistics import dcco_reference
from tests.objectives import warming
from tff_ssl.algorithms import centralized
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


def test_one_bad_image_spoils_the_step_and_is_reported():
  process = _process()
  cohort = [*harness.cohort([[0, 1, 2]]), harness.broken([3])]
  states, metrics = harness.rounds_of(process, [cohort])
  np.testing.assert_array_equal(*(harness.weights(process, s) for s in states))
  assert int(metrics[0]['client_work']['nonfinite_batches']) == 1
  assert int(metrics[0]['client_work']['examples']) == 0


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


def test_a_round_without_examples_changes_nothing():
  """Not by the momentum of the round before it either."""
  process = centralized.Centralized(
    harness.cco(), optimizers.build_optimizer(harness.ADAM), harness.SEED
  )
  rounds = [harness.cohort(harness.split([5, 7])), harness.cohort([[]])]
  states, metrics = harness.rounds_of(process, rounds)
  before, after = (harness.weights(process, s) for s in states[1:])
  np.testing.assert_array_equal(before, after)
  np.testing.assert_array_equal(*(harness.flat(s.optimizer) for s in states[1:]))
  assert int(metrics[1]['client_work']['examples']) == 0


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


def test_a_single_example_is_a_step():
  """Of rate 1 and gradient 1 / total at its first round: see `warming`."""
  process = centralized.Centralized(
    warming.Warming(),
    optimizers.build_optimizer(learning.SgdServer()),
  )
  states, metrics = harness.rounds_of(process, [harness.cohort([[3]])])
  assert harness.weights(process, states[1]) < harness.weights(process, states[0])
  assert int(metrics[0]['client_work']['examples']) == 1
