"""Tests of the loss of masked autoencoders, against NumPy in float64."""

import numpy as np
import tensorflow as tf

from tests.encoders import numpy_transformer
from tff_ssl.losses import reconstruction


def _normal(*shape):
  return np.random.default_rng(sum(shape)).normal(size=shape)


def test_patches_are_cut_row_by_row():
  images = _normal(2, 4, 6, 3)
  got = reconstruction.patchify(tf.constant(images), 2)
  np.testing.assert_array_equal(got, numpy_transformer.patches(images, 2))


def test_patches_are_normalised_one_by_one():
  patches = 3 + 2 * _normal(2, 5, 12)
  got = reconstruction.normalise_patches(tf.constant(patches))
  mean, variance = patches.mean(-1, keepdims=True), patches.var(-1, keepdims=True)
  np.testing.assert_allclose(got, (patches - mean) / np.sqrt(variance + 1e-6), 1e-10)


def test_a_patch_of_one_colour_is_zero():
  got = reconstruction.normalise_patches(tf.fill([1, 1, 12], 0.25))
  np.testing.assert_array_equal(got, 0.0)


def test_errors_are_of_masked_patches_alone():
  predictions, targets = _normal(3, 5, 4), _normal(3, 5, 5)[..., :4]
  masked = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]], np.float64)
  got = reconstruction.masked_errors(*map(tf.constant, (predictions, targets, masked)))
  squares = (predictions - targets) ** 2
  expected = [squares[0, [0, 2, 3]].mean(), squares[1, 4].mean(), 0.0]
  np.testing.assert_allclose(got, expected, rtol=1e-10)
