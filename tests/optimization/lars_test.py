"""LARS against a NumPy float64 reference of You et al. 2017, Algorithm 1."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.optimization import lars


def _reference(w, v, g, rate, momentum, decay, adapted):
  ratio = 1.0
  if adapted:
    w_norm, g_norm = np.sqrt(np.sum(w**2)), np.sqrt(np.sum(g**2))
    if w_norm > 0 and g_norm > 0:
      ratio = 0.001 * w_norm / (g_norm + decay * w_norm)
    g = g + decay * w
  v = momentum * v + rate * ratio * g
  return w - v, v


@pytest.mark.parametrize('decay', [0.0, 0.1])
def test_three_steps_equal_reference(decay):
  random = np.random.default_rng(0)
  want = {'kernel': random.normal(size=[3, 2]), 'bias': random.normal(size=[2])}
  velocities = {name: np.zeros_like(w) for name, w in want.items()}
  params = collections.OrderedDict((n, tf.constant(w)) for n, w in want.items())
  state = lars.init(params)
  for rate in (0.5, 0.4, 0.3):
    grads = {name: random.normal(size=w.shape) for name, w in want.items()}
    params, state = lars.update(
      params,
      state,
      collections.OrderedDict((n, tf.constant(g)) for n, g in grads.items()),
      rate,
      momentum=0.8,
      weight_decay=decay,
    )
    for name in want:
      adapted = name == 'kernel'
      want[name], velocities[name] = _reference(
        want[name], velocities[name], grads[name], rate, 0.8, decay, adapted
      )
  assert list(params) == ['kernel', 'bias']
  for name in want:
    np.testing.assert_allclose(params[name], want[name], rtol=1e-12)
    np.testing.assert_allclose(state[name], velocities[name], rtol=1e-12)


_START = [[3.0, 4.0], [0.0, -12.0]]
_GRADIENTS = (
  [[1.0, -2.0], [2.0, 0.0]],
  [[0.5, 0.25], [-1.0, 2.0]],
  [[-1.0, 0.0], [0.0, 1.0]],
)


def _of_ours(decay, gradients):
  """Returns a parameter after a step with each gradient: of it, or given."""
  param = tf.constant(_START, tf.float64)
  velocity = lars.init(param)
  for gradient in gradients:
    gradient = gradient(param) if callable(gradient) else tf.constant(gradient)
    # The figures are of a rate of 0.5 and a coefficient of 0.02, in place of 0.001.
    param, velocity = lars.update(
      param, velocity, tf.cast(gradient, tf.float64), 10.0, weight_decay=decay
    )
  return param.numpy()


@pytest.mark.parametrize(
  ('decay', 'gradients', 'figures'),
  [
    (
      0.0,
      _GRADIENTS,
      [
        [2.9217335578767436, 4.208040091994759],
        [-0.12756036797903503, -12.307432637929155],
      ],
    ),
    (0.1, [lambda w: w / 4] * 3, [[2.833137, 3.777516], [0.0, -11.332548]]),
  ],
  ids=['without decay', 'gradients along the parameter'],
)
def test_equals_figures_of_optax(decay, gradients, figures):
  """As optax 0.2.8, lars(0.5, decay, trust_coefficient=0.02), computes in float64."""
  np.testing.assert_allclose(_of_ours(decay, gradients), figures, rtol=1e-12)


def test_with_decay_the_norms_of_the_paper_are_added_and_not_optax_s_vectors():
  """You et al. 2017, Eq. 6: |g| + decay |w|; optax 0.2.8 divides by |g + decay w|."""
  w, g = np.array(_START), np.array(_GRADIENTS[0])
  # What optax adds to the parameter in the first step, with a decay of 0.1.
  of_optax = [
    [-0.0542906218441734, 0.0668192268851365],
    [-0.08352403360642062, 0.050114420163852376],
  ]
  norm = np.linalg.norm
  ratio = norm(g + 0.1 * w) / (norm(g) + 0.1 * norm(w))
  got = _of_ours(0.1, _GRADIENTS[:1])
  np.testing.assert_allclose(got - w, ratio * np.array(of_optax), rtol=1e-10)
  assert ratio < 0.9


@pytest.mark.parametrize(
  'param, grad', [([[0.0, 0.0]], [[3.0, 4.0]]), ([[3.0, 4.0]], [[0.0, 0.0]])]
)
def test_zero_norm_has_trust_ratio_one(param, grad):
  param, grad = tf.constant(param), tf.constant(grad)
  assert lars.trust_ratio(param, grad).numpy() == 1.0
  stepped, _ = lars.update(param, lars.init(param), grad, 0.5)
  np.testing.assert_allclose(stepped, param - 0.5 * grad)


def test_takes_any_structure_in_a_tf_function():
  params = [tf.ones([2, 2]), (tf.ones([2]),)]
  step = tf.function(lambda p, s, g, rate: lars.update(p, s, g, rate))
  got, state = step(params, lars.init(params), params, tf.constant(1.0))
  # By hand: |w| = |g| = 2, so the ratio is 0.001; the vector takes plain SGD.
  np.testing.assert_allclose(got[0], 0.999 * np.ones([2, 2]))
  np.testing.assert_allclose(got[1][0], np.zeros([2]))
  np.testing.assert_allclose(state[1][0], np.ones([2]))
