"""Vectors of bounded length, so that each vector's share of a sum is bounded too.

And the check of encodings that come in pairs.
"""

import tensorflow as tf


def check_alike(f: tf.Tensor, g: tf.Tensor) -> None:
  """Raises ValueError unless the encodings of two views are matrices of one shape."""
  if f.shape.rank != 2 or not f.shape.is_compatible_with(g.shape):
    raise ValueError(
      f'The encodings have shapes {f.shape} and {g.shape}; both must be [n, d].'
    )


def at_most(vectors: tf.Tensor, length: float) -> tf.Tensor:
  """Rescales the vectors that are longer than a length to that length.

  This is the projection onto the ball of that radius around 0. Vectors within it are
  returned as they are, to the bit.

  Args:
    vectors: [n, d]; n may be 0. Vectors that are not finite stay so.
    length: Above 0.

  Returns:
    [n, d], of lengths of at most `length`, up to rounding.
  """
  square = tf.reduce_sum(tf.square(vectors), axis=1, keepdims=True)
  is_longer = square > length**2
  # Not the root of 0, whose gradient is not finite.
  root = tf.sqrt(tf.where(is_longer, square, tf.ones([], square.dtype)))
  return tf.where(is_longer, vectors * (length / root), vectors)
