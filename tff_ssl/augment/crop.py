"""Random resized crop and horizontal flip as one bilinear resampling.

Christian Szegedy et al. Going Deeper with Convolutions. CVPR 2015, Section 6, in the
form of Jean-Bastien Grill et al., Bootstrap Your Own Latent, NeurIPS 2020, Appendix B.
"""

from collections.abc import Mapping
import math

import tensorflow as tf

# `tf.image.crop_and_resize` paints samples outside the image black, and float32 can
# carry the last sample of a box that ends on the border past it. Boxes stay this far
# inside, in parts of the image: several times that rounding error, and invisible.
_MARGIN = 1e-6


def crop_size(
  draws: Mapping[str, tf.Tensor],
  aspect: float,
  scale: tuple[float, float],
  ratio: tuple[float, float],
) -> tuple[tf.Tensor, tf.Tensor]:
  """Height and width of random crops, in parts of the image.

  The area is uniform; the ratio is log-uniform over the ratios with which a crop of
  that area fits into the image.

  Args:
    draws: `area` and `ratio`, each float64 [m], uniform in [0, 1).
    aspect: Width over height of the image, in pixels.
    scale: Least and greatest area, in parts of the image's.
    ratio: Least and greatest width over height of the crop, in pixels.

  Returns:
    (height [m], width [m]), in (0, 1].
  """
  area = scale[0] + (scale[1] - scale[0]) * draws['area']
  # In parts of the image a crop is sqrt(area * ratio / aspect) wide, so a ratio fits
  # between area * aspect (height 1) and aspect / area (width 1).
  low = tf.math.log(tf.clip_by_value(area * aspect, *ratio))
  high = tf.math.log(tf.clip_by_value(aspect / area, *ratio))
  stretch = tf.exp(0.5 * (low + (high - low) * draws['ratio'])) / math.sqrt(aspect)
  side = tf.sqrt(area)
  # In an image more elongated than any allowed ratio, the crop ends at the border.
  return tf.minimum(side / stretch, 1.0), tf.minimum(side * stretch, 1.0)


def _interval(
  length: tf.Tensor, position: tf.Tensor, exact: bool
) -> tuple[tf.Tensor, tf.Tensor]:
  """Start and end of a crop along one axis; `exact` if it is known to be [0, 1]."""
  start = (1.0 - length) * position
  end = start + length
  if exact:
    return start, end
  return (
    tf.clip_by_value(start, _MARGIN, 1.0 - _MARGIN),
    tf.clip_by_value(end, _MARGIN, 1.0 - _MARGIN),
  )


def crop_and_flip(
  images: tf.Tensor,
  draws: Mapping[str, tf.Tensor],
  size: tuple[int, int],
  scale: tuple[float, float],
  ratio: tuple[float, float],
  flip_probability: float,
) -> tf.Tensor:
  """Crops, flips and resizes, each example by its own draws.

  Boxes are measured between the centres of the border pixels (the convention of
  `tf.image.crop_and_resize`), so the whole image resized to itself is itself.

  Args:
    images: [n, H, W, C] of any numeric dtype, H, W and C known.
    draws: `area`, `ratio`, `top`, `left` and `flip`, each float64 [m], uniform in
      [0, 1); m is a multiple of n, and row i belongs to image i mod n.
    size: Height and width of the result, in pixels.
    scale: Least and greatest area of a crop, in parts of the image's; (1, 1) keeps
      the whole image, whatever the ratio.
    ratio: Least and greatest width over height of a crop, in pixels.
    flip_probability: Probability of mirroring left and right.

  Returns:
    float32 [m, *size, C], in the units of `images`.
  """
  height, width = images.shape[1], images.shape[2]
  whole = scale[0] == 1.0
  if whole:
    crop_height = crop_width = tf.ones_like(draws['area'])
  else:
    crop_height, crop_width = crop_size(draws, width / height, scale, ratio)
  top, bottom = _interval(crop_height, draws['top'], whole and size[0] == height)
  left, right = _interval(crop_width, draws['left'], whole and size[1] == width)
  flip = draws['flip'] < flip_probability
  # A box whose left edge is right of its right edge is read backwards: a flip.
  boxes = tf.stack(
    [top, tf.where(flip, right, left), bottom, tf.where(flip, left, right)], axis=1
  )
  image_of_row = tf.math.floormod(tf.range(tf.shape(boxes)[0]), tf.shape(images)[0])
  return tf.image.crop_and_resize(
    images, tf.cast(boxes, tf.float32), image_of_row, size
  )
