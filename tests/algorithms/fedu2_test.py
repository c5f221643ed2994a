"""Tests of FedU2: rounds of a linear model against NumPy, sketches."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import linear_model
from tests.algorithms import numbered
from tests.optimization import shortest
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedu2
from tff_ssl.federated import optimizers
from tff_ssl.settings import learning
from tff_ssl.settings import methods

_SIZES = (3, 1, 4, 2)
_EPOCHS = 2
# Clients come back; one is alone.
_ROUNDS = ((0, 1, 2), (1, 3), (2,))
_SERVER = learning.SgdServer()


def _examples(k):
  # The first id is the client's number (`numbered`).
  return linear_model.examples(_SIZES[k], k) | {
    'example_id': k + numbered.POPULATION * np.arange(_SIZES[k])
  }


def _cohort(members):
  return harness.datasets([linear_model.typed(_examples(k)) for k in members])


def _algorithm(population=numbered.POPULATION, **options):
  return fedu2.fedu2(
    linear_model.LinearObjective(),
    optimizers.build_optimizer(_SERVER),
    methods.FedU2(uniformity_weight=0.0, **options),
    fedavg.Training(
      learning.SgdClients(learning_rate=linear_model.RATE, epochs=_EPOCHS)
    ),
    population,
  )


@pytest.fixture(scope='module')
def process():
  return harness.process(_algorithm(), fields=linear_model.ELEMENT)


def _update(w, k):
  """Returns initial minus final weights after full batches in float64."""
  end = w
  for _ in range(_EPOCHS):
    end, _ = linear_model.numpy_epoch(end, _examples(k), range(_SIZES[k]), _SIZES[k])
  return w - end


def test_rounds_are_the_shortest_combinations_of_rates(tff_context, process):
  states, metrics = harness.rounds_of(process, [_cohort(m) for m in _ROUNDS])
  w, differs = linear_model.START, 0.0
  for state, given, members in zip(states[1:], metrics, _ROUNDS, strict=True):
    updates = np.stack([_update(w, k) for k in members])
    shares = shortest.weights(updates)
    sizes = np.array([_SIZES[k] for k in members])
    differs = max(
      differs, np.abs(shares @ updates - sizes / sum(sizes) @ updates).max()
    )
    w = w - shares @ updates
    np.testing.assert_allclose(harness.weights(process, state), w, rtol=1e-4)
    largest = given['client_work']['largest_weight']
    np.testing.assert_allclose(largest, shares.max(), rtol=1e-3)
    kept = state.server.extra['weights']
    assert not np.delete(kept, members).any()
  assert differs > 1e-2


def test_a_round_among_many_clients_is_that_among_few(tff_context, process):
  """Inner products of all, of which most are not there, would take 30 GB."""
  many = harness.process(_algorithm(population=60_000), fields=linear_model.ELEMENT)
  ends = [
    harness.weights(each, harness.rounds_of(each, [_cohort([0, 1, 2])])[0][-1])
    for each in (process, many)
  ]
  np.testing.assert_array_equal(*ends)


def test_a_client_with_a_far_longer_update_is_counted(tff_context, process):
  cohort = _cohort([0, 1, 2])
  cohort[0] = cohort[0].map(lambda x: collections.OrderedDict(x, y=1e5 * x['y']))
  _, (metrics,) = harness.rounds_of(process, [cohort])
  assert metrics['client_work']['outlying_clients'] == 1


def test_sketches_have_the_inner_products_of_what_they_sketch():
  """Within 4 of their standard errors, |g_j| |g_k| sqrt(2 / s); short ones exactly."""
  generator = np.random.default_rng(0)
  common = generator.normal(size=(50, 60))
  updates = [common + generator.normal(size=common.shape) for _ in range(3)]
  flat = np.stack([u.ravel() for u in updates])
  expected = flat @ flat.T
  lengths = np.linalg.norm(flat, axis=1)
  for size, allowed in ((512, 4 * np.sqrt(2 / 512)), (3000, 1e-9)):
    rows = np.stack(
      [
        fedu2.sketch(
          {'a': tf.constant(u[:, :20]), 'b': tf.constant(u[:, 20:])},
          tf.constant([1, 2]),
          size,
        )
        for u in updates
      ]
    )
    assert rows.shape == (3, size)
    error = np.abs(rows @ rows.T - expected) / np.outer(lengths, lengths)
    assert error.max() < allowed
    assert size == 3000 or error.max() > 1e-4
  other = fedu2.sketch({'a': tf.constant(updates[0])}, tf.constant([1, 3]), 512)
  assert not np.allclose(other, rows[0][:512])
