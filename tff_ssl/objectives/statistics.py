"""Objectives that see a batch only through its encoding statistics.

CCO (the cross-correlation loss of Barlow Twins, named as in the DCCO paper) and VICReg.
Because the loss is a function of means over examples, an algorithm may replace a
client's statistics by the statistics of the whole cohort (DCCO), or leave them alone
(FedAvg with a within-client loss).

Moments are taken around a reference near the encodings' means (see `losses.cco`). For a
single batch it is the batch's own means. If clients' moments are added up, all clients
of the round are sent the same reference. VICReg compares the two views with each other,
so there both have the same reference.

With an `encoding_norm` R, each example's share of what is sent is bounded by
construction, as differential privacy requires, and need not be clipped. Encodings
farther than R from the reference are moved towards it, to that distance. The bound is
around the reference, not around 0, because moments are of differences from the
reference: their lengths are then at most R, however far the reference drifts. The
reference is computed from the model alone, and sent with it.
"""

import collections
import dataclasses
from typing import Protocol

import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.losses import cco
from tff_ssl.losses import lengths
from tff_ssl.losses import spread
from tff_ssl.losses import vicreg
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder

LOSSES = ('cco', 'vicreg')
# Losses that ignore a shift of the encodings by one network, and by one of two: VICReg
# compares the views, and so ignores only a shift of both.
IGNORE_SHIFT, IGNORE_EACH_SHIFT = LOSSES, ('cco',)
Statistics = collections.OrderedDict[str, tf.Tensor]
# What moments are taken around: `f` [d], `g` [d].
Reference = collections.OrderedDict[str, tf.Tensor]
# Inputs of noise whose mean encoding is a reference, and their seed.
_NOISE_INPUTS, _NOISE_SEED = 4, (0, 0)


class OfStatistics(base.Objective, Protocol):
  """An objective whose loss is a function of means over examples, its statistics.

  Its methods are described in `StatisticsObjective`. If its moments are taken around 0,
  its references have no tensors.

  Attributes:
    model: The model that encodes the examples.
    share_bound: The largest l2 norm of one example's share of the statistics, so that
      n_k times a client's statistics are at most n_k times as long; None: there is no
      bound.
  """

  @property
  def model(self) -> dual_encoder.DualEncoder:
    """See the class."""

  @property
  def share_bound(self) -> float | None:
    """See the class."""

  def statistics(
    self,
    params: base.Params,
    examples: base.Examples,
    seed: tf.Tensor,
    reference: Reference | None = None,
  ) -> Statistics:
    """Returns the means over a batch."""

  def statistics_and_spread(
    self,
    params: base.Params,
    examples: base.Examples,
    seed: tf.Tensor,
    reference: Reference | None = None,
  ) -> tuple[Statistics, base.Metrics]:
    """Returns the means, and the means from which `encoding_std` is computed."""

  def statistics_of(
    self, f: tf.Tensor, g: tf.Tensor, reference: Reference | None = None
  ) -> tuple[Statistics, base.Metrics]:
    """Returns the same, from the two encodings that the model made of a batch."""

  def no_statistics(self) -> Statistics:
    """Returns the statistics of no example."""

  def reference(self, params: base.Params) -> Reference:
    """Returns a reference to use before anything is known about the examples."""

  def no_reference(self) -> Reference:
    """Returns the reference that changes nothing."""

  def centre(self, statistics: Statistics, reference: Reference) -> Reference:
    """Returns the reference moved to the means found in statistics."""

  def loss_of(self, statistics: Statistics) -> tf.Tensor:
    """Returns the loss of any statistics."""

  def summarize_statistics(self, statistics: Statistics) -> base.Metrics:
    """Returns the loss of a cohort's statistics, and signs of a collapse in them."""


@dataclasses.dataclass(frozen=True)
class StatisticsObjective(dual_encoder.LossOfPairs, collapse.SpreadReported):
  """A loss of the encoding statistics of a dual encoder.

  Attributes:
    model: The dual encoding model.
    loss_name: 'cco' (DCCO, Eq. 1) or 'vicreg' (the same kind of statistics, with the
      within-view second moments).
    off_diagonal_weight: CCO's lambda, 20 in the paper (B).
    encoding_norm: R, the largest distance from the reference at which the loss sees an
      encoding; None: encodings are not bounded, as in the paper.
  """

  model: dual_encoder.DualEncoder
  loss_name: str = 'cco'
  off_diagonal_weight: float = 20.0
  encoding_norm: float | None = None

  def __post_init__(self) -> None:
    if self.loss_name not in LOSSES:
      raise ValueError(
        f'loss_name is {self.loss_name!r}; allowed are {", ".join(LOSSES)}.'
      )
    checks.not_negative(off_diagonal_weight=self.off_diagonal_weight)
    if self.encoding_norm is not None:
      # Beyond, float32 does not hold its square.
      checks.between(1e-12, 1e12, encoding_norm=self.encoding_norm)
    f_dim, g_dim = self.model.output_dims
    if f_dim != g_dim:
      raise ValueError(
        f'The two encodings have {f_dim} and {g_dim} dimensions; they must be equal.'
      )

  @property
  def collapsed_below(self) -> float:
    """The `encoding_std` below which encodings are collapsed (see `base.Watched`)."""
    # These losses ignore a shift: healthy encodings may have a far larger mean.
    return 0.005

  @property
  def _within(self) -> bool:
    """Whether the moments inside each view are needed too."""
    return self.loss_name == 'vicreg'

  @property
  def share_bound(self) -> float | None:
    """The largest norm of one example's share (see `OfStatistics`, `losses.cco`)."""
    if self.encoding_norm is None:
      return None
    return cco.share_bound(self.encoding_norm, self._within)

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns the encodings `f` [n, d] and `g` [n, d] (see `base.Separable`).

    With an `encoding_norm` they are bounded as in DCCO's statistics, so that a round of
    DCCO still equals a centralized step.
    """
    encodings = super().encode(params, examples, seed)
    if self.encoding_norm is None:
      return encodings
    return collections.OrderedDict(
      (name, centre + lengths.at_most(encodings[name] - centre, self.encoding_norm))
      for name, centre in self.reference(params).items()
    )

  def statistics(
    self,
    params: base.Params,
    examples: base.Examples,
    seed: tf.Tensor,
    reference: Reference | None = None,
  ) -> Statistics:
    """Returns the means over the batch that the loss needs (see `losses.cco`).

    Args:
      params: The model's parameters.
      examples: n >= 0 examples.
      seed: int32 [2].
      reference: What moments are taken around, from `reference` or `centre`; the same
        for all statistics that are added up. Zeros when None.
    """
    return self.statistics_and_spread(params, examples, seed, reference)[0]

  def statistics_and_spread(
    self,
    params: base.Params,
    examples: base.Examples,
    seed: tf.Tensor,
    reference: Reference | None = None,
  ) -> tuple[Statistics, base.Metrics]:
    """Returns the statistics, and 2 d means from which `encoding_std` is computed.

    `encoding_std` does not follow from the statistics, because it normalises encodings
    one by one.

    Args:
      params: The model's parameters.
      examples: n >= 0 examples.
      seed: int32 [2].
      reference: As in `statistics`.
    """
    return self.statistics_of(*self.model.encode(params, examples, seed), reference)

  def statistics_of(
    self, f: tf.Tensor, g: tf.Tensor, reference: Reference | None = None
  ) -> tuple[Statistics, base.Metrics]:
    """Returns what `statistics_and_spread` does, for encodings f and g [n, d]."""
    found = cco.statistics(
      f, g, self._within, reference=reference, norm=self.encoding_norm
    )
    return found, collapse.std_metrics(f)

  def no_statistics(self) -> Statistics:
    """Returns the statistics of no example: zeros, laid out as in `statistics`."""
    f, g = self._no_encodings()
    return cco.statistics(f, g, self._within)

  def _no_encodings(self) -> tuple[tf.Tensor, tf.Tensor]:
    f_dim, g_dim = self.model.output_dims
    return tf.zeros([0, f_dim]), tf.zeros([0, g_dim])

  def reference(self, params: base.Params) -> Reference:
    """Returns a reference to use before anything is known about the examples.

    It is the mean encoding of a few inputs of uniform noise, and so contains whatever
    the network, at these very weights, adds to all encodings. On digits it is within
    1.4 standard deviations of the images' mean encoding after 240 rounds of Adam, and
    also with SGD at rate 1, where means move by thousands of standard deviations a
    round.

    Args:
      params: The model's parameters.
    """
    noise = dual_encoder.noise_examples(self.model, _NOISE_INPUTS, _NOISE_SEED)
    return self._reference(*self.model.encode(params, noise, tf.constant(_NOISE_SEED)))

  def no_reference(self) -> Reference:
    """Returns the reference that changes nothing: zeros."""
    return cco.means(*self._no_encodings())

  def centre(self, statistics: Statistics, reference: Reference) -> Reference:
    """Returns the reference moved to the means found in statistics.

    Args:
      statistics: A cohort's; without examples the reference stays unchanged.
      reference: What the statistics were taken around.

    Raises:
      ValueError: If there is an `encoding_norm`: encodings are bounded around a
        different reference.
    """
    if self.encoding_norm is not None:
      raise ValueError(
        f'encoding_norm is {self.encoding_norm}; it must be None when clients use '
        'the statistics of the previous round, which are taken around a different '
        'reference.'
      )
    found = collections.OrderedDict(
      (name, value + statistics[f'mean_{name}']) for name, value in reference.items()
    )
    return self._common(found)

  def _reference(self, f: tf.Tensor, g: tf.Tensor) -> Reference:
    """Returns the reference nearest to encodings [n, d], a constant to gradients."""
    return tf.nest.map_structure(tf.stop_gradient, self._common(cco.means(f, g)))

  def _common(self, means: Reference) -> Reference:
    """Returns the reference near means; the views share one if they are compared."""
    if self.loss_name != 'vicreg':
      return means
    middle = (means['f'] + means['g']) / 2
    return collections.OrderedDict(f=middle, g=middle)

  def loss_of(self, statistics: Statistics) -> tf.Tensor:
    """Returns the loss of any statistics: a batch's own, or aggregated."""
    if self.loss_name == 'vicreg':
      return vicreg.vicreg_loss(statistics)
    return cco.cco_loss(statistics, self.off_diagonal_weight)

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the within-batch loss of encodings (see `base.Separable`)."""
    f, g = encodings['f'], encodings['g']
    reference = self._reference(f, g)
    statistics = cco.statistics(f, g, self._within, reference=reference)
    loss = self.loss_of(statistics)
    has_examples = tf.cast(base.example_count(examples) > 0, loss.dtype)
    return loss * has_examples, collapse.spread_metrics(f)

  def summarize_statistics(self, statistics: Statistics) -> base.Metrics:
    """Returns the loss of a cohort's statistics, and signs of a collapse in them.

    `effective_rank` is the rank of the symmetric part of the two views'
    cross-covariance, which is the covariance of what both views share. `encoding_std`
    does not follow from a cohort's statistics (see `statistics_and_spread`).
    """
    mean_f, mean_g = statistics['mean_f'], statistics['mean_g']
    covariance = cco.covariance(statistics['cross'], mean_f, mean_g)
    return collections.OrderedDict(
      loss=self.loss_of(statistics),
      effective_rank=spread.effective_rank_from_covariance(
        (covariance + tf.transpose(covariance)) / 2
      ),
      total_variance=tf.reduce_sum(cco.variance(statistics['square_f'], mean_f)),
    )
