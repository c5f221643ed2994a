"""Features that learn nothing: pixels, vectors, and their principal components."""

import numpy as np
import pytest

from tff_ssl.evaluation import inputs


def test_small_images_are_their_pixels_in_0_to_1():
  images = np.random.default_rng(0).integers(0, 256, [3, 16, 5, 2], dtype=np.uint8)
  np.testing.assert_allclose(
    inputs.flat(images), images.reshape(3, -1) / 255, rtol=1e-6
  )
  assert inputs.name_of(images) == 'pixels'
  assert inputs.note(images) == ''


def test_large_images_are_the_means_of_areas():
  images = np.random.default_rng(0).integers(0, 256, [2, 64, 32, 3], dtype=np.uint8)
  # 16 x 8 areas of 4 x 4 pixels.
  want = images.reshape(2, 16, 4, 8, 4, 3).mean(axis=(2, 4)) / 255
  np.testing.assert_allclose(inputs.flat(images), want.reshape(2, -1), rtol=1e-5)
  assert inputs.note(images) == 'pixels: images of 64 x 32 reduced to 16 x 8 by areas'


def test_vectors_stay_as_they_are():
  vectors = np.random.default_rng(0).normal(size=[4, 3])
  np.testing.assert_array_equal(inputs.flat(vectors), vectors.astype(np.float32))
  assert inputs.name_of(vectors) == 'features'


@pytest.mark.parametrize('width', [2, 9])
def test_principal_components_are_those_of_the_singular_values(width):
  random = np.random.default_rng(0)
  known = random.normal(size=[50, 4]) * [3.0, 1.0, 0.3, 5.0]
  others = random.normal(size=[7, 4])
  found = inputs.principal_components(known, width)(others)
  mean = known.mean(axis=0)
  _, _, axes = np.linalg.svd(known - mean)
  want = (others - mean) @ axes[:width].T
  assert found.shape == (7, min(width, 4))
  np.testing.assert_allclose(np.abs(found), np.abs(want), rtol=1e-4, atol=1e-5)
