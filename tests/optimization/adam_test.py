"""Adam against a NumPy float64 reference of Kingma and Ba 2015, Algorithm 1."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.optimization import adam


@pytest.mark.parametrize(('decay', 'beta_2'), [(0.0, 0.8), (0.4, 0.95)])
def test_three_steps_equal_reference(decay, beta_2):
  """With a decoupled decay: Loshchilov and Hutter 2019, Algorithm 2."""
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
      v[name] = beta_2 * v[name] + (1 - beta_2) * g**2
      step = m[name] / (1 - 0.9**t) / (np.sqrt(v[name] / (1 - beta_2**t)) + 1e-8)
      own_decay = 0.0 if name == 'b' else decay
      weights[name] = weights[name] - 0.2 * (step + own_decay * weights[name])
    grads = {name: tf.constant(g) for name, g in grads.items()}
    params, state = adam.update(
      params, state, grads, 0.2, beta_2=beta_2, weight_decay=decay
    )
  for name, w in weights.items():
    np.testing.assert_allclose(params[name], w, rtol=1e-12)
  assert state['step'].numpy() == 3
