"""Tests of what the local loop does at each step, against NumPy."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_model
from tff_ssl.federated import local_training
from tff_ssl.settings import learning


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


def test_the_proximal_term_pulls_towards_the_start():
  examples = linear_model.examples(4)
  plan = learning.SgdClients(epochs=3, proximal_weight=0.7)
  w, _ = linear_model.train(plan, examples)
  expected = linear_model.START
  for _ in range(3):
    error = examples['x'] @ expected - examples['y']
    gradient = examples['x'].T @ error / 4 + 0.7 * (expected - linear_model.START)
    expected = expected - linear_model.RATE * gradient
  np.testing.assert_allclose(w, expected, rtol=1e-7)
  free, _ = linear_model.train(learning.SgdClients(epochs=3), examples)
  assert np.linalg.norm(w - linear_model.START) < np.linalg.norm(
    free - linear_model.START
  )


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
