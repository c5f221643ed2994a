"""Tests of the local loop on a linear model, against NumPy.

With one weight per feature and squared error a step is linear, and steps on different
batches do not commute: the result tells which batches were taken, and in which order.
"""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import local_training

# TFF's optimizers hold it in float32: a sum of powers of 2 is exact there.
_RATE = 0.125
_SEED = tf.constant([1, 2])


class _LinearObjective:
  """Half the mean squared error of x w, reported with the mean of y."""

  def init(self, seed, dtype=tf.float32):
    del seed
    return collections.OrderedDict(w=tf.constant([0.5, -1.0], dtype))

  def loss(self, params, examples, seed):
    del seed
    x = tf.cast(examples['x'], params['w'].dtype)
    y = tf.cast(examples['y'], params['w'].dtype)
    n = tf.cast(tf.shape(y)[0], y.dtype)
    error = tf.linalg.matvec(x, params['w']) - y
    loss = tf.math.divide_no_nan(tf.reduce_sum(error**2) / 2, n)
    mean = tf.math.divide_no_nan(tf.reduce_sum(y), n)
    return loss, collections.OrderedDict(target=mean)

  def summarize(self, metrics):
    return metrics


def _examples(n, first_id=0):
  generator = np.random.default_rng(n)
  return collections.OrderedDict(
    x=generator.normal(size=(n, 2)),
    y=generator.normal(size=n),
    example_id=np.arange(first_id, first_id + n, dtype=np.int64),
  )


def _train(plan, examples, seed=_SEED, momentum=None):
  objective = _LinearObjective()
  # TFF's momentum is float32 and does not multiply float64.
  params = objective.init(seed, tf.float64 if momentum is None else tf.float32)
  optimizer = tff.learning.optimizers.build_sgdm(_RATE, momentum)
  trained, metrics = tf.function(local_training.train)(
    objective,
    optimizer,
    plan,
    params,
    tf.nest.map_structure(tf.constant, examples),
    seed,
  )
  return trained['w'].numpy(), {name: float(value) for name, value in metrics.items()}


def _numpy_epoch(w, examples, order, batch_size):
  """Returns the weights after an epoch in a given order, and the mean loss."""
  total = 0.0
  for start in range(0, len(order), batch_size):
    rows = list(order[start : start + batch_size])
    x, y = examples['x'][rows], examples['y'][rows]
    error = x @ w - y
    total += (error**2).sum() / 2
    w = w - _RATE * x.T @ error / len(rows)
  return w, total / len(order)


def _orders_that_give(result, start, examples, batch_size):
  """Returns the orders of an epoch that lead from `start` to `result`."""
  return [
    order
    for order in itertools.permutations(range(len(examples['y'])))
    if np.allclose(
      _numpy_epoch(start, examples, order, batch_size)[0], result, rtol=1e-10
    )
  ]


_START = np.array([0.5, -1.0])


def test_one_step_on_all():
  examples = _examples(5)
  w, metrics = _train(local_training.LocalTraining(), examples)
  expected, loss = _numpy_epoch(_START, examples, range(5), 5)
  np.testing.assert_allclose(w, expected, rtol=1e-12)
  assert metrics['loss'] == pytest.approx(loss, rel=1e-12)
  assert metrics['target'] == pytest.approx(examples['y'].mean(), rel=1e-12)


def test_epochs_of_one_batch():
  examples = _examples(5)
  w, metrics = _train(local_training.LocalTraining(epochs=3), examples)
  expected, losses = _START, []
  for _ in range(3):
    expected, loss = _numpy_epoch(expected, examples, range(5), 5)
    losses.append(loss)
  np.testing.assert_allclose(w, expected, rtol=1e-12)
  assert metrics['loss'] == pytest.approx(np.mean(losses), rel=1e-12)


@pytest.mark.parametrize('batch_size', [1, 2, 3])
def test_an_epoch_visits_every_example_once(batch_size):
  # Five examples: the last batch of two holds one, that of three holds two.
  examples = _examples(5)
  plan = local_training.LocalTraining(batch_size=batch_size)
  w, metrics = _train(plan, examples)
  orders = _orders_that_give(w, _START, examples, batch_size)
  assert orders
  _, loss = _numpy_epoch(_START, examples, orders[0], batch_size)
  assert metrics['loss'] == pytest.approx(loss, rel=1e-9)
  assert metrics['target'] == pytest.approx(examples['y'].mean(), rel=1e-9)


def test_each_epoch_has_its_own_order():
  examples = _examples(5)
  start, orders = _START, []
  for epochs in (1, 2, 3):
    w, _ = _train(local_training.LocalTraining(epochs, batch_size=1), examples)
    (order,) = _orders_that_give(w, start, examples, 1)
    orders.append(order)
    start = w
  assert len(set(orders)) == 3


def _order_of(examples, seed):
  w, _ = _train(local_training.LocalTraining(batch_size=1), examples, seed)
  (order,) = _orders_that_give(w, _START, examples, 1)
  return order


def test_the_order_follows_the_seed_and_the_client():
  first = _order_of(_examples(5), _SEED)
  assert _order_of(_examples(5), _SEED) == first
  rounds = {_order_of(_examples(5), tf.constant([1, s])) for s in range(2, 8)}
  clients = {_order_of(_examples(5, first_id), _SEED) for first_id in range(6)}
  assert len(rounds) > 3
  assert len(clients) > 3


def test_momentum_lives_for_the_whole_training():
  examples = _examples(4)
  w, _ = _train(local_training.LocalTraining(epochs=3), examples, momentum=0.5)
  expected, velocity = _START, 0.0
  for _ in range(3):
    error = examples['x'] @ expected - examples['y']
    velocity = 0.5 * velocity + examples['x'].T @ error / 4
    expected = expected - _RATE * velocity
  np.testing.assert_allclose(w, expected, rtol=1e-5)


@pytest.mark.parametrize(
  'plan',
  [
    local_training.LocalTraining(),
    local_training.LocalTraining(epochs=2),
    local_training.LocalTraining(epochs=2, batch_size=2),
  ],
)
def test_without_examples_nothing_moves(plan):
  w, metrics = _train(plan, _examples(0), momentum=0.5)
  np.testing.assert_array_equal(w, _START)
  assert metrics == {'loss': 0.0, 'target': 0.0}


@pytest.mark.parametrize(
  'batch_size', [4, 7, None], ids=['exact', 'larger than the client', 'all']
)
def test_a_batch_of_everything_is_one_step(batch_size):
  examples = _examples(4)
  w, _ = _train(local_training.LocalTraining(batch_size=batch_size), examples)
  expected, _ = _numpy_epoch(_START, examples, range(4), 4)
  np.testing.assert_allclose(w, expected, rtol=1e-12)


@pytest.mark.parametrize(('field', 'value'), [('epochs', 0), ('batch_size', 0)])
def test_plan_names_what_is_out_of_range(field, value):
  with pytest.raises(ValueError, match=f'{field} is {value}'):
    local_training.LocalTraining(**{field: value})
