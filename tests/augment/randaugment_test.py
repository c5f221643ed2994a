"""RandAugment's operations, against Pillow's of the same names."""

import numpy as np
from PIL import Image
from PIL import ImageEnhance
from PIL import ImageOps
import pytest
import tensorflow as tf

from tff_ssl.augment import randaugment

_IMAGES = np.random.default_rng(0).integers(20, 200, (3, 8, 8, 3)).astype(np.uint8)


def _apply(name, magnitude, images=_IMAGES):
  """Returns what one operation makes of all images, in [0, 255]."""
  count = len(randaugment.OPERATIONS)
  place = (randaugment.OPERATIONS.index(name) + 0.5) / count
  result = randaugment.apply(
    tf.constant(images / 255, tf.float32),
    tf.fill([len(images)], tf.constant(place, tf.float64)),
    tf.fill([len(images)], tf.constant(magnitude, tf.float64)),
  )
  return 255 * result.numpy()


# The tolerance is Pillow's rounding to whole values, and of the mean of contrast.
@pytest.mark.parametrize(
  ('name', 'magnitude', 'pillow', 'tolerance'),
  [
    ('identity', 0.3, lambda image: image, 1e-4),
    ('autocontrast', 0.3, ImageOps.autocontrast, 1.01),
    ('equalize', 0.3, ImageOps.equalize, 1e-4),
    ('solarize', 0.5, lambda image: ImageOps.solarize(image, 128), 1e-4),
    ('posterize', 0.6, lambda image: ImageOps.posterize(image, 6), 1e-4),
    ('color', 0.5, lambda image: ImageEnhance.Color(image).enhance(0.5), 1.01),
    ('contrast', 0.5, lambda image: ImageEnhance.Contrast(image).enhance(0.5), 1.01),
    ('brightness', 0.5, lambda i: ImageEnhance.Brightness(i).enhance(0.5), 1.01),
    ('sharpness', 0.5, lambda i: ImageEnhance.Sharpness(i).enhance(0.5), 1.01),
  ],
)
def test_values_are_pillow_s(name, magnitude, pillow, tolerance):
  expected = [np.asarray(pillow(Image.fromarray(image)), float) for image in _IMAGES]
  np.testing.assert_allclose(_apply(name, magnitude), expected, atol=tolerance)


@pytest.mark.parametrize(
  'name', ['rotate', 'shear_x', 'shear_y', 'translate_x', 'translate_y']
)
def test_geometry_is_the_identity_at_the_middle_of_its_range(name):
  np.testing.assert_allclose(_apply(name, 0.5), _IMAGES, atol=1e-3)


# 2 by 3: what (x, y) of the result shows, in coordinates from the centre.
@pytest.mark.parametrize(
  ('name', 'matrix'),
  [
    # 30 degrees about the centre; 0.3 of the 8 pixels.
    ('rotate', [[0.75**0.5, -0.5, 0], [0.5, 0.75**0.5, 0]]),
    ('shear_x', [[1, 0.3, 0], [0, 1, 0]]),
    ('shear_y', [[1, 0, 0], [0.3, 1, 0]]),
    ('translate_x', [[1, 0, 2.4], [0, 1, 0]]),
    ('translate_y', [[1, 0, 0], [0, 1, 2.4]]),
  ],
)
def test_geometry_is_pillow_s_at_the_end_of_its_range(name, matrix):
  # With a grey frame, because Pillow repeats the frame around the image.
  images = np.pad(_IMAGES[:, 1:7, 1:7], [(0,), (1,), (1,), (0,)], constant_values=127)
  # Pillow's coordinates are from the corner of the image, which is 4 from its centre.
  coefficients = [(a, b, 4 - 4 * a - 4 * b + c) for a, b, c in matrix]
  expected = [
    Image.fromarray(image).transform(
      (8, 8),
      Image.Transform.AFFINE,
      np.ravel(coefficients),
      Image.Resampling.BILINEAR,
      fillcolor=(127, 127, 127),
    )
    for image in images
  ]
  got = _apply(name, 1.0, images)
  np.testing.assert_allclose(got, np.stack(expected).astype(float), atol=1.01)
