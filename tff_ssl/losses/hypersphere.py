"""Alignment draws positive pairs together, uniformity spreads all encodings out.

Tongzhou Wang, Phillip Isola. Understanding Contrastive Representation Learning through
Alignment and Uniformity on the Hypersphere. ICML 2020.
"""

import tensorflow as tf

from tff_ssl.losses import lengths


def alignment(f: tf.Tensor, g: tf.Tensor) -> tf.Tensor:
  """Mean squared distance of the two views' normalised encodings, from 0 to 4.

  Args:
    f: [n, d] encodings of the first view; n may be 0.
    g: [n, d] encodings of the second view.

  Returns:
    A scalar; 0 without examples.

  Source: Wang and Isola 2020, Section 4.1, L_align with alpha = 2.
  """
  f, g = lengths.unit(f, axis=1), lengths.unit(g, axis=1)
  squares = tf.reduce_sum(tf.math.squared_difference(f, g))
  return tf.math.divide_no_nan(squares, tf.cast(tf.shape(f)[0], f.dtype))


def uniformity(x: tf.Tensor, t: float = 2.0) -> tf.Tensor:
  """Logarithm of the mean Gaussian potential of pairs of normalised encodings.

  Args:
    x: [n, d] encodings; n may be 0.
    t: Scale of the potential exp(-t |x_i - x_j|^2), above 0.

  Returns:
    A scalar from -4 t to 0: 0 where all encodings point the same way, and where there
    are fewer than two.

  Source: Wang and Isola 2020, Section 4.1, L_uniform.
  """
  x = lengths.unit(x, axis=1)
  n = tf.shape(x)[0]
  exponents = 2 * t * (tf.matmul(x, x, transpose_b=True) - 1)
  # The lowest finite number, not -inf: a row of -inf has a gradient of NaN.
  exponents = tf.linalg.set_diag(exponents, tf.fill([n], exponents.dtype.min))
  pairs = tf.cast(n * (n - 1), x.dtype)
  potential = tf.reduce_logsumexp(exponents) - tf.math.log(tf.maximum(pairs, 1))
  return tf.where(n > 1, potential, tf.zeros_like(potential))
