"""Centralized training is FedAvg with a single client that has everything."""

import numpy as np
import pytest

from tests.algorithms import harness
from tests.objectives import warming
from tff_ssl.algorithms import centralized_training
from tff_ssl.algorithms import fedavg
from tff_ssl.settings import learning

_CLIENTS = learning.AdamClients(0.01, 'steps', steps=(1,), epochs=2, batch_size=5)
_TRAINING = fedavg.Training(_CLIENTS, harness.SEED)


# With batch norm, whose population statistics each round replaces.
_OBJECTIVE = harness.cco(batch_norm=True)


def _centralized():
  return centralized_training.CentralizedTraining(_OBJECTIVE, _TRAINING)


def test_objectives_receive_the_round():
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


@pytest.mark.parametrize('value', [np.nan, None])
def test_a_round_that_can_not_be_used_changes_nothing(value):
  """The statistics of batch norm neither, which no examples would make of nothing."""
  process = _centralized()
  state = process.initialize()
  data = harness.cohort([[]])[0] if value is None else harness.broken([0, 1, 2], value)
  output = process.next(state, [data])
  np.testing.assert_array_equal(
    harness.weights(process, output.state), harness.weights(process, state)
  )
  kept, start = (
    harness.flat(process.get_model_weights(s).non_trainable)
    for s in (output.state, state)
  )
  assert kept.size > 0
  np.testing.assert_array_equal(kept, start)
  work = output.metrics['client_work']
  assert int(work['examples']) == 0
  assert int(work['nonfinite_batches']) == (value is not None)
  assert int(output.state.round) == 1


def test_there_is_no_round_without_a_data_set():
  process = _centralized()
  with pytest.raises(ValueError, match='The cohort is empty'):
    process.next(process.initialize(), [])


def test_a_single_example_is_a_step():
  process = centralized_training.CentralizedTraining(
    warming.Warming(), fedavg.Training()
  )
  states, metrics = harness.rounds_of(process, [harness.cohort([[3]])])
  assert harness.weights(process, states[1]) < harness.weights(process, states[0])
  assert int(metrics[0]['client_work']['examples']) == 1
