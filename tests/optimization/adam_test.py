"""Adam against a NumPy float64 reference of Kingma and Ba 2015, Algorithm 1."""

import numpy as np
import tensorflow as tf

from tff_ssl.optimization import adam


def test_three_steps_equal_reference():
  random = np.random.default_rng(0)
  w = random.normal(size=[3, 2])
  m, v = np.zeros_like(w), np.zeros_like(w)
  params = {'w': tf.constant(w)}
  state = adam.init(params)
  for t in (1, 2, 3):
    g = random.normal(size=w.shape)
    m, v = 0.9 * m + 0.1 * g, 0.8 * v + 0.2 * g**2
    w = w - 0.3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.8**t)) + 1e-8)
    params, state = adam.update(params, state, {'w': tf.constant(g)}, 0.3, beta_2=0.8)
  np.testing.assert_allclose(params['w'], w, rtol=1e-12)
  assert state['step'].numpy() == 3


def test_first_step_is_the_rate_in_each_coordinate():
  # With both moments corrected for bias, the first step is rate * sign(gradient).
  got, _ = adam.update(
    tf.zeros([3]), adam.init(tf.zeros([3])), tf.constant([5.0, -0.1, 0.0]), 0.25
  )
  np.testing.assert_allclose(got, [-0.25, 0.25, 0.0], rtol=1e-5)


def test_decoupled_decay_equals_reference():
  # Loshchilov and Hutter 2019, Algorithm 2, in float64.
  random = np.random.default_rng(1)
  weights = {'w': random.normal(size=[3, 2]), 'b': random.normal(size=[2])}
  params = {name: tf.constant(w) for name, w in weights.items()}
  state = adam.init(params)
  m = {name: np.zeros_like(w) for name, w in weights.items()}
  v = {name: np.zeros_like(w) for name, w in weights.items()}
  for t in (1, 2, 3):
    grads = {name: random.normal(size=w.shape) for name, w in weights.items()}
    for name, g in grads.items():
      m[name] = 0.9 * m[name] + 0.1 * g
      v[name] = 0.95 * v[name] + 0.05 * g**2
      step = m[name] / (1 - 0.9**t) / (np.sqrt(v[name] / (1 - 0.95**t)) + 1e-8)
      decay = 0.0 if name == 'b' else 0.4
      weights[name] = weights[name] - 0.2 * (step + decay * weights[name])
    params, state = adam.update(
      params,
      state,
      {name: tf.constant(g) for name, g in grads.items()},
      0.2,
      beta_2=0.95,
      weight_decay=0.4,
    )
  for name, w in weights.items():
    np.testing.assert_allclose(params[name], w, rtol=1e-12)
