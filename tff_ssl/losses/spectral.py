"""Spectral contrastive loss from correlation matrices.

Jeff Z. HaoChen, Colin Wei, Adrien Gaidon, Tengyu Ma. Provable Guarantees for
Self-Supervised Deep Learning with Spectral Contrastive Loss. NeurIPS 2021. As a loss
of correlation matrices: Shusen Jing, Anlan Yu, Shuai Zhang, Songyang Zhang. FedSC:
Provable Federated Self-supervised Learning with Spectral Contrastive Objective over
Non-i.i.d. Data. ICML 2024 (arXiv 2405.03949).

  L = -2 E[z . z+] + E[(z . z')^2] = -2 tr(R+) + |R|_F^2,  R = E[z z^T], R+ = E[z z+^T]

where z and z+ are two views of one example, and z and z' are views of two independent
examples. R is a mean over examples: the R of a union of clients is the weighted mean of
the clients' R.

Deviations: the mean behind |R|_F^2 is over all pairs of views, including those of one
example, as in FedSC's program. HaoChen et al. leave these pairs out, so that their loss
is not a function of R. The mean encoding is sent too, to reveal a collapse.
"""

import collections
from collections.abc import Mapping
import dataclasses
import math

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.losses import lengths
from tff_ssl.losses import spread
from tff_ssl.losses import statistics_loss


def loss_beside_others(
  statistics: Mapping[str, tf.Tensor], others: tf.Tensor, share: tf.Tensor
) -> tf.Tensor:
  """The loss of a client whose examples are a share q of all.

  q times its gradient with respect to the client's statistics is the gradient of the
  loss of all examples, whose correlation is q R_k + (1 - q) R.

  Args:
    statistics: The client's own, R_k among them.
    others: R [d, d], the correlation of all other examples, held fixed.
    share: q, the client's share of all examples, in [0, 1].

  Returns:
    -2 tr(R_k+) + q |R_k|_F^2 + 2 (1 - q) tr(R_k R), a scalar.

  Source: Jing et al. 2024, the local objective (alpha is q).
  """
  own = statistics['correlation']
  fixed = tf.stop_gradient(others)
  return (
    -2.0 * statistics['agreement']
    + share * tf.reduce_sum(tf.square(own))
    + 2.0 * (1.0 - share) * tf.reduce_sum(own * fixed)
  )


@dataclasses.dataclass(frozen=True)
class SpectralLoss(statistics_loss.StatisticsLoss, kinds.Kind):
  """The spectral loss of encodings that are rescaled to a length of at most sqrt(mu).

  Both views are encoded by one network. The correlation is not centred: moments are
  taken around 0.

  Attributes:
    mu: Largest squared length of an encoding; HaoChen et al. use 1, FedSC's program 4.
  """

  mu: kinds.Positive = 4.0

  def statistics(self, f: tf.Tensor, g: tf.Tensor) -> statistics_loss.Statistics:
    """Returns means over examples of the rescaled encodings.

    Args:
      f: [n, d] encodings of the first view; n may be 0.
      g: [n, d] encodings of the second view.

    Returns:
      OrderedDict of `correlation` [d, d] (R, over both views), `agreement`, a scalar
      (tr R+), and `mean` [d] (over both views). All are zero if n is 0.

    Raises:
      ValueError: If f and g are not two matrices of one shape.

    Source: Jing et al. 2024, Section 3.
    """
    lengths.check_alike(f, g)
    # One example's share of the correlation then has a Frobenius norm of at most mu.
    f, g = (lengths.at_most(x, math.sqrt(self.mu)) for x in (f, g))
    count = tf.cast(tf.shape(f)[0], f.dtype)
    both = tf.concat([f, g], axis=0)
    return collections.OrderedDict(
      correlation=tf.math.divide_no_nan(
        tf.matmul(both, both, transpose_a=True), 2.0 * count
      ),
      agreement=tf.math.divide_no_nan(tf.reduce_sum(f * g), count),
      mean=tf.math.divide_no_nan(tf.reduce_sum(both, axis=0), 2.0 * count),
    )

  def loss(self, statistics: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns -2 tr(R+) + |R|_F^2 of any statistics: a batch's own, or aggregated.

    Args:
      statistics: As `statistics` returns them.

    Source: HaoChen et al. 2021, Eq. 6; Jing et al. 2024, Section 3.
    """
    return -2.0 * statistics['agreement'] + tf.reduce_sum(
      tf.square(statistics['correlation'])
    )

  def share_bound(self, norm: float | None) -> float:
    """Returns the largest l2 norm of one example's share of `statistics`.

    Let u and v be an example's encodings, |u|^2, |v|^2 <= mu. The example adds
    ((u u^T + v v^T) / 2, u . v, (u + v) / 2) to the sums. The parts' norms are at most
    mu, mu and sqrt(mu), in total sqrt(mu + 2 mu^2). The bound is attained if u = v,
    with |u|^2 = mu in any direction. By the triangle inequality, n_k times the means of
    n_k examples are at most n_k times as long.

    Args:
      norm: The largest length before they are rescaled; None: there is no limit.
    """
    mu = self.mu if norm is None else min(self.mu, norm**2)
    return math.sqrt(mu + 2.0 * mu**2)

  def signs_of_collapse(
    self, statistics: Mapping[str, tf.Tensor]
  ) -> statistics_loss.Statistics:
    """Returns `effective_rank` and `total_variance` of the rescaled encodings."""
    mean, correlation = statistics['mean'], statistics['correlation']
    covariance = correlation - tf.tensordot(mean, mean, axes=0)
    total_variance = tf.maximum(tf.linalg.trace(covariance), 0.0)
    return collections.OrderedDict(
      effective_rank=spread.effective_rank_from_covariance(
        covariance, tf.linalg.trace(correlation)
      ),
      total_variance=total_variance,
    )
