"""A replayed round is the process's, and its clients are the ones that it averages."""

import numpy as np
import pytest

from docs.bench import replay
from tests.algorithms import harness
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.federated import optimizers
from tff_ssl.settings import learning

_SIZES = [5, 0, 7]


def test_rounds_are_those_of_the_process(tff_context):
  config = fedavg.Training(learning.SgdClients(learning_rate=0.1), seed=harness.SEED)
  optimizer = learning.SgdServer()
  objective = harness.cco(batch_norm=True)
  process = harness.build_fedavg(objective, optimizer, config)
  clients = harness.split(_SIZES)
  states, _ = harness.rounds_of(process, [harness.cohort(clients)] * 2)
  again = replay.Replay(
    fedavg.fedavg(objective, optimizers.build_optimizer(optimizer), config)
  )
  state, cohort = (
    again.initialize(),
    [harness.take(harness.arrays(), c) for c in clients],
  )
  for _ in range(2):
    before = state
    state, models, _ = again.next(state, cohort)
  want = process.get_model_weights(states[-1])
  weights = state.global_model_weights
  for found, of in (
    (weights.trainable, want.trainable),
    (weights.non_trainable, want.non_trainable),
  ):
    assert harness.relative(harness.flat(found), harness.flat(of)) < 1e-4
  # At a server's rate of 1 the model is the mean of the clients' by their examples; one
  # without any ends where it began.
  for name, value in {**weights.trainable, **weights.non_trainable}.items():
    mean = (5 * models[0][name] + 7 * models[2][name]) / 12
    np.testing.assert_allclose(value, mean, rtol=1e-4, atol=1e-5)
  started = before.global_model_weights
  for name, value in {**started.trainable, **started.non_trainable}.items():
    np.testing.assert_array_equal(models[1][name], value)
  assert harness.relative(harness.flat(models[0]), harness.flat(models[2])) > 1e-3


def test_algorithms_of_other_exchanges_are_refused():
  algorithm = dcco.dcco(
    harness.cco(),
    optimizers.build_optimizer(harness.SGD),
  )
  with pytest.raises(ValueError, match='cannot be replayed'):
    replay.Replay(algorithm)
