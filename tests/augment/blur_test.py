"""Tests of the Gaussian blur against explicit sums over pixels."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.augment import blur


def _blur(images, sigma_draw, probability=1.0, sigma=(0.1, 2.0), apply_draw=0.5):
  m = len(images)
  return blur.gaussian_blur(
    tf.constant(images, tf.float32),
    tf.fill([m], tf.constant(apply_draw, tf.float64)),
    tf.constant(sigma_draw, tf.float64),
    tf.fill([m], tf.constant(probability, tf.float64)),
    sigma,
  ).numpy()


@pytest.mark.parametrize(
  ('length', 'radius'), [(8, 1), (28, 1), (32, 1), (64, 3), (96, 4), (224, 11)]
)
def test_kernel_is_a_tenth_of_the_image(length, radius):
  assert blur.kernel_radius(length) == radius


@pytest.mark.parametrize(('height', 'width'), [(8, 8), (40, 24)])
def test_equals_sums_over_the_window(height, width):
  image = np.random.default_rng(0).uniform(size=(height, width, 2))
  sigma = 0.1 + 1.9 * 0.4
  radius = blur.kernel_radius(height)
  expected = np.zeros_like(image)
  for i in range(height):
    for j in range(width):
      total = 0.0
      for k in range(max(0, i - radius), min(height, i + radius + 1)):
        for m in range(max(0, j - radius), min(width, j + radius + 1)):
          weight = np.exp(-((k - i) ** 2 + (m - j) ** 2) / (2 * sigma**2))
          expected[i, j] += weight * image[k, m]
          total += weight
      expected[i, j] /= total
  np.testing.assert_allclose(_blur(image[None], [0.4])[0], expected, atol=1e-6)


def test_images_that_are_not_drawn_stay_exactly():
  images = np.random.default_rng(0).uniform(size=(2, 32, 32, 3)).astype(np.float32)
  np.testing.assert_array_equal(_blur(images, [0.9, 0.9], probability=0.4), images)
  assert np.abs(_blur(images, [0.9, 0.9], probability=0.6) - images).max() > 0.1


def test_white_stays_white():
  white = np.ones((3, 32, 32, 3))
  got = _blur(white, [0.1, 0.5, 0.99])
  np.testing.assert_allclose(got, white, atol=1e-6)
  assert got.max() <= 1.0
