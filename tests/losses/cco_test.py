"""Tests of CCO against NumPy float64, its limiting cases and the DCCO identity."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.losses import cco
from tff_ssl.losses import statistics_loss
from tff_ssl.losses import vicreg

# With the moments inside each view, and without.
_WITHIN = vicreg.VicregLoss()
_statistics, _loss = cco.CcoLoss().statistics, cco.CcoLoss().loss


def _encodings(n: int, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
  rng = np.random.default_rng(seed)
  shared = rng.normal(size=(n, d))
  return shared + 0.3 * rng.normal(size=(n, d)), shared * 2.0 + 1.0


def test_statistics_around_a_reference_are_those_of_moved_encodings():
  f, g = _encodings(5)
  reference = {
    'f': np.array([1.0, -2.0, 3.0, 0.5]),
    'g': np.array([4.0, 0.0, 1.0, 2.0]),
  }
  around = statistics_loss.around(tf.constant(f), tf.constant(g), reference)
  got = _WITHIN.statistics(*around)
  f, g = f - reference['f'], g - reference['g']
  np.testing.assert_allclose(got['mean_f'], f.mean(axis=0), rtol=1e-12)
  np.testing.assert_allclose(got['square_g'], (g**2).mean(axis=0), rtol=1e-12)
  np.testing.assert_allclose(got['cross'], f.T @ g / 5, rtol=1e-12)
  np.testing.assert_allclose(got['within_f'], f.T @ f / 5, rtol=1e-12)
  # And so they are when moved afterwards.
  shift = {name: -value for name, value in reference.items()}
  back = _WITHIN.moved(got, {name: tf.constant(value) for name, value in shift.items()})
  f, g = _encodings(5)
  expected = _WITHIN.statistics(tf.constant(f), tf.constant(g))
  assert list(back) == list(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(back[name], value, rtol=1e-11, atol=1e-12, err_msg=name)


@pytest.mark.parametrize('shift', [300.0, 1000.0])
def test_float32_keeps_the_gradient_of_shifted_encodings_around_a_reference(shift):
  """The gradient in the encodings, which the shift does not change, in NumPy's type."""
  f, g = (x.astype(np.float32) for x in _encodings(64))
  f, g = (np.round((x + shift) * 2**13) / 2**13 for x in (f, g))  # Exact in float32.

  def gradient(dtype, reference):
    x, y = tf.constant(f, dtype), tf.constant(g, dtype)
    with tf.GradientTape() as tape:
      tape.watch(x)
      loss = _loss(_statistics(*statistics_loss.around(x, y, reference)))
    return tape.gradient(loss, x).numpy().astype(np.float64)

  expected = gradient(np.float64, None)
  # A mean of other examples, half a standard deviation off.
  near = {'f': tf.fill([4], shift + 0.5), 'g': tf.fill([4], shift + 0.5)}

  def error(got):
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)

  assert error(gradient(np.float32, near)) < 1e-5
  assert error(gradient(np.float32, None)) > 1e-2


def test_perfectly_decorrelated_pair_has_no_loss():
  # Columns of a Hadamard matrix: zero mean, unit variance, orthogonal.
  f = tf.constant([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], tf.float64)
  c = cco.correlation(_statistics(f, f), epsilon=0.0)
  np.testing.assert_allclose(c, np.eye(3), atol=1e-15)
  assert cco.CcoLoss(epsilon=0.0).loss(_statistics(f, f)) == 0.0


def test_one_dimension_has_no_off_diagonal_term():
  f, g = _encodings(5, d=1)
  loss = _loss(_statistics(tf.constant(f), tf.constant(g)))
  c = cco.correlation(_statistics(tf.constant(f), tf.constant(g)))
  np.testing.assert_allclose(loss, (1.0 - c[0, 0]) ** 2, rtol=1e-14)


@pytest.mark.parametrize('n', [0, 1, 3])
def test_collapsed_encodings_have_no_correlation(n):
  # 0.1 squared is rounded, so the variance is not exactly 0 in float32.
  x = tf.fill([n, 4], 0.1)
  loss = _loss(_statistics(x, 3.0 * x))
  np.testing.assert_allclose(loss, 4.0, atol=1e-2)


def test_negative_variance_by_rounding_is_finite():
  statistics = _statistics(tf.fill([2, 3], 0.1), tf.fill([2, 3], 0.1))
  square = statistics['square_f'] - 1e-3
  with tf.GradientTape() as tape:
    tape.watch(square)
    loss = _loss({**statistics, 'square_f': square})
  assert np.isfinite(loss)
  assert np.isfinite(tape.gradient(loss, square)).all()
