"""The local loop's batches, and what it does at each step, against NumPy."""

import collections
import dataclasses
import itertools
import math
import types

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_model
from tff_ssl.federated import local_training
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.settings import learning


def _orders_that_give(result, start, examples, batch_size):
  """Returns the orders of an epoch that lead from `start` to `result`."""
  return [
    order
    for order in itertools.permutations(range(len(examples['y'])))
    if np.allclose(
      linear_model.numpy_epoch(start, examples, order, batch_size)[0],
      result,
      rtol=1e-10,
    )
  ]


@pytest.mark.parametrize(
  ('n', 'plan'),
  [
    (5, {}),
    *((1, {'batch_size': size}) for size in (None, 1, 2)),
    # As many as there are, and more.
    *((4, {'batch_size': size}) for size in (4, 7)),
    (5, {'epochs': 3}),
    (4, {'epochs': 3, 'momentum': 0.5}),
    (4, {'epochs': 3, 'proximal_weight': 0.7}),
  ],
)
def test_steps_on_all_examples_are_those_of_numpy(n, plan):
  examples, w, velocity, losses = linear_model.examples(n), linear_model.START, 0.0, []
  for _ in range(plan.get('epochs', 1)):
    error = examples['x'] @ w - examples['y']
    losses.append((error**2).mean() / 2)
    pull = plan.get('proximal_weight', 0.0) * (w - linear_model.START)
    gradient = examples['x'].T @ error / n + pull
    velocity = plan.get('momentum', 0.0) * velocity + gradient
    w = w - linear_model.RATE * velocity
  got, metrics = linear_model.train(learning.SgdClients(**plan), examples)
  np.testing.assert_allclose(got, w, rtol=1e-7 if 'proximal_weight' in plan else 1e-12)
  assert metrics['loss'] == pytest.approx(np.mean(losses), rel=1e-7)
  assert metrics['target'] == pytest.approx(examples['y'].mean(), rel=1e-12)


@pytest.mark.parametrize('batch_size', [1, 2, 3])
def test_an_epoch_visits_every_example_once(batch_size):
  # Five examples: the last batch of two holds one, that of three holds two.
  examples = linear_model.examples(5)
  plan = learning.SgdClients(batch_size=batch_size)
  w, metrics = linear_model.train(plan, examples)
  orders = _orders_that_give(w, linear_model.START, examples, batch_size)
  assert orders
  _, loss = linear_model.numpy_epoch(
    linear_model.START, examples, orders[0], batch_size
  )
  assert metrics['loss'] == pytest.approx(loss, rel=1e-9)
  assert metrics['target'] == pytest.approx(examples['y'].mean(), rel=1e-9)


def test_each_epoch_has_its_own_order():
  examples = linear_model.examples(5)
  start, orders = linear_model.START, []
  for epochs in (1, 2, 3):
    w, _ = linear_model.train(
      learning.SgdClients(batch_size=1, epochs=epochs), examples
    )
    (order,) = _orders_that_give(w, start, examples, 1)
    orders.append(order)
    start = w
  assert len(set(orders)) == 3


def _order_of(examples, seed):
  w, _ = linear_model.train(learning.SgdClients(batch_size=1), examples, seed)
  (order,) = _orders_that_give(w, linear_model.START, examples, 1)
  return order


def test_the_order_follows_the_seed_and_the_client():
  first = _order_of(linear_model.examples(5), linear_model.SEED)
  assert _order_of(linear_model.examples(5), linear_model.SEED) == first
  rounds = {
    _order_of(linear_model.examples(5), tf.constant([1, s])) for s in range(2, 5)
  }
  clients = {
    _order_of(linear_model.examples(5, first_id), linear_model.SEED)
    for first_id in range(3)
  }
  assert len(rounds) > 1
  assert len(clients) > 1


class _Telling(base.Objective):
  """The linear model, telling where it is, as moments of its encodings would."""

  def __init__(self):
    self.init = linear_model.LinearObjective().init

  def loss(self, params, examples, seed):
    loss, metrics = linear_model.LinearObjective().loss(params, examples, seed)
    told = dict.fromkeys(collapse.MOMENTS, tf.reduce_sum(params['w']))
    return loss, collections.OrderedDict(
      metrics, place=told[collapse.MOMENTS[0]], **told
    )

  def summarize(self, metrics):
    return metrics


@pytest.mark.parametrize('plan', [{}, {'epochs': 3}, {'epochs': 2, 'batch_size': 2}])
def test_moments_are_those_of_the_weights_that_training_begins_with(plan):
  _, metrics = linear_model.train(
    learning.SgdClients(**plan), linear_model.examples(5), objective=_Telling()
  )
  start = np.sum(linear_model.START)
  for name in collapse.MOMENTS:
    assert metrics[name] == pytest.approx(start, rel=1e-9)
  # Of every other metric it is the mean over the way.
  assert (metrics['place'] == pytest.approx(start, rel=1e-9)) == (not plan)


@pytest.mark.parametrize(
  'plan',
  [
    learning.SgdClients(),
    learning.SgdClients(epochs=2),
    learning.SgdClients(epochs=2, batch_size=2),
  ],
)
def test_without_examples_nothing_moves(plan):
  plan = dataclasses.replace(plan, momentum=0.5, proximal_weight=0.1)
  w, metrics = linear_model.train(plan, linear_model.examples(0))
  np.testing.assert_array_equal(w, linear_model.START)
  assert metrics == {'loss': 0.0, 'target': 0.0}


def test_an_optimizer_s_state_can_go_on():
  """Two calls with the state handed on are momentum over two steps."""
  examples = linear_model.examples(5)
  plan = learning.SgdClients(momentum=0.5)
  objective = linear_model.LinearObjective()
  params, optimizer = objective.init(linear_model.SEED, tf.float64), None
  for _ in range(2):
    trained = local_training.train(
      objective,
      plan,
      params,
      tf.nest.map_structure(tf.constant, examples),
      linear_model.SEED,
      linear_model.RATE,
      optimizer=optimizer,
    )
    params, optimizer = trained.params, trained.optimizer
  w, velocity = linear_model.START, 0.0
  for _ in range(2):
    gradient = (w - linear_model.numpy_epoch(w, examples, range(5), 5)[0]) * 8
    velocity = 0.5 * velocity + gradient
    w = w - velocity / 8
  np.testing.assert_allclose(params['w'], w, rtol=1e-12)
  np.testing.assert_allclose(optimizer['velocity']['w'], velocity, rtol=1e-12)


def test_the_proximal_term_holds_to_the_anchor():
  """One step from `START`, where without an anchor the term is 0."""
  examples, anchor = linear_model.examples(5), np.array([2.0, 3.0])
  trained = local_training.train(
    linear_model.LinearObjective(),
    learning.SgdClients(proximal_weight=0.5),
    {'w': tf.constant(linear_model.START)},
    {name: tf.constant(value) for name, value in examples.items()},
    linear_model.SEED,
    linear_model.RATE,
    anchor={'w': tf.constant(anchor)},
  )
  plain, _ = linear_model.numpy_epoch(linear_model.START, examples, range(5), 5)
  expected = plain - linear_model.RATE * 0.5 * (linear_model.START - anchor)
  np.testing.assert_allclose(trained.params['w'], expected, rtol=1e-12)


class _BatchNorm(linear_model.LinearObjective):
  """The linear model, said to have batch norm."""

  @property
  def networks(self):
    return {'encoder': types.SimpleNamespace(mixes_examples=True)}


@pytest.mark.parametrize(
  ('drop_last', 'objective', 'n', 'batch_size', 'sizes'),
  [
    # One of six is less than a quarter of five; one of five is a quarter of four.
    ('small', _BatchNorm(), 6, 5, [5]),
    ('small', _BatchNorm(), 5, 4, [4, 1]),
    ('small', linear_model.LinearObjective(), 6, 5, [5, 1]),
    ('never', _BatchNorm(), 6, 5, [5, 1]),
    ('always', linear_model.LinearObjective(), 5, 3, [3]),
    # What a client has is not left out where it is less than a batch.
    ('small', _BatchNorm(), 1, 5, [1]),
    ('always', linear_model.LinearObjective(), 2, 3, [2]),
  ],
)
def test_the_last_batch_is_left_out(drop_last, objective, n, batch_size, sizes):
  examples = linear_model.examples(n)
  plan = learning.SgdClients(batch_size=batch_size, drop_last_batch=drop_last)
  w, metrics = linear_model.train(plan, examples, objective=objective)
  found = [
    order
    for order in itertools.permutations(range(n), sum(sizes))
    if np.allclose(
      linear_model.numpy_epoch(linear_model.START, examples, order, batch_size)[0],
      w,
      rtol=1e-10,
    )
  ]
  # The orders within a batch, of the same examples.
  assert len(found) == np.prod([math.factorial(size) for size in sizes])
  _, loss = linear_model.numpy_epoch(linear_model.START, examples, found[0], batch_size)
  assert metrics['loss'] == pytest.approx(loss, rel=1e-9)
  visited = examples['y'][list(found[0])]
  assert metrics['target'] == pytest.approx(visited.mean(), rel=1e-9)
  batch_norm = isinstance(objective, _BatchNorm)
  assert plan.batch_sizes(n, batch_norm) == sizes
  tensors = tf.nest.map_structure(tf.constant, examples)
  assert int(local_training.num_batches(objective, plan, tensors)) == len(sizes)


@pytest.mark.parametrize('accumulate', [2, 3, 8])
def test_accumulated_gradients_are_the_large_batch(accumulate):
  """Seven examples in batches of two: the last step of an epoch has fewer."""
  examples = linear_model.examples(7)
  plan = learning.SgdClients(batch_size=2, accumulate=accumulate, epochs=2)
  w, metrics = linear_model.train(plan, examples)
  large = learning.SgdClients(batch_size=2 * accumulate, epochs=2)
  expected, expected_metrics = linear_model.train(large, examples)
  np.testing.assert_allclose(w, expected, rtol=1e-12)
  # A large batch's loss is that at its beginning, as the small ones' are.
  assert metrics == pytest.approx(expected_metrics, rel=1e-9)


class _Following(linear_model.LinearObjective):
  """With a state that follows the weights, and counts examples and steps."""

  def init_state(self, params):
    return collections.OrderedDict(
      target=params['w'], seen=tf.constant(0), steps=tf.constant(0)
    )

  def loss_with_state(self, params, state, examples, seed):
    loss, metrics = self.loss(params, examples, seed)
    metrics['distance'] = tf.reduce_sum((params['w'] - state['target']) ** 2)
    return loss, metrics, collections.OrderedDict(n=tf.shape(examples['y'])[0])

  def after_step(self, params, state, carry):
    state = collections.OrderedDict(
      target=(state['target'] + params['w']) / 2,
      seen=state['seen'] + carry['n'],
      steps=state['steps'] + 1,
    )
    return collections.OrderedDict(w=2.0 * params['w']), state


@pytest.mark.parametrize(
  ('plan', 'steps'),
  [
    (learning.SgdClients(), 1),
    (learning.SgdClients(epochs=3), 3),
    (learning.SgdClients(epochs=2, batch_size=2), 6),
  ],
)
def test_state_follows_every_step(plan, steps):
  examples = tf.nest.map_structure(tf.constant, linear_model.examples(5))
  objective = _Following()
  params = objective.init(linear_model.SEED, tf.float64)
  trained = local_training.train(
    objective, plan, params, examples, linear_model.SEED, 0.0
  )
  # The rate is 0: the weights only double, after each step.
  w, target = linear_model.START, linear_model.START
  for _ in range(steps):
    target, w = (target + w) / 2, 2 * w
  np.testing.assert_allclose(trained.params['w'], w)
  np.testing.assert_allclose(trained.state['target'], target)
  assert int(trained.state['steps']) == steps
  assert int(trained.state['seen']) == 5 * plan.epochs
  again = local_training.train(
    objective, plan, params, examples, linear_model.SEED, 0.0, trained.state
  )
  assert int(again.state['steps']) == 2 * steps


def test_objectives_with_batch_states_cannot_accumulate():
  plan = learning.SgdClients(batch_size=2, accumulate=2)
  examples = tf.nest.map_structure(tf.constant, linear_model.examples(4))
  objective = _Following()
  params = objective.init(linear_model.SEED, tf.float64)
  with pytest.raises(ValueError, match='accumulate is 2; it must be 1, because'):
    local_training.train(objective, plan, params, examples, linear_model.SEED, 0.1)
