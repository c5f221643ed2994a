"""Objectives that see a batch only through its encoding statistics.

CCO (the cross-correlation loss of Barlow Twins, named as in the DCCO paper) and VICReg.
Because the loss is a function of means over examples, an algorithm may replace a
client's statistics by the statistics of the whole cohort (DCCO), or leave them alone
(FedAvg with a within-client loss).
"""

import collections
import dataclasses

import tensorflow as tf

from tff_ssl.losses import cco
from tff_ssl.losses import spread
from tff_ssl.losses import vicreg
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder

LOSSES = ('cco', 'vicreg')


@dataclasses.dataclass(frozen=True)
class StatisticsObjective(dual_encoder.LossOfPairs, collapse.SpreadReported):
  """A loss of the encoding statistics of a dual encoder.

  Attributes:
    model: The dual encoding model.
    loss_name: 'cco' (DCCO, Eq. 1) or 'vicreg' (the same kind of statistics, with the
      within-view second moments).
    off_diagonal_weight: CCO's lambda, 20 in the paper (B).
  """

  model: dual_encoder.DualEncoder
  loss_name: str = 'cco'
  off_diagonal_weight: float = 20.0

  def __post_init__(self) -> None:
    if self.loss_name not in LOSSES:
      raise ValueError(
        f'loss_name is {self.loss_name!r}; allowed are {", ".join(LOSSES)}.'
      )
    if self.off_diagonal_weight < 0:
      raise ValueError(
        f'off_diagonal_weight is {self.off_diagonal_weight}; it must be at least 0.'
      )
    f_dim, g_dim = self.model.output_dims
    if f_dim != g_dim:
      raise ValueError(
        f'The two encodings have {f_dim} and {g_dim} dimensions; they must be equal.'
      )

  @property
  def collapsed_below(self) -> float:
    """The `encoding_std` of a collapse (see `base.Watched`)."""
    # These losses ignore a shift: healthy encodings may have a far larger mean.
    return 0.005

  def statistics(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> collections.OrderedDict[str, tf.Tensor]:
    """Returns the means over the batch that the loss needs (see `losses.cco`)."""
    return self.statistics_and_spread(params, examples, seed)[0]

  def statistics_and_spread(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[collections.OrderedDict[str, tf.Tensor], base.Metrics]:
    """Returns the statistics, and 2 d means from which `encoding_std` is known.

    The statistics do not tell it: encodings are normalised one by one there.
    """
    f, g = self.model.encode(params, examples, seed)
    moments = collapse.spread_metrics(f)
    return cco.statistics(f, g, within=self.loss_name == 'vicreg'), (
      collections.OrderedDict((name, moments[name]) for name in collapse.OF_STD)
    )

  def no_statistics(self) -> collections.OrderedDict[str, tf.Tensor]:
    """Returns the statistics of no example: zeros, as `statistics` has them."""
    f, g = (tf.zeros([0, dim]) for dim in self.model.output_dims)
    return cco.statistics(f, g, within=self.loss_name == 'vicreg')

  def loss_of(self, statistics: collections.OrderedDict[str, tf.Tensor]) -> tf.Tensor:
    """Returns the loss of any statistics: a batch's own, or aggregated."""
    if self.loss_name == 'vicreg':
      return vicreg.vicreg_loss(statistics)
    return cco.cco_loss(statistics, self.off_diagonal_weight)

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the within-batch loss of encodings (see `base.Separable`)."""
    f, g = encodings['f'], encodings['g']
    statistics = cco.statistics(f, g, within=self.loss_name == 'vicreg')
    loss = self.loss_of(statistics)
    has_examples = tf.cast(base.example_count(examples) > 0, loss.dtype)
    return loss * has_examples, collapse.spread_metrics(f)

  def summarize_statistics(
    self, statistics: collections.OrderedDict[str, tf.Tensor]
  ) -> base.Metrics:
    """Returns the loss of a cohort's statistics, and what they tell of a collapse.

    `effective_rank` is that of the symmetric part of the two views' cross-covariance,
    the covariance of what both views share. `encoding_std` is none of a cohort's
    statistics (see `statistics_and_spread`).
    """
    variance = tf.maximum(statistics['square_f'] - tf.square(statistics['mean_f']), 0.0)
    total_variance = tf.reduce_sum(variance)
    covariance = statistics['cross'] - tf.tensordot(
      statistics['mean_f'], statistics['mean_g'], axes=0
    )
    return collections.OrderedDict(
      loss=self.loss_of(statistics),
      effective_rank=spread.effective_rank_from_covariance(
        (covariance + tf.transpose(covariance)) / 2
      ),
      total_variance=total_variance,
    )
