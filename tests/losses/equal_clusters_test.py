"""Clusters of equal size, against NumPy in float64 and of points that are apart."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tff_ssl.losses import equal_clusters

_traced = tf.function(equal_clusters.centroids, autograph=False)


def _points(n, d=4, seed=0):
  return references.unit(np.random.default_rng(seed).normal(size=(n, d)))


def expected(x, means, iterations=5, epsilon=0.04, scalings=10):
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
  np.testing.assert_allclose(got, expected(x, start), rtol=1e-9)


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
