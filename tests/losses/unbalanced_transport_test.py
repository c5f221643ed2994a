"""Unbalanced transport against its minimum by SciPy, closed forms and limits."""

import numpy as np
import pytest
from scipy import optimize
import tensorflow as tf

from tff_ssl.losses import unbalanced_transport

# Traced: in eager mode the loops take seconds.
_plan = tf.function(unbalanced_transport.plan, autograph=False)


def _cost(n: int, m: int) -> np.ndarray:
  return np.random.default_rng(n + m).uniform(0, 2, size=(n, m))


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
  return float(np.sum(p * np.log(p / q) - p + q))


def _objective(plan: np.ndarray, cost: np.ndarray, epsilon: float, tau: float) -> float:
  n, m = cost.shape
  a, b = np.full(n, 1 / n), np.full(m, 1 / m)
  marginals = _divergence(plan.sum(1), a) + _divergence(plan.sum(0), b)
  entropy = _divergence(plan, np.outer(a, b))
  return float(np.sum(plan * cost)) + epsilon * entropy + tau * marginals


@pytest.mark.parametrize(('epsilon', 'tau'), [(0.2, 1.0), (0.5, 0.3)])
def test_the_plan_minimises_its_objective(epsilon, tau):
  cost = _cost(3, 4)
  got = _plan(tf.constant(cost), epsilon, tau, 500).numpy()

  def of_logarithms(x):
    return _objective(np.exp(x).reshape(cost.shape), cost, epsilon, tau)

  found = optimize.minimize(of_logarithms, np.full(12, -2.5), options={'gtol': 1e-9})
  np.testing.assert_allclose(got.ravel(), np.exp(found.x), rtol=1e-4, atol=1e-7)
  default = _plan(tf.constant(cost), epsilon, tau)
  np.testing.assert_allclose(default, got, rtol=1e-3)


def test_one_point_each_moves_the_mass_of_the_closed_form():
  """The derivative by the mass, c + (epsilon + 2 tau) log m, is 0."""
  cost, epsilon, tau = 0.7, 0.1, 0.4
  got = _plan(tf.constant([[cost]]), epsilon, tau, 200)
  expected = np.exp(-cost / (epsilon + 2 * tau))
  np.testing.assert_allclose(got, [[expected]], rtol=1e-5)


def test_a_large_tau_keeps_both_marginals():
  cost = tf.constant(_cost(5, 5))
  got = _plan(cost, 0.1, 1e5, 2000).numpy()
  np.testing.assert_allclose(got.sum(0), np.full(5, 0.2), rtol=1e-3)
  np.testing.assert_allclose(got.sum(1), np.full(5, 0.2), rtol=1e-3)


def test_the_gradient_is_that_of_the_minimum():
  """By differences of the objective at the plans of moved encodings."""
  generator = np.random.default_rng(0)
  x = generator.normal(size=(4, 3))
  points = generator.normal(size=(4, 3))
  points /= np.linalg.norm(points, axis=1, keepdims=True)
  epsilon, tau = 0.2, 0.5

  def minimum(x):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cost = ((unit[:, np.newaxis] - points) ** 2).sum(-1) / 2
    plan = _plan(tf.constant(cost), epsilon, tau).numpy()
    return _objective(plan, cost, epsilon, tau)

  variable = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(variable)
    loss = unbalanced_transport.dispersion(variable, tf.constant(points), epsilon, tau)
  expected = optimize.approx_fprime(
    x.ravel(), lambda flat: minimum(flat.reshape(x.shape)), 1e-6
  )
  np.testing.assert_allclose(
    tape.gradient(loss, variable).numpy().ravel(), expected, rtol=1e-3, atol=1e-6
  )


def test_no_encodings_cost_nothing_and_no_cost_overflows():
  points = tf.math.l2_normalize(tf.ones([2, 3]), axis=1)
  for n, kept in ((0, 0), (2, 2)):
    x = tf.constant(np.eye(3, dtype=np.float32)[:kept])
    with tf.GradientTape() as tape:
      tape.watch(x)
      loss = unbalanced_transport.dispersion(x, points[:n], 1e-3)
    assert np.isfinite(float(loss)) and (float(loss) > 0) == (n > 0)
    assert np.isfinite(tape.gradient(loss, x).numpy()).all()


def test_a_cost_that_is_no_matrix_is_refused():
  with pytest.raises(ValueError, match='The cost has shape'):
    unbalanced_transport.plan(tf.zeros([2]))
