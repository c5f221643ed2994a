"""FixMatch's weak and strong augmentation: shifts and flips; RandAugment and Cutout.

Kihyuk Sohn et al. FixMatch: Simplifying Semi-Supervised Learning with Consistency and
Confidence. NeurIPS 2020, Section 2.3 and Appendix D. Cutout: Terrance DeVries, Graham
W. Taylor. Improved Regularization of Convolutional Neural Networks with Cutout. 2017.

As in `byol`, all draws of an example come from (round seed, example id), so that its
views depend neither on the batch nor on the client that it is in.

Deviations: the strong view starts from a weak view with its own draws, as in the
published program. CTAugment, which learns its magnitudes, is left out.
"""

import dataclasses

import tensorflow as tf

from tff_ssl.augment import byol
from tff_ssl.augment import randaugment
from tff_ssl.augment import randomness
from tff_ssl.augment import warp
from tff_ssl.computing import kinds

# Other salts than those of the views (0) and the masks (1), for the same seed.
_WEAK_SALT = 2
_STRONG_SALT = 3
_WEAK_DRAWS = 3
_CUTOUT_DRAWS = 3


@dataclasses.dataclass(frozen=True)
class WeakStrongConfig(kinds.Kind):
  """What weak and strong views are drawn from.

  Attributes:
    flip_probability: How often left and right are mirrored; 0 where sides matter, as
      for digits.
    translation: Greatest shift, in parts of the image.
    operations: RandAugment's operations of a strong view; 0: none.
    cutout: Greatest side of the grey square, in parts of the image's; 0: none is cut.
  """

  flip_probability: kinds.Fraction = 0.5
  translation: kinds.Fraction = 0.125
  operations: kinds.Natural = 2
  cutout: kinds.Fraction = 0.5


def weak_view(
  images: tf.Tensor,
  example_id: tf.Tensor,
  round_seed: tf.Tensor,
  config: WeakStrongConfig,
) -> tf.Tensor:
  """Returns a weakly augmented view of each image.

  Args:
    images: [n, H, W, C], uint8 in [0, 255] or floating in [0, 1], C = 1 or 3; n may be
      unknown or 0.
    example_id: int64 [n], unique over the whole data set.
    round_seed: int32 [2].
    config: What to draw from.

  Returns:
    float32 [n, H, W, C] in [0, 1].
  """
  draws = _draws(round_seed, example_id, _WEAK_DRAWS, _WEAK_SALT)
  return _weak(byol.to_float(images), draws, config)


def strong_view(
  images: tf.Tensor,
  example_id: tf.Tensor,
  round_seed: tf.Tensor,
  config: WeakStrongConfig,
) -> tf.Tensor:
  """Returns a strongly augmented view of each image; arguments as in `weak_view`."""
  count = _WEAK_DRAWS + 2 * config.operations + _CUTOUT_DRAWS
  draws = _draws(round_seed, example_id, count, _STRONG_SALT)
  result = _weak(byol.to_float(images), draws[:_WEAK_DRAWS], config)
  rest = draws[_WEAK_DRAWS:]
  for k in range(config.operations):
    result = randaugment.apply(result, rest[2 * k], rest[2 * k + 1])
  if config.cutout:
    result = _cutout(result, rest[2 * config.operations :], config.cutout)
  return tf.clip_by_value(result, 0.0, 1.0)


def _draws(
  round_seed: tf.Tensor, example_id: tf.Tensor, count: int, salt: int
) -> list[tf.Tensor]:
  """Uniform draws, `count` of float64 [n]; `byol` says why float64."""
  draws = randomness.uniforms(round_seed, example_id, count, salt)
  return tf.unstack(tf.cast(draws, tf.float64), axis=1)


def _weak(
  images: tf.Tensor, draws: list[tf.Tensor], config: WeakStrongConfig
) -> tf.Tensor:
  """Mirrors and shifts by whole pixels; the border is filled by reflection."""
  flip, right, down = draws
  height, width = images.shape[1:3]
  sign = 1.0 - 2.0 * tf.cast(flip < config.flip_probability, tf.float64)
  zero = tf.zeros_like(sign)
  matrix = tf.stack(
    [tf.stack([sign, zero], axis=1), tf.stack([zero, tf.ones_like(sign)], axis=1)],
    axis=1,
  )
  shift = tf.stack(
    [
      tf.round((2.0 * draw - 1.0) * config.translation * size)
      for draw, size in ((right, width), (down, height))
    ],
    axis=1,
  )
  return warp.affine(images, matrix, shift, fill='REFLECT')


def _cutout(images: tf.Tensor, draws: list[tf.Tensor], largest: float) -> tf.Tensor:
  """Greys a square of each image, which may reach over the border."""
  across, down, side = draws
  height, width = images.shape[1:3]

  def inside(draw: tf.Tensor, size: int) -> tf.Tensor:
    pixel = tf.range(size, dtype=tf.float64) + 0.5
    distance = tf.abs(pixel[tf.newaxis, :] - (draw * size)[:, tf.newaxis])
    return distance < (side * largest * size / 2.0)[:, tf.newaxis]

  rows, columns = inside(down, height), inside(across, width)
  cut = tf.logical_and(rows[:, :, tf.newaxis], columns[:, tf.newaxis, :])
  return tf.where(cut[..., tf.newaxis], tf.constant(0.5, tf.float32), images)
