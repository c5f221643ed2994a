"""How spread out encodings are: the numbers by which a collapse is recognised.

`encoding_std` (Xinlei Chen, Kaiming He. Exploring Simple Siamese Representation
Learning. CVPR 2021, Section 4.1) fits losses on normalised encodings. Losses that
ignore a shift (CCO, VICReg) are judged by `effective_rank` (Olivier Roy, Martin
Vetterli. The effective rank: a measure of effective dimensionality. EUSIPCO 2007) and
`total_variance`. All can be computed from means over examples, and so from what clients
aggregate.

An effective rank needs second moments, which are d^2 numbers. For d > 32 they are taken
in a subspace of 32 dimensions, the same for every client and round: an orthonormal
basis drawn once. A collapse to few directions shows there as it does in all dimensions;
only ranks near 32 and above can no longer be distinguished.
"""

import functools

import numpy as np
import tensorflow as tf

from tff_ssl.losses import lengths

# Second moments are sent for at most this many dimensions.
SUBSPACE_DIM = 32


def normalised_moments(
  encodings: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Means over examples of the L2-normalised encodings and of their products.

  Args:
    encodings: [n, d], d known; n may be 0.

  Returns:
    (mean [d], square [d], second [k, k]): the means of the encodings, of their squares,
    and of their products in `subspace(d)`, k = min(d, 32). All are zero for n = 0.
  """
  count = tf.cast(tf.shape(encodings)[0], encodings.dtype)
  unit = lengths.unit(encodings, axis=1)
  inside = _into_subspace(unit)
  return (
    tf.math.divide_no_nan(tf.reduce_sum(unit, axis=0), count),
    tf.math.divide_no_nan(tf.reduce_sum(tf.square(unit), axis=0), count),
    tf.math.divide_no_nan(tf.matmul(inside, inside, transpose_a=True), count),
  )


@functools.cache
def subspace(dim: int) -> np.ndarray:
  """Returns the basis in which second moments are taken.

  Args:
    dim: d, the dimensions of the encodings.

  Returns:
    float64 [d, min(d, 32)], orthonormal columns: the identity up to 32 dimensions;
    above 32, random columns that are always the same.
  """
  if dim <= SUBSPACE_DIM:
    return np.eye(dim)
  normal = np.random.RandomState(0).normal(size=(dim, SUBSPACE_DIM))
  return np.linalg.qr(normal)[0]


def effective_rank_from_moments(mean: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
  """Effective rank from (weighted means of) `normalised_moments`.

  Args:
    mean: [d] mean of the L2-normalised encodings.
    second: [k, k] mean of their products in `subspace(d)`.

  Returns:
    Scalar from 1 (collapsed) to k: the rank of the encodings' covariance, exactly, if
    d <= 32; otherwise the rank of its part in the subspace.
  """
  inside = _into_subspace(mean[tf.newaxis, :])
  covariance = second - tf.matmul(inside, inside, transpose_a=True)
  return effective_rank_from_covariance(covariance, tf.linalg.trace(second))


def _into_subspace(encodings: tf.Tensor) -> tf.Tensor:
  """Encodings [n, d] in the coordinates of `subspace(d)`."""
  dim = encodings.shape[1]
  if dim <= SUBSPACE_DIM:
    return encodings
  return tf.matmul(encodings, tf.constant(subspace(dim), encodings.dtype))


def encoding_std_from_moments(mean: tf.Tensor, square: tf.Tensor) -> tf.Tensor:
  """`encoding_std` from (weighted means of) `normalised_moments`.

  Args:
    mean: [d] mean of the L2-normalised encodings.
    square: [d] mean of their squares.

  Returns:
    Scalar, about 1 for encodings spread evenly over the sphere, 0 for collapsed ones.

  Source: Chen and He 2021, Section 4.1.
  """
  variance = tf.maximum(square - tf.square(mean), tf.zeros([], square.dtype))
  dimension = tf.cast(tf.shape(mean)[0], mean.dtype)
  return tf.reduce_mean(tf.sqrt(variance)) * tf.sqrt(dimension)


def effective_rank_from_covariance(
  covariance: tf.Tensor, size: tf.Tensor | float = 0.0
) -> tf.Tensor:
  """Exponential of the entropy of a covariance's normalised eigenvalues.

  Args:
    covariance: [d, d] symmetric, of any scale (the rank does not depend on it).
    size: The trace of the second moments, if the covariance is the difference of these
      and the products of means.

  Returns:
    Scalar from 1 (one direction, or no variance at all) to d (equal in all directions).

  Source: Roy and Vetterli 2007, Definition 1, on the eigenvalues of the covariance.
  """
  # If all encodings are the same, only rounding remains of the difference of the equal
  # moments. It has no direction, and would pass for a full rank. It does not grow with
  # d beyond the 32 of the subspace; spread encodings can have variances of d roundings.
  rounding = min(covariance.shape[0], SUBSPACE_DIM)
  noise = rounding * np.finfo(covariance.dtype.as_numpy_dtype).eps * size
  # Rounding leaves zero eigenvalues slightly negative.
  eigenvalues = tf.nn.relu(_eigenvalues(covariance))
  zeros = tf.zeros_like(eigenvalues)
  return _exp_entropy(tf.where(eigenvalues <= noise, zeros, eigenvalues))


def _eigenvalues(matrix: tf.Tensor) -> tf.Tensor:
  """Eigenvalues [d] of a symmetric matrix, all NaN if it is not finite."""
  finite = tf.reduce_all(tf.math.is_finite(matrix))
  # Decomposing a matrix that is not finite would raise an error and end the round.
  eigenvalues = tf.linalg.eigvalsh(tf.where(finite, matrix, tf.zeros_like(matrix)))
  return tf.where(finite, eigenvalues, tf.constant(float('nan'), matrix.dtype))


def _exp_entropy(eigenvalues: tf.Tensor) -> tf.Tensor:
  """Exponential of the entropy of eigenvalues that are not negative, normalised."""
  p = tf.math.divide_no_nan(eigenvalues, tf.reduce_sum(eigenvalues))
  return tf.exp(-tf.reduce_sum(tf.math.xlogy(p, p)))
