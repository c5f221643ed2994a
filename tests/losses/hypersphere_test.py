"""Tests of alignment and uniformity against their definitions, pair by pair."""

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tff_ssl.losses import hypersphere


def _unit(n: int, seed: int = 0) -> np.ndarray:
  x = np.random.default_rng(seed).normal(size=(n, 4))
  return x / np.linalg.norm(x, axis=1, keepdims=True)


def _uniformity(x: np.ndarray, t: float) -> float:
  potentials = [
    np.exp(-t * np.sum((a - b) ** 2))
    for i, a in enumerate(x)
    for j, b in enumerate(x)
    if i != j
  ]
  return float(np.log(np.mean(potentials)))


@pytest.mark.parametrize('t', [0.5, 2.0])
@pytest.mark.parametrize('n', [2, 7])
def test_uniformity_is_the_mean_over_ordered_pairs(n, t):
  x = _unit(n)
  got = hypersphere.uniformity(tf.constant(3.0 * x), t)
  np.testing.assert_allclose(got, _uniformity(x, t), rtol=1e-12)


def test_alignment_is_the_mean_squared_distance_of_directions():
  f, g = _unit(5), _unit(5, seed=1)
  got = hypersphere.alignment(tf.constant(2.0 * f), tf.constant(g))
  np.testing.assert_allclose(got, np.mean(np.sum((f - g) ** 2, axis=1)), rtol=1e-12)


def test_limits():
  x = tf.constant([[1.0, 0.0], [-1.0, 0.0]], tf.float64)
  assert float(hypersphere.uniformity(x)) == pytest.approx(-8.0)
  assert float(hypersphere.uniformity(tf.ones([3, 2], tf.float64))) == pytest.approx(
    0.0
  )
  assert float(hypersphere.alignment(x, x)) == 0.0
  assert float(hypersphere.alignment(x, -x)) == pytest.approx(4.0)


@pytest.mark.parametrize('n', [0, 1])
def test_without_pairs_there_is_neither_loss_nor_gradient(n):
  x = tf.ones([n, 3])
  with tf.GradientTape() as tape:
    tape.watch(x)
    loss = hypersphere.uniformity(x) + hypersphere.alignment(x, x)
  assert float(loss) == 0.0
  np.testing.assert_array_equal(tape.gradient(loss, x), np.zeros([n, 3]))


def test_the_gradient_is_that_of_finite_differences():
  x = 2.0 * _unit(4)
  point = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(point)
    loss = hypersphere.uniformity(point)

  def by_hand(arrays):
    moved = arrays['x']
    return _uniformity(moved / np.linalg.norm(moved, axis=1)[:, None], 2.0)

  slopes = differences.gradient(by_hand, {'x': x})['x']
  np.testing.assert_allclose(tape.gradient(loss, point), slopes, rtol=1e-6, atol=1e-7)
