"""Orchestra's rounds: what clients send, what the server clusters, who counts."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import numbered
from tests.losses import transport_test
from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import orchestra
from tff_ssl.federated import optimizers
from tff_ssl.federated import server
from tff_ssl.objectives import orchestra as orchestra_objective
from tff_ssl.settings import learning
from tff_ssl.settings import methods

_GLOBAL, _LOCAL = 5, 3
_CLIENTS = harness.split([1, 2, 5, 4])
# As `numbered` has them: the first id, modulo the population.
_NUMBERS = [(100 + own[0]) % numbered.POPULATION for own in _CLIENTS]
_TRAINING = fedavg.Training(
  learning.SgdClients(learning_rate=0.1, epochs=2, batch_size=2), seed=harness.SEED
)
# With at most four images of a client.
_CONFIG = methods.Orchestra(_GLOBAL, _LOCAL), _TRAINING, numbered.POPULATION, 4


def _objective():
  return orchestra_objective.OrchestraObjective(harness.model(harness.SWAPPED))


@pytest.fixture(scope='module')
def process():
  optimizer = optimizers.build_optimizer(harness.SGD)
  return harness.process(orchestra.orchestra(_objective(), optimizer, *_CONFIG))


@pytest.fixture(scope='module')
def rounds(process):
  cohort = harness.cohort(_CLIENTS)
  return harness.rounds_of(process, [cohort, cohort[:2], cohort])


@pytest.fixture(scope='module')
def results(process, rounds):
  """Returns what `client_function` says of each client in round 0, and in round 2."""
  function = orchestra.client_function(_objective(), *_CONFIG)
  function = dataclasses.replace(
    function, client_fn=harness.for_any_size(function.client_fn)
  )
  kinds = {**server.sent_kinds(), 'local_centroids': combine.Sum(numbered.POPULATION)}

  def sent(r, k):
    state = rounds[0][r]
    shared = {
      'params': process.get_model_weights(state).trainable,
      'seed': harness.round_seed(r),
      'rate': tf.constant(0.1),
      **state.extra,
    }
    examples = harness.take(harness.arrays(), _CLIENTS[k])
    examples['client'] = np.full(len(_CLIENTS[k]), _NUMBERS[k], np.int32)
    examples = harness.tensors(examples)
    return harness.visit(function, kinds, shared, examples)[0]

  return {(r, k): sent(r, k) for r in (0, 2) for k in range(len(_CLIENTS))}


def _rows(result):
  """Returns a client's rows and marks as they arrive: weight times the means."""
  table = result.means['local_centroids']
  return (float(result.weight) * table[name].numpy() for name in ('rows', 'filled'))


@pytest.mark.long
def test_a_client_fills_its_own_rows_with_at_most_as_many_clusters_as_images(
  tff_context, results
):
  for k, own in enumerate(_CLIENTS):
    rows, filled = _rows(results[0, k])
    made = min(len(own), _LOCAL)
    assert rows.shape == (numbered.POPULATION, _LOCAL, harness.DIMENSION)
    expected = np.zeros((numbered.POPULATION, _LOCAL))
    expected[_NUMBERS[k], :made] = 1
    np.testing.assert_allclose(filled, expected, rtol=1e-6)
    lengths = np.linalg.norm(rows, axis=2)
    np.testing.assert_allclose(lengths, expected, rtol=1e-5)


def test_local_centroids_are_those_of_equal_clusters():
  z = np.random.default_rng(0).normal(size=(9, 4))
  z /= np.linalg.norm(z, axis=1, keepdims=True)
  rows, filled = orchestra.local_centroids(tf.constant(z), _LOCAL)
  np.testing.assert_allclose(
    rows, transport_test.equal_clusters_in_numpy(z, z[:_LOCAL]), rtol=1e-9
  )
  np.testing.assert_array_equal(filled, np.ones(_LOCAL))
  for n in (0, 2):
    rows, filled = orchestra.local_centroids(tf.constant(z[:n]), _LOCAL)
    np.testing.assert_allclose(rows[:n], z[:n], rtol=1e-9)
    np.testing.assert_array_equal(filled, np.arange(_LOCAL) < n)
    assert not rows[n:].numpy().any()


@pytest.mark.long
def test_a_round_is_the_mean_update_and_the_clusters_of_all_rows(
  tff_context, process, rounds, results
):
  states, _ = rounds
  # The first has no centroids to train by.
  first = harness.weights(process, states[0])
  np.testing.assert_array_equal(harness.weights(process, states[1]), first)
  assert not any(np.any(harness.flat(results[0, k].means['update'])) for k in range(4))
  sizes = [len(own) for own in _CLIENTS]
  updates = [harness.flat(results[2, k].means['update']) for k in range(4)]
  moved = harness.weights(process, states[2]) - harness.weights(process, states[3])
  expected = harness.SGD.learning_rate * np.average(updates, 0, sizes)
  assert harness.relative(moved, expected) < 1e-3
  for r in (0, 2):
    points = []
    # In the order of the table.
    for k in np.argsort(_NUMBERS):
      rows, filled = _rows(results[r, k])
      points.append(rows[filled > 0.5])
    points = np.concatenate(points)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    before = np.asarray(states[r].extra['centroids'], np.float64)
    np.testing.assert_allclose(
      states[r + 1].extra['centroids'],
      transport_test.equal_clusters_in_numpy(points, before, 20),
      rtol=1e-3,
      atol=1e-4,
    )
