"""Cross-correlation optimization (CCO) from encoding statistics.

Raviteja Vemulapalli, Warren Richard Morningstar, Philip Andrew Mansfield, Hubert
Eichner, Karan Singhal, Arash Afkanpour, Bradley Green. Federated Training of Dual
Encoding Models on Small Non-IID Client Datasets. 2022. The loss is from Jure Zbontar,
Li Jing, Ishan Misra, Yann LeCun, Stephane Deny. Barlow Twins:
Self-Supervised Learning via Redundancy Reduction. ICML 2021.

C does not depend on the point r around which moments are taken: for any fixed r,
E[(f - r)^2] less E[f - r]^2 is the variance of f, and likewise for covariances. In
float32 r matters: with r = 0 and a mean of 300 standard deviations, the variance is the
difference of two numbers 1e5 times as large, which have seven digits. With r near the
mean nothing is lost. Moments are therefore taken around a `reference`, the same for all
moments that are added up.

For differential privacy, one example's share of the sums must be bounded. It is bounded
if encodings are at most a `norm` away from the reference (`share_bound`).

Deviations: the off-diagonal term is divided by d - 1. The published weight of 20 then
fits encodings of 1024 dimensions (the text of Eq. 1 does not fix the scale).
"""

import collections
from collections.abc import Mapping
import dataclasses
import math

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.losses import spread
from tff_ssl.losses import statistics_loss


def covariance(
  second_moment: tf.Tensor, mean_a: tf.Tensor, mean_b: tf.Tensor
) -> tf.Tensor:
  """Population covariance: [d_a, d_b] second moment less the product of means."""
  return second_moment - mean_a[:, tf.newaxis] * mean_b[tf.newaxis, :]


def variance(square: tf.Tensor, mean: tf.Tensor) -> tf.Tensor:
  """Population variance [d]: mean square less squared mean, never below 0."""
  # Rounding can make the difference negative where an encoding hardly varies.
  return tf.maximum(square - tf.square(mean), tf.zeros([], square.dtype))


def correlation(
  statistics: Mapping[str, tf.Tensor], epsilon: float = 1e-5
) -> tf.Tensor:
  """Cross-correlation matrix C of the two views.

  Args:
    statistics: As `statistics` returns them, local, aggregated or blended.
    epsilon: Added to each variance, in squared units of the encodings.

  Returns:
    C [d_f, d_g]; entries lie in (-1, 1) up to rounding, 0 where nothing varies.

  Source: Zbontar et al. 2021, Eq. 2, from means of products.
  """
  std_f = tf.sqrt(variance(statistics['square_f'], statistics['mean_f']) + epsilon)
  std_g = tf.sqrt(variance(statistics['square_g'], statistics['mean_g']) + epsilon)
  centred = covariance(statistics['cross'], statistics['mean_f'], statistics['mean_g'])
  return centred / (std_f[:, tf.newaxis] * std_g[tf.newaxis, :])


class MomentsLoss(statistics_loss.StatisticsLoss):
  """A loss of the first and second moments of two views, around a reference.

  Attributes:
    within: Whether the loss needs the second moments inside each view too.
  """

  within = False

  def statistics(self, f: tf.Tensor, g: tf.Tensor) -> statistics_loss.Statistics:
    """Returns means over examples.

    Args:
      f: [n, d_f] encodings of the first view; n may be 0.
      g: [n, d_g] encodings of the second view, of the same dtype.

    Returns:
      OrderedDict of `mean_f` [d_f], `mean_g` [d_g], `square_f` [d_f], `square_g` [d_g],
      `cross` [d_f, d_g] and, with `within`, `within_f` [d_f, d_f] and `within_g`
      [d_g, d_g]. All are zero for n = 0.

    Raises:
      ValueError: If f and g are not two matrices with the same number of rows.

    Source: Vemulapalli et al. 2022, Section 3 (encoding statistics).
    """
    if (
      f.shape.rank != 2
      or g.shape.rank != 2
      or not f.shape[:1].is_compatible_with(g.shape[:1])
    ):
      raise ValueError(
        f'The encodings f and g have the shapes {f.shape} and {g.shape}; they must be '
        '[n, d_f] and [n, d_g] with the same n.'
      )
    count = tf.cast(tf.shape(f)[0], f.dtype)

    def mean(total: tf.Tensor) -> tf.Tensor:
      return tf.math.divide_no_nan(total, count)

    result = collections.OrderedDict(
      mean_f=mean(tf.reduce_sum(f, axis=0)),
      mean_g=mean(tf.reduce_sum(g, axis=0)),
      square_f=mean(tf.reduce_sum(tf.square(f), axis=0)),
      square_g=mean(tf.reduce_sum(tf.square(g), axis=0)),
      cross=mean(tf.matmul(f, g, transpose_a=True)),
    )
    if self.within:
      result['within_f'] = mean(tf.matmul(f, f, transpose_a=True))
      result['within_g'] = mean(tf.matmul(g, g, transpose_a=True))
    return result

  def share_bound(self, norm: float | None) -> float | None:
    """Returns the largest l2 norm of one example's share of `statistics`.

    Let u and v be an example's encodings less their reference, |u|, |v| <= R. The
    example adds (u, v, u^2, v^2, u v^T) to the sums, and with `within` also u u^T and
    v v^T. The parts' squared norms are

        |u|^2, |v|^2            R^2 at most each,
        sum_i u_i^4             |u|^4 = R^4 at most, as sum_i a_i^2 <= (sum_i a_i)^2
                                for a_i = u_i^2 >= 0; likewise for v,
        |u v^T|^2               |u|^2 |v|^2 = R^4 at most,
        |u u^T|^2, |v v^T|^2    R^4 at most each,

    in total 2 R^2 + 3 R^4, or 2 R^2 + 5 R^4 with `within`. The bound is attained if u
    and v have length R and a single entry that is not 0. By the triangle inequality,
    n_k times the means of n_k examples are at most n_k times as long; n_k such examples
    attain this. The reference does not enter: R is a distance from the reference.

    Args:
      norm: R, the largest distance from the reference (see `statistics_loss.around`);
        None: there is no limit, and no bound.
    """
    if norm is None:
      return None
    return norm * math.sqrt(2.0 + (5.0 if self.within else 3.0) * norm**2)

  def moved(
    self, statistics: Mapping[str, tf.Tensor], shift: Mapping[str, tf.Tensor]
  ) -> statistics_loss.Statistics:
    """Returns statistics of the same encodings around another reference.

    Args:
      statistics: Around a reference r.
      shift: `f` [d_f] and `g` [d_g]: the other reference less r.

    Returns:
      The statistics around r + shift, as `statistics` would return them.
    """
    mean = {name: statistics[f'mean_{name}'] for name in shift}
    result = collections.OrderedDict(statistics)
    for name, by in shift.items():
      result[f'mean_{name}'] = mean[name] - by
      result[f'square_{name}'] = statistics[f'square_{name}'] - by * (
        2.0 * mean[name] - by
      )
    for second, a, b in (
      ('cross', 'f', 'g'),
      ('within_f', 'f', 'f'),
      ('within_g', 'g', 'g'),
    ):
      if second in statistics:
        # (a - s_a)(b - s_b) = ab - s_a b - (a - s_a) s_b
        result[second] = (
          statistics[second]
          - tf.tensordot(shift[a], mean[b], axes=0)
          - tf.tensordot(mean[a] - shift[a], shift[b], axes=0)
        )
    return result

  def signs_of_collapse(
    self, statistics: Mapping[str, tf.Tensor]
  ) -> statistics_loss.Statistics:
    """Returns `effective_rank` and `total_variance`.

    `effective_rank` is the rank of the symmetric part of the two views'
    cross-covariance, which is the covariance of what both views share.
    """
    mean_f, mean_g = statistics['mean_f'], statistics['mean_g']
    shared = covariance(statistics['cross'], mean_f, mean_g)
    squares = tf.reduce_sum(statistics['square_f'] + statistics['square_g'])
    return collections.OrderedDict(
      effective_rank=spread.effective_rank_from_covariance(
        (shared + tf.transpose(shared)) / 2, squares / 2
      ),
      total_variance=tf.reduce_sum(variance(statistics['square_f'], mean_f)),
    )


@dataclasses.dataclass(frozen=True)
class CcoLoss(MomentsLoss, kinds.Kind):
  """CCO (DCCO, Eq. 1).

  Attributes:
    off_diagonal_weight: lambda, 20 in the paper (B); with 0 only the diagonal counts.
    epsilon: Added to each variance, in squared units of the encodings.
  """

  off_diagonal_weight: kinds.NotNegative = 20.0
  epsilon: kinds.NotNegative = 1e-5
  ignores_shift = statistics_loss.EACH_SHIFT

  def loss(self, statistics: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns the loss, which draws the diagonal of C to 1 and all else to 0.

    Args:
      statistics: As `statistics` returns them, with d_f = d_g = d.

    Returns:
      sum_i (1 - C_ii)^2 + lambda / (d - 1) sum_i sum_{j != i} C_ij^2, a scalar. For
      d = 1 the second sum is empty and the term is 0.

    Raises:
      ValueError: If the cross moments are not a square matrix of known size.

    Source: Vemulapalli et al. 2022, Eq. 1.
    """
    shape = statistics['cross'].shape
    if shape.rank != 2 or shape[0] is None or shape[0] != shape[1]:
      raise ValueError(
        f'The cross moments of CCO are of shape {shape}; both views must have '
        'encodings of the same known dimension.'
      )
    c = correlation(statistics, self.epsilon)
    diagonal = tf.linalg.diag_part(c)
    loss = tf.reduce_sum(tf.square(1.0 - diagonal))
    if shape[0] > 1:
      off_diagonal = tf.linalg.set_diag(c, tf.zeros_like(diagonal))
      scale = self.off_diagonal_weight / (shape[0] - 1)
      loss += scale * tf.reduce_sum(tf.square(off_diagonal))
    return loss
