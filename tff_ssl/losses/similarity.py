"""Losses that draw two views of an example together, without negatives.

Negative cosine similarity: Xinlei Chen, Kaiming He. Exploring Simple Siamese
Representation Learning. CVPR 2021. Regression of unit vectors: Jean-Bastien Grill,
Florian Strub, Florent Altche, et al. Bootstrap Your Own Latent: A New Approach to
Self-Supervised Learning. NeurIPS 2020.

No gradient is stopped here: callers stop the gradient of a target that is held fixed.
"""

import tensorflow as tf

from tff_ssl.losses import lengths


def negative_cosine(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
  """D(a, b): the mean over examples of the negative cosine similarity.

  Args:
    a: [n, d] encodings; n may be 0.
    b: [n, d] encodings of the same examples.

  Returns:
    Scalar in [-1, 1]; 0 for n = 0, and for vectors of zeros, whose gradient is finite.

  Raises:
    ValueError: If the shapes differ.

  Source: Chen and He 2021, Eq. 1.
  """
  return -_mean(_cosine(a, b))


def regression(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
  """Mean over examples of |a/|a| - b/|b||^2 = 2 - 2 cos(a, b).

  Args:
    a: [n, d] encodings; n may be 0.
    b: [n, d] encodings of the same examples.

  Returns:
    Scalar in [0, 4]; 0 for n = 0.

  Raises:
    ValueError: If the shapes differ.

  Source: Grill et al. 2020, Eq. 2.
  """
  return _mean(2.0 - 2.0 * _cosine(a, b))


def simsiam_loss(
  p1: tf.Tensor, p2: tf.Tensor, z1: tf.Tensor, z2: tf.Tensor
) -> tf.Tensor:
  """(D(p1, z2) + D(p2, z1)) / 2, a scalar in [-1, 1].

  Args:
    p1: [n, d] predictions from the first view.
    p2: [n, d] predictions from the second view.
    z1: [n, d] projections of the first view, constants in the paper.
    z2: [n, d] projections of the second view, constants in the paper.

  Source: Chen and He 2021, Eq. 4.
  """
  return (negative_cosine(p1, z2) + negative_cosine(p2, z1)) / 2.0


def consensus_loss(
  p1: tf.Tensor, p2: tf.Tensor, q1: tf.Tensor, q2: tf.Tensor
) -> tf.Tensor:
  """(D(p1, q1) + D(p1, q2) + D(p2, q1) + D(p2, q2)) / 4, a scalar in [-1, 1].

  Args:
    p1: [n, d] predictions of one model from the first view.
    p2: [n, d] its predictions from the second view.
    q1: [n, d] predictions of another model from the first view, constants in the paper.
    q2: [n, d] its predictions from the second view, constants in the paper.

  Source: SSFL ("SSFL: Tackling Label Deficiency in Federated Learning via Personalized
  Self-Supervision"), Algorithm 2, line 11, without lambda.
  """
  distances = [negative_cosine(p, q) for p in (p1, p2) for q in (q1, q2)]
  return tf.add_n(distances) / 4.0


def byol_loss(p1: tf.Tensor, p2: tf.Tensor, z1: tf.Tensor, z2: tf.Tensor) -> tf.Tensor:
  """Regression of both target projections, a scalar in [0, 8].

  With n >= 1 examples it is 4 + 4 `simsiam_loss`.

  Args:
    p1: [n, d] predictions of the online network from the first view.
    p2: [n, d] its predictions from the second view.
    z1: [n, d] projections of the first view by the target network.
    z2: [n, d] its projections of the second view.

  Source: Grill et al. 2020, Eq. 2 and the symmetrisation below it.
  """
  return regression(p1, z2) + regression(p2, z1)


def _cosine(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
  """Cosine similarities [n]."""
  lengths.check_alike(a, b)
  unit_a, unit_b = lengths.unit(a, axis=1), lengths.unit(b, axis=1)
  return tf.reduce_sum(unit_a * unit_b, axis=1)


def _mean(values: tf.Tensor) -> tf.Tensor:
  """Mean of [n], 0 for n = 0."""
  count = tf.cast(tf.shape(values)[0], values.dtype)
  return tf.math.divide_no_nan(tf.reduce_sum(values), count)
