"""DCCO's arithmetic in float64: its clients together take the centralized gradient."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.statistics import dcco_reference
from tff_ssl.settings import learning

_SEED = (5, 6)
_ORDER = tuple(int(i) for i in np.random.default_rng(7).permutation(12))
_SPLITS = {
  'clients of 1': ((1,) * 12, None),
  'mixed sizes': ((1, 2, 5, 4), None),
  'mixed sizes, other examples': ((1, 2, 5, 4), _ORDER),
  'halves': ((6, 6), _ORDER),
  'one client': ((12,), None),
  'with an empty client': ((3, 0, 9), _ORDER),
}


@functools.cache
def _start(loss_name):
  objective = harness.cco(loss_name)
  params = objective.init(tf.constant([1, 2]), tf.float64)
  return objective, params, tf.constant(_SEED)


@functools.cache
def _union_gradient(loss_name):
  objective, params, seed = _start(loss_name)
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, _ = objective.loss(params, harness.tensors(harness.arrays()), seed)
  return float(loss), harness.flat(tape.gradient(loss, params))


def _batches(sizes, order):
  examples = harness.arrays()
  return [
    harness.tensors(harness.take(examples, positions))
    for positions in harness.split(sizes, order)
  ]


def _aggregate(values, weights):
  """Returns the weighted mean of structures, by NumPy in float64."""
  total = sum(float(w) for w in weights)
  return tf.nest.map_structure(
    lambda *xs: tf.constant(
      sum(float(w) * np.asarray(x) for x, w in zip(xs, weights, strict=True)) / total
    ),
    *values,
  )


def _cohort_statistics(objective, params, batches, seed):
  local = [
    dcco_reference.client_statistics(objective, params, batch, seed)
    for batch in batches
  ]
  return _aggregate(*zip(*local, strict=True))


@pytest.mark.parametrize('loss_name', ['cco', 'vicreg', 'spectral', 'lejepa'])
@pytest.mark.parametrize('split', _SPLITS)
def test_a_round_is_the_gradient_on_the_union(loss_name, split):
  objective, params, seed = _start(loss_name)
  loss, gradient = _union_gradient(loss_name)
  batches = _batches(*_SPLITS[split])
  aggregated = _cohort_statistics(objective, params, batches, seed)
  updates = [
    dcco_reference.client_update(
      objective,
      learning.StepClients(),
      params,
      batch,
      seed,
      aggregated,
    )
    for batch in batches
  ]
  mean = _aggregate([u[0] for u in updates], [u[1] for u in updates])
  assert sum(float(u[1]) for u in updates) == 12
  assert harness.relative(harness.flat(mean), gradient) < 1e-9
  assert float(objective.loss_of(aggregated)) == pytest.approx(loss, rel=1e-9)


@pytest.mark.long_for('lejepa')
@pytest.mark.parametrize('loss_name', ['cco', 'vicreg', 'lejepa'])
def test_in_local_steps_the_client_moves_its_part_of_the_union(loss_name):
  """The loss of all encodings, of which all but the client's stay where they were."""
  objective, params, seed = _start(loss_name)
  batch, rest = _batches((5, 7), None)
  aggregated = _cohort_statistics(objective, params, [batch, rest], seed)
  others = objective.model.encode(params, rest, seed)
  moved, rate = params, 0.01
  for _ in range(3):
    with tf.GradientTape() as tape:
      tape.watch(moved)
      own = objective.model.encode(moved, batch, seed)
      f, g = (tf.concat(views, axis=0) for views in zip(own, others, strict=True))
      statistics, _ = objective.with_seed(seed).statistics_of(f, g)
      loss = 12 / 5 * objective.loss_of(statistics)
    gradient = tape.gradient(loss, moved)
    moved = tf.nest.map_structure(lambda p, g: p - rate * g, moved, gradient)
  expected = harness.flat(params) - harness.flat(moved)
  update, _, _ = dcco_reference.client_update(
    objective,
    learning.StepClients(rate, 3),
    params,
    batch,
    seed,
    aggregated,
  )
  # The client's share of the examples, 5/12, is float32.
  assert harness.relative(harness.flat(update), expected) < 1e-7
