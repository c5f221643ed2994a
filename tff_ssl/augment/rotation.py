"""Rotations by quarter turns, drawn for each example."""

import tensorflow as tf

from tff_ssl.augment import randomness

TURNS = 4
_SALT = 4


def draw(seed: tf.Tensor, example_id: tf.Tensor) -> tf.Tensor:
  """Returns how many quarter turns each example makes, int32 [n] in [0, 4).

  Args:
    seed: int32 [2], the round's.
    example_id: int64 [n].
  """
  uniform = randomness.uniforms(seed, example_id, 1, _SALT)[:, 0]
  return tf.cast(TURNS * uniform, tf.int32)


def rotate(images: tf.Tensor, turns: tf.Tensor) -> tf.Tensor:
  """Returns images rotated counter-clockwise.

  Args:
    images: [n, H, H, C].
    turns: int32 [n], quarter turns in [0, 4).

  Raises:
    ValueError: If the images are not squares.
  """
  height, width = images.shape[1:3]
  if images.shape.rank != 4 or height != width:
    raise ValueError(
      f'The images have shape {images.shape}; to be rotated it must be [n, H, H, C].'
    )
  all_turns = tf.stack([tf.image.rot90(images, k) for k in range(TURNS)], axis=1)
  return tf.gather(all_turns, turns, axis=1, batch_dims=1)
