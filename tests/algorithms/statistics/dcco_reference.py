"""DCCO's client functions in float64, for rounds in float32 to be compared with.

No oracle of the formulas: `dcco_client_test` holds these functions against the gradient
on the union of the clients' examples.
"""

import collections
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tests.algorithms import harness
from tff_ssl.aggregators import combine
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.losses import statistics_loss
from tff_ssl.objectives import base
from tff_ssl.settings import learning


def _reference(objective, seed):
  """Returns what changes no moments, and the seed of directions if there are any."""
  reference = objective.no_reference()
  reference.update((n, seed) for n in reference if n == statistics_loss.SEED)
  return reference


def client_statistics(objective, params, examples, seed):
  """Returns a client's statistics and their weight."""
  result, _ = harness.visit(
    dcco.encode(objective),
    {'statistics': combine.STATISTICS, 'metrics': combine.METRICS},
    {'params': params, 'seed': seed, 'reference': _reference(objective, seed)},
    examples,
  )
  return result.means['statistics'], result.weight


def client_update(
  objective, steps, params, examples, seed, statistics, statistics_seed=None
):
  """Returns a client's update, its weight and counts.

  Statistics are along the directions of `statistics_seed`, the seed when None.
  """
  directions = seed if statistics_seed is None else statistics_seed
  result, _ = harness.visit(
    dcco.train(objective, steps),
    {'update': combine.UPDATE},
    {
      'params': params,
      'seed': seed,
      'reference': _reference(objective, directions),
      'statistics': statistics,
      'num_examples': tf.constant(float(harness.NUM_EXAMPLES)),
    },
    examples,
  )
  return result.means['update'], result.weight, result.totals['counts']


def unflatten(vector: np.ndarray) -> base.Params:
  """Returns the parameters of `harness.cco()` in float64 from one vector."""
  params = harness.cco().init(tf.constant([0, 0]), tf.float64)
  sizes = [int(np.prod(p.shape)) for p in params.values()]
  parts = np.split(vector, np.cumsum(sizes)[:-1])
  return collections.OrderedDict(
    (name, tf.constant(part.reshape(p.shape)))
    for (name, p), part in zip(params.items(), parts, strict=True)
  )


def statistics_of_all(vector: np.ndarray, seed: tf.Tensor, loss_name: str = 'cco'):
  """Returns the statistics of all examples in float64, by one client."""
  return harness.cco(loss_name).statistics(
    unflatten(vector), harness.tensors(harness.arrays()), seed
  )


def mean_update(
  steps: learning.StepClients,
  vector: np.ndarray,
  clients: Sequence[Sequence[int]],
  seed: tf.Tensor,
  statistics_seed: tf.Tensor,
  statistics_vector: np.ndarray | None = None,
  loss_name: str = 'cco',
) -> np.ndarray:
  """Returns a round's mean update in float64, clients one after another.

  Args:
    steps: Of the clients.
    vector: The round's weights.
    clients: The positions each client holds.
    seed: The round's seed.
    statistics_seed: Seed of the views whose statistics the clients use.
    statistics_vector: Weights whose statistics they use; the round's when None.
    loss_name: The loss of statistics.
  """
  objective, params = harness.cco(loss_name), unflatten(vector)
  aggregated = statistics_of_all(
    vector if statistics_vector is None else statistics_vector,
    statistics_seed,
    loss_name,
  )
  total, mean = sum(len(c) for c in clients), 0.0
  for positions in clients:
    update, _, _ = client_update(
      objective,
      steps,
      params,
      harness.tensors(harness.take(harness.arrays(), positions)),
      seed,
      aggregated,
      statistics_seed,
    )
    mean = mean + len(positions) / total * harness.flat(update)
  return mean
