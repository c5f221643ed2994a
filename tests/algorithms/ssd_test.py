"""SSD's rounds: each client by its own dimensions."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import numbered
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import ssd
from tff_ssl.objectives import separated
from tff_ssl.objectives import uniformity
from tff_ssl.settings import learning

_TRAINING = fedavg.Training(
  learning.SgdClients(learning_rate=0.1, epochs=2, batch_size=2), seed=harness.SEED
)
_OBJECTIVE = uniformity.UniformityObjective(harness.model())
_CLIENTS = harness.split([3, 2, 4])


@pytest.mark.long
def test_a_round_is_the_mean_of_clients_that_train_by_their_own_numbers(tff_context):
  """Each as FedAvg's client would, on its own loss."""
  method = functools.partial(ssd.ssd, distillation_weight=0.0)
  config = _TRAINING, numbered.POPULATION
  process = harness.build(method, _OBJECTIVE, harness.SGD, config)
  states, metrics = harness.rounds_of(process, [harness.cohort(_CLIENTS)])
  own = separated.SeparatedObjective(
    _OBJECTIVE, numbered.POPULATION, distillation_weight=0.0
  )
  train = harness.for_any_size(fedavg.client_function(own, _TRAINING).client_fn)
  shared = {
    'params': process.get_model_weights(states[0]).trainable,
    'seed': harness.round_seed(0),
    'rate': tf.constant(0.1),
  }

  def update(positions, number):
    examples = harness.take(harness.arrays(), positions)
    examples['client'] = np.full(len(positions), number, np.int32)
    return harness.flat(train(shared, harness.tensors(examples))['update'])

  sizes = [len(own) for own in _CLIENTS]
  numbers = [(100 + own[0]) % numbered.POPULATION for own in _CLIENTS]
  updates = [update(*pair) for pair in zip(_CLIENTS, numbers, strict=True)]
  expected = harness.SGD.learning_rate * np.average(updates, 0, sizes)
  before, after = (harness.weights(process, state) for state in states)
  assert harness.relative(before - after, expected) < 1e-3
  # The numbers matter.
  assert harness.relative(update(_CLIENTS[0], numbers[0] + 1), updates[0]) > 1e-3
  assert metrics[0]['client_work']['separation'] > 0
