"""Vectors of unit length, and of bounded length, with bounded gradients.

And the check of encodings that come in pairs.
"""

import tensorflow as tf

# A vector is short if the root mean square of its entries is below the first, and its
# length below the second. Encodings of the programs' rows are 2.3 to 400 long in their
# first steps, prototypes 0.9 to 1.1.
_SHORT_ENTRY, _SHORT = 0.02, 0.25


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


def unit(vectors: tf.Tensor, axis: int = 1, epsilon: float = 1e-12) -> tf.Tensor:
  """Returns vectors of unit length; one of length 0 stays 0.

  The value is x / |x|. Its derivative is as long as 1 / |x|, which has no bound: an
  encoder without biases encodes a black image as 0, from which a step is a million
  times too long. Here the derivative of a vector shorter than L is damped:

      min(1, (|x| / L)^2) (I - x x^T / |x|^2) / |x|,   L = min(0.25, 0.02 sqrt(d))

  It is at most 1 / L, and |x| / L^2 below L. So a vector of length 0, which has no
  direction, has no gradient; any other that is short moves by the same share of its
  length as one of length L. The factor is a constant to second derivatives.

  Args:
    vectors: Floating, of any shape.
    axis: Of a vector's entries.
    epsilon: A vector of a squared length below is divided by the root of this.
  """
  square = tf.reduce_sum(tf.square(vectors), axis, keepdims=True)
  entries = tf.cast(tf.shape(vectors)[axis], vectors.dtype)
  least = tf.minimum(_SHORT_ENTRY**2 * entries, _SHORT**2)
  share = tf.stop_gradient(tf.minimum(square / least, 1))
  fixed = tf.stop_gradient(vectors)
  # The vectors themselves, to the bit.
  damped = fixed + share * (vectors - fixed)
  return tf.math.l2_normalize(damped, axis, epsilon)
