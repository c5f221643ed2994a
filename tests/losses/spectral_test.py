"""Tests of the spectral loss against NumPy float64 and its limits."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.losses import spectral

# No encoding of these tests is that long.
_SPECTRAL = spectral.SpectralLoss(mu=1e6)


def _encodings(n, d=3, seed=0):
  generator = np.random.default_rng(seed)
  f = generator.normal(size=(n, d))
  return f, f + 0.3 * generator.normal(size=(n, d))


def test_long_encodings_are_rescaled():
  x = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
  loss = spectral.SpectralLoss(4.0)
  got = loss.statistics(tf.constant(x), tf.constant(x))
  rescaled = np.array([[1.2, 1.6], [0.3, 0.4], [0.0, 0.0]])
  expected = rescaled.T @ rescaled / 3
  np.testing.assert_allclose(got['correlation'], expected, rtol=1e-12)
  # One example's share of the matrix is mu at most.
  share = loss.statistics(tf.constant(x[:1]), tf.constant(x[:1]))['correlation']
  assert np.linalg.norm(share) <= 4.0 * (1 + 1e-12)


@pytest.mark.parametrize('own', [1, 2, 5])
def test_beside_others_the_gradient_is_that_of_the_union(own):
  f, g = (tf.constant(x) for x in _encodings(5))
  rest = _SPECTRAL.statistics(f[own:], g[own:])['correlation']
  with tf.GradientTape(persistent=True) as tape:
    tape.watch([f, g])
    whole = _SPECTRAL.loss(_SPECTRAL.statistics(f, g))
    local = _SPECTRAL.statistics(f[:own], g[:own])
    share = tf.constant(own / 5, tf.float64)
    beside = spectral.loss_beside_others(local, rest, share)
  for x in (f, g):
    expected = tape.gradient(whole, x)[:own]
    got = own / 5 * tape.gradient(beside, x)[:own]
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-14)


def test_statistics_of_others_get_no_gradient():
  statistics = _SPECTRAL.statistics(*map(tf.constant, _encodings(4)))
  others = tf.constant(np.eye(3))
  with tf.GradientTape() as tape:
    tape.watch(others)
    loss = spectral.loss_beside_others(statistics, others, tf.constant(0.5, tf.float64))
  assert tape.gradient(loss, others) is None
