"""Assignments and transports against NumPy in float64, and their limits."""

import numpy as np
import pytest
from scipy import optimize
import tensorflow as tf

from tests.losses import references
from tff_ssl.losses import equal_clusters
from tff_ssl.losses import sinkhorn
from tff_ssl.losses import unbalanced_transport


def _scores(n: int, k: int = 5, seed: int = 0) -> np.ndarray:
  return np.random.default_rng(seed + n).uniform(-1, 1, size=(n, k))


@pytest.mark.parametrize('n', [1, 4, 9])
@pytest.mark.parametrize(('epsilon', 'iterations'), [(0.05, 3), (0.5, 1), (0.1, 0)])
def test_assignments_equal_the_pseudocode(n, epsilon, iterations):
  got = sinkhorn.assignments(tf.constant(_scores(n)), epsilon, iterations)
  expected = references.sinkhorn(_scores(n), epsilon, iterations)
  np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_the_paper_s_temperature_and_iterations_are_the_default():
  """Caron et al. 2020, Section 3.1 and Appendix A.1: 0.05, and 3."""
  got = sinkhorn.assignments(tf.constant(_scores(4)))
  np.testing.assert_allclose(got, references.sinkhorn(_scores(4), 0.05, 3), rtol=1e-9)


def test_small_epsilon_does_not_overflow():
  q = sinkhorn.assignments(tf.constant(_scores(6), tf.float32), epsilon=1e-3)
  np.testing.assert_allclose(tf.reduce_sum(q, axis=1), np.ones(6), rtol=1e-5)


def test_scores_that_are_no_matrices_are_refused():
  x = tf.ones([2, 3])
  with pytest.raises(ValueError, match=r'have shape \(3,\); it must be \[n, K\]'):
    sinkhorn.assignments(x[0])


# Traced: in eager mode the loops take seconds.
_plan = tf.function(unbalanced_transport.plan, autograph=False)


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
  cost = np.random.default_rng(7).uniform(0, 2, size=(3, 4))
  got = _plan(tf.constant(cost), epsilon, tau, 500).numpy()

  def of_logarithms(x):
    return _objective(np.exp(x).reshape(cost.shape), cost, epsilon, tau)

  found = optimize.minimize(of_logarithms, np.full(12, -2.5), options={'gtol': 1e-9})
  np.testing.assert_allclose(got.ravel(), np.exp(found.x), rtol=1e-4, atol=1e-7)
  default = _plan(tf.constant(cost), epsilon, tau)
  np.testing.assert_allclose(default, got, rtol=1e-3)


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


_traced = tf.function(equal_clusters.centroids, autograph=False)


def _points(n, d=4, seed=0):
  return references.unit(np.random.default_rng(seed).normal(size=(n, d)))


def equal_clusters_in_numpy(x, means, iterations=5, epsilon=0.04, scalings=10):
  """Sinkhorn-Knopp as in SwAV's appendix, then means of who is nearest."""
  n, k = len(x), len(means)
  for _ in range(iterations):
    q = np.exp((x @ means.T) / epsilon)
    for _ in range(scalings):
      q /= k * q.sum(axis=0, keepdims=True)
      q /= n * q.sum(axis=1, keepdims=True)
    nearest = q.argmax(axis=1)
    means = np.stack(
      [
        x[nearest == j].sum(0) / np.linalg.norm(x[nearest == j].sum(0))
        if (nearest == j).any()
        else means[j]
        for j in range(k)
      ]
    )
  return means


@pytest.mark.parametrize(('n', 'k'), [(20, 4), (5, 8), (1, 1)])
def test_centroids_equal_numpy(n, k):
  x, start = _points(n), _points(k, seed=1)
  got = _traced(tf.constant(x), tf.constant(start))
  np.testing.assert_allclose(got, equal_clusters_in_numpy(x, start), rtol=1e-9)


def test_clusters_that_are_apart_are_found_and_of_equal_size():
  centres = np.eye(4)[:3]
  noise = 0.05 * np.random.default_rng(2).normal(size=(30, 4))
  x = references.unit(np.repeat(centres, 10, axis=0) + noise)
  # Two begin in one cluster.
  start = x[[0, 1, 10]]
  got = _traced(tf.constant(x), tf.constant(start), 20).numpy()
  order = np.argmax(got @ centres.T, axis=1)
  assert sorted(order) == [0, 1, 2]
  np.testing.assert_allclose(got, centres[order], atol=0.06)


def test_no_gradient_flows_and_no_iterations_are_refused():
  x, start = tf.constant(_points(3)), tf.constant(_points(2))
  with tf.GradientTape() as tape:
    tape.watch((x, start))
    got = tf.reduce_sum(equal_clusters.centroids(x, start, 1))
  assert tape.gradient(got, (x, start)) == (None, None)
  with pytest.raises(ValueError, match='iterations is 0'):
    equal_clusters.centroids(x, start, 0)
