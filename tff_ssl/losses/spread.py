"""How spread out encodings are: the numbers that tell a collapsed encoder.

`encoding_std` (Xinlei Chen, Kaiming He. Exploring Simple Siamese Representation
Learning. CVPR 2021, Section 4.1) fits losses on normalised encodings. Losses that
ignore a shift (CCO, VICReg) are judged by `effective_rank` (Olivier Roy, Martin
Vetterli. The effective rank: a measure of effective dimensionality. EUSIPCO 2007) with
`total_variance` beside it. All have forms that take means over examples, so that they
can be computed from what clients aggregate.
"""

import tensorflow as tf


def normalised_moments(
  encodings: tf.Tensor, mask: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
  """Means over examples of the L2-normalised encodings and of their squares.

  Args:
    encodings: [n, d]; n may be 0.
    mask: Optional [n] of 0 and 1 (any numeric dtype, or bool); examples with 0 are
      padding and do not count.

  Returns:
    (mean [d], square [d]), both zero if no example counts.
  """
  if mask is None:
    count = tf.cast(tf.shape(encodings)[0], encodings.dtype)
  else:
    keep = tf.cast(mask, tf.bool)
    count = tf.reduce_sum(tf.cast(keep, encodings.dtype))
    encodings = tf.where(keep[:, tf.newaxis], encodings, tf.zeros_like(encodings))
  unit = tf.math.l2_normalize(encodings, axis=1)
  return (
    tf.math.divide_no_nan(tf.reduce_sum(unit, axis=0), count),
    tf.math.divide_no_nan(tf.reduce_sum(tf.square(unit), axis=0), count),
  )


def encoding_std_from_moments(mean: tf.Tensor, square: tf.Tensor) -> tf.Tensor:
  """`encoding_std` from (weighted means of) `normalised_moments`.

  Args:
    mean: [d] mean of the L2-normalised encodings.
    square: [d] mean of their squares.

  Returns:
    Scalar, about 1 for encodings spread evenly over the sphere, 0 for collapsed ones.
  """
  variance = tf.maximum(square - tf.square(mean), tf.zeros([], square.dtype))
  dimension = tf.cast(tf.shape(mean)[0], mean.dtype)
  return tf.reduce_mean(tf.sqrt(variance)) * tf.sqrt(dimension)


def encoding_std(encodings: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
  """Mean over dimensions of the std of L2-normalised encodings, times sqrt(d).

  Args:
    encodings: [n, d]; n may be 0.
    mask: Optional [n] of 0 and 1; examples with 0 do not count.

  Returns:
    Scalar, about 1 for encodings spread evenly over the sphere, 0 for collapsed ones.

  Source: Chen and He 2021, Section 4.1.
  """
  return encoding_std_from_moments(*normalised_moments(encodings, mask))


def total_variance(encodings: tf.Tensor) -> tf.Tensor:
  """Mean squared distance of encodings [n, d] from their mean; 0 for n = 0.

  It is the trace of their covariance, in squared units of the encodings.
  """
  count = tf.cast(tf.shape(encodings)[0], encodings.dtype)
  mean = tf.math.divide_no_nan(tf.reduce_sum(encodings, axis=0), count)
  return tf.math.divide_no_nan(tf.reduce_sum(tf.square(encodings - mean)), count)


def effective_rank_from_covariance(covariance: tf.Tensor) -> tf.Tensor:
  """Exponential of the entropy of a covariance's normalised eigenvalues.

  Args:
    covariance: [d, d] symmetric, of any scale (the rank does not depend on it).

  Returns:
    Scalar from 1 (one direction, or no variance at all) to d (all directions alike).

  Source: Roy and Vetterli 2007, Definition 1, on the eigenvalues of the covariance.
  """
  # Rounding leaves zero eigenvalues slightly negative.
  eigenvalues = tf.nn.relu(tf.linalg.eigvalsh(covariance))
  p = tf.math.divide_no_nan(eigenvalues, tf.reduce_sum(eigenvalues))
  return tf.exp(-tf.reduce_sum(tf.math.xlogy(p, p)))


def effective_rank(encodings: tf.Tensor) -> tf.Tensor:
  """Effective rank of the centred encodings' covariance.

  Args:
    encodings: [n, d]; n may be 0.

  Returns:
    Scalar from 1 (collapsed to a line or a point) to min(n - 1, d).

  Source: Roy and Vetterli 2007, Definition 1, on the eigenvalues of the covariance.
  """
  shape = tf.shape(encodings)
  count = tf.cast(shape[0], encodings.dtype)
  mean = tf.math.divide_no_nan(tf.reduce_sum(encodings, axis=0), count)
  centred = encodings - mean
  # X'X and XX' share their non-zero eigenvalues: the smaller one is decomposed.
  gram = tf.cond(
    shape[0] < shape[1],
    lambda: tf.matmul(centred, centred, transpose_b=True),
    lambda: tf.matmul(centred, centred, transpose_a=True),
  )
  return effective_rank_from_covariance(gram)
