"""Tests of the views of vectors: their distribution, limiting cases and seeds."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.augment import vectors

_SEED = tf.constant([3, 4])


def _batch(n: int = 4, d: int = 6) -> tuple[tf.Tensor, tf.Tensor]:
  features = np.random.default_rng(n).normal(size=(n, d)).astype(np.float32)
  return tf.constant(features), tf.range(100, 100 + n, dtype=tf.int64)


def test_nothing_is_exactly_the_input():
  features, ids = _batch()
  view = vectors.view(features, ids, _SEED, vectors.VectorConfig(0.0, 0.0))
  np.testing.assert_array_equal(view, features)


def test_the_noise_is_normal():
  """Moments of 40,000 draws; the standard error of the mean is 0.005 deviations."""
  features, ids = _batch(400, 100)
  config = vectors.VectorConfig(noise=0.5, mask_probability=0.0)
  noise = vectors.view(features, ids, _SEED, config).numpy() - features.numpy()
  assert np.mean(noise) == pytest.approx(0, abs=0.01)
  assert np.std(noise) == pytest.approx(0.5, rel=0.02)
  assert np.mean(noise**4) / 0.5**4 == pytest.approx(3, rel=0.1)
  correlations = np.corrcoef(noise.T) - np.eye(100)
  assert np.abs(correlations).max() < 0.3  # Six standard errors of 1 / 20.


def test_the_share_of_hidden_features():
  features, ids = _batch(400, 100)
  view = vectors.view(features, ids, _SEED, vectors.VectorConfig(0.0, 0.3)).numpy()
  assert np.mean(view == 0) == pytest.approx(0.3, abs=0.01)
  kept = view != 0
  np.testing.assert_array_equal(view[kept], features.numpy()[kept])
  all_hidden = vectors.view(features, ids, _SEED, vectors.VectorConfig(0.1, 1.0))
  assert not np.any(all_hidden)


def test_wrong_arguments_are_named():
  features, ids = _batch()
  with pytest.raises(ValueError, match=r'Features are float32 of shape \(4'):
    vectors.view(features[:, :, tf.newaxis], ids, _SEED, vectors.NOISE)
  with pytest.raises(ValueError, match='number is -1; it must be at least 0'):
    vectors.view(features, ids, _SEED, vectors.NOISE, -1)
