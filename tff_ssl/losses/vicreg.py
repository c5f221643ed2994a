"""VICReg from encoding statistics.

Adrien Bardes, Jean Ponce, Yann LeCun. VICReg: Variance-Invariance-Covariance
Regularization for Self-Supervised Learning. ICLR 2022.

All three terms are functions of means over examples (`cco.MomentsLoss`), so VICReg can
replace CCO wherever statistics are aggregated.

Deviations: variances and covariances divide by n, not n - 1. Only then are they
functions of means, the same whether a batch is held by one client or by many, and
defined for one example. The formulas are the paper's. The authors' program averages the
invariance over dimensions and halves the variance terms, which corresponds to
`invariance_weight=25 / d, variance_weight=12.5` here.
"""

from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.losses import cco
from tff_ssl.losses import statistics_loss

# The variance hinge pulls each dimension's standard deviation up to this (gamma).
_TARGET_STD = 1.0


def _variance_term(square: tf.Tensor, mean: tf.Tensor, epsilon: float) -> tf.Tensor:
  """Mean over dimensions of how far the std stays below its target (Eq. 1)."""
  std = tf.sqrt(cco.variance(square, mean) + epsilon)
  return tf.reduce_mean(tf.nn.relu(_TARGET_STD - std))


def _covariance_term(second_moment: tf.Tensor, mean: tf.Tensor) -> tf.Tensor:
  """Sum of squared off-diagonal covariances over d (Eq. 4)."""
  centred = cco.covariance(second_moment, mean, mean)
  off_diagonal = tf.linalg.set_diag(centred, tf.zeros_like(mean))
  return tf.reduce_sum(tf.square(off_diagonal)) / tf.cast(tf.shape(mean)[0], mean.dtype)


@dataclasses.dataclass(frozen=True)
class VicregLoss(cco.MomentsLoss):
  """VICReg.

  It compares the views with each other, and so ignores only a shift of both.

  Attributes:
    invariance_weight: The paper's lambda, on the mean squared distance of the views.
    variance_weight: The paper's mu, on the hinge that keeps each std above 1.
    covariance_weight: The paper's nu, on the squared off-diagonal covariances.
    epsilon: Added to each variance, in squared units of the encodings.
  """

  invariance_weight: float = 25.0
  variance_weight: float = 25.0
  covariance_weight: float = 1.0
  epsilon: float = 1e-4
  within = True
  ignores_shift = statistics_loss.COMMON_SHIFT

  def loss(self, statistics: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns the loss of any statistics: local, aggregated or blended.

    Args:
      statistics: As `statistics` returns them, with d_f = d_g = d.

    Returns:
      lambda s(f, g) + mu (v(f) + v(g)) + nu (c(f) + c(g)), a scalar.

    Raises:
      ValueError: If the within-view second moments are missing, or d_f != d_g.

    Source: Bardes et al. 2022, Eqs. 1 to 6.
    """
    if 'within_f' not in statistics or 'within_g' not in statistics:
      raise ValueError(
        f'The statistics of VICReg are {", ".join(sorted(statistics))}; they must have '
        '`within_f` and `within_g`.'
      )
    mean_f, mean_g = statistics['mean_f'], statistics['mean_g']
    square_f, square_g = statistics['square_f'], statistics['square_g']
    cross = statistics['cross']
    if not cross.shape[:1].is_compatible_with(cross.shape[1:]):
      raise ValueError(
        f'The cross moments of VICReg are of shape {cross.shape}; both views must have '
        'encodings of the same dimension.'
      )
    invariance = tf.reduce_sum(square_f + square_g - 2.0 * tf.linalg.diag_part(cross))
    hinge = _variance_term(square_f, mean_f, self.epsilon) + _variance_term(
      square_g, mean_g, self.epsilon
    )
    redundancy = _covariance_term(statistics['within_f'], mean_f) + _covariance_term(
      statistics['within_g'], mean_g
    )
    return (
      self.invariance_weight * invariance
      + self.variance_weight * hinge
      + self.covariance_weight * redundancy
    )
