"""The spectral contrastive loss of two views, from correlation matrices.

HaoChen et al. 2021 and FedSC (Jing et al. 2024); see `losses.spectral`. Encodings are
rescaled to a length of at most sqrt(mu). The correlation is not centred: moments are
taken around 0, and there is no reference.
"""

import collections
import dataclasses

import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.losses import spectral
from tff_ssl.losses import spread
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import statistics as statistics_lib

NAME = 'spectral'


@dataclasses.dataclass(frozen=True)
class SpectralObjective(dual_encoder.LossOfPairs, collapse.SpreadReported):
  """The spectral loss as an objective of statistics (`statistics.OfStatistics`).

  Attributes:
    model: Encodes two views by one network.
    mu: Largest squared length of an encoding; HaoChen et al. use 1, FedSC's program 4.
  """

  model: dual_encoder.Siamese
  mu: float = 4.0

  def __post_init__(self) -> None:
    checks.positive(mu=self.mu)

  @property
  def share_bound(self) -> float:
    """The largest l2 norm of one example's share (see `statistics.OfStatistics`)."""
    return spectral.share_bound(self.mu)

  def statistics(
    self,
    params: base.Params,
    examples: base.Examples,
    seed: tf.Tensor,
    reference: statistics_lib.Reference | None = None,
  ) -> statistics_lib.Statistics:
    """Returns the means over the batch that the loss needs (see `losses.spectral`)."""
    return self.statistics_and_spread(params, examples, seed, reference)[0]

  def statistics_and_spread(
    self,
    params: base.Params,
    examples: base.Examples,
    seed: tf.Tensor,
    reference: statistics_lib.Reference | None = None,
  ) -> tuple[statistics_lib.Statistics, base.Metrics]:
    """Returns the statistics, and 2 d means from which `encoding_std` is computed."""
    return self.statistics_of(*self.model.encode(params, examples, seed), reference)

  def statistics_of(
    self,
    f: tf.Tensor,
    g: tf.Tensor,
    reference: statistics_lib.Reference | None = None,
  ) -> tuple[statistics_lib.Statistics, base.Metrics]:
    """Returns what `statistics_and_spread` does, for encodings f and g [n, d]."""
    del reference
    return self._statistics(f, g), collapse.std_metrics(f)

  def no_statistics(self) -> statistics_lib.Statistics:
    """Returns the statistics of no example: zeros."""
    nothing = tf.zeros([0, self.model.output_dims[0]])
    return self._statistics(nothing, nothing)

  def no_reference(self) -> statistics_lib.Reference:
    """Returns a reference without a tensor: moments are taken around 0."""
    return collections.OrderedDict()

  def reference(self, params: base.Params) -> statistics_lib.Reference:
    """Returns a reference without a tensor, see `no_reference`."""
    del params
    return collections.OrderedDict()

  def centre(
    self,
    statistics: statistics_lib.Statistics,
    reference: statistics_lib.Reference,
  ) -> statistics_lib.Reference:
    """Returns the reference, which has no tensor, as it is."""
    del statistics
    return reference

  def loss_of(self, statistics: statistics_lib.Statistics) -> tf.Tensor:
    """Returns the loss of any statistics: a batch's own, or aggregated."""
    return spectral.spectral_loss(statistics)

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the within-batch loss of encodings (see `base.Separable`)."""
    del examples
    f, g = encodings['f'], encodings['g']
    return self.loss_of(self._statistics(f, g)), collapse.spread_metrics(f)

  def summarize_statistics(self, statistics: statistics_lib.Statistics) -> base.Metrics:
    """Returns the loss of a cohort's statistics, and signs of a collapse in them.

    The rank is that of the rescaled encodings of both views.
    """
    mean, correlation = statistics['mean'], statistics['correlation']
    covariance = correlation - tf.tensordot(mean, mean, axes=0)
    total_variance = tf.maximum(tf.linalg.trace(covariance), 0.0)
    return collections.OrderedDict(
      loss=self.loss_of(statistics),
      effective_rank=spread.effective_rank_from_covariance(covariance),
      total_variance=total_variance,
    )

  def _statistics(self, f: tf.Tensor, g: tf.Tensor) -> statistics_lib.Statistics:
    return spectral.statistics(
      spectral.bounded(f, self.mu), spectral.bounded(g, self.mu)
    )
