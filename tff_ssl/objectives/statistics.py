"""Objectives that see a batch only through its encoding statistics.

Because the loss is a function of means over examples (`losses.statistics_loss`), an
algorithm may replace a client's statistics by the statistics of the whole cohort
(DCCO), or leave them alone (FedAvg with a within-client loss).

If the loss ignores a shift of the encodings, moments are taken around a reference near
the encodings' means (see `losses.cco`). For a single batch it is the batch's own means.
If clients' moments are added up, all clients of the round are sent the same reference.
A loss that compares the two views with each other, such as VICReg, ignores only a shift
of both, so there both have the same reference.

With an `encoding_norm` R, each example's share of what is sent is bounded by
construction, as differential privacy requires, and need not be clipped. Encodings
farther than R from the reference are moved towards it, to that distance. The bound is
around the reference, not around 0, because moments are of differences from the
reference: their lengths are then at most R, however far the reference drifts. The
reference is computed from the model alone, and sent with it.
"""

import collections
import dataclasses
from typing import Annotated

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.losses import cco
from tff_ssl.losses import lengths
from tff_ssl.losses import statistics_loss
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder

# Inputs of noise whose mean encoding is a reference, and their seed.
_NOISE_INPUTS, _NOISE_SEED = 4, (0, 0)


@dataclasses.dataclass(frozen=True)
class StatisticsObjective(dual_encoder.PairObjective):
  """A loss of the encoding statistics of a dual encoder.

  Attributes:
    model: The dual encoding model.
    kind: The loss: CCO (DCCO, Eq. 1), VICReg, the spectral loss, LeJEPA.
    encoding_norm: R, the largest distance from the reference at which the loss sees an
      encoding; None: encodings are not bounded, as in the paper.
  """

  model: dual_encoder.DualEncoder
  kind: statistics_loss.StatisticsLoss = dataclasses.field(default_factory=cco.CcoLoss)
  # Beyond, float32 does not hold its square.
  encoding_norm: Annotated[float, kinds.Range(1e-12, 1e12)] | None = None

  def __post_init__(self) -> None:
    super().__post_init__()
    f_dim, g_dim = self.model.output_dims
    if f_dim != g_dim:
      raise ValueError(
        f'The two encodings have {f_dim} and {g_dim} dimensions; they must be equal.'
      )

  @property
  def collapsed_below(self) -> float | None:
    """The `encoding_std` below which encodings are collapsed."""
    if self.kind.ignores_shift == statistics_loss.NO_SHIFT:
      return super().collapsed_below
    # Healthy encodings may have a far larger mean.
    return 0.005

  @property
  def share_bound(self) -> float | None:
    """The largest l2 norm of one example's share of the statistics; None: none.

    n_k times a client's statistics are at most n_k times as long.
    """
    return self.kind.share_bound(self.encoding_norm)

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns the encodings `f` [n, d] and `g` [n, d] (see `separable.Separable`).

    With an `encoding_norm` they are bounded as in DCCO's statistics, so that a round of
    DCCO still equals a centralized step.
    """
    encodings = super().encode(params, examples, seed)
    if self.encoding_norm is None:
      return encodings
    reference = self.reference(params, seed)
    return collections.OrderedDict(
      (name, centre + lengths.at_most(value - centre, self.encoding_norm))
      for name, value in encodings.items()
      for centre in [reference.get(name, tf.zeros([], value.dtype))]
    )

  def with_seed(self, seed: tf.Tensor) -> 'StatisticsObjective':
    """Returns the objective with what its loss draws from a seed, int32 [2]."""
    return dataclasses.replace(self, kind=self.kind.with_seed(seed))

  def loss_of_pairs(self, f: tf.Tensor, g: tf.Tensor) -> tf.Tensor:
    """Returns the within-batch loss of encodings [n, d]."""
    around = statistics_loss.around(f, g, self._reference(f, g))
    loss = self.kind.loss(self.kind.statistics(*around))
    return loss * tf.cast(tf.shape(f)[0] > 0, loss.dtype)

  def statistics(
    self,
    params: base.Params,
    examples: base.Examples,
    seed: tf.Tensor,
    reference: statistics_loss.Reference | None = None,
  ) -> statistics_loss.Statistics:
    """Returns the means over the batch that the loss needs.

    Args:
      params: The model's parameters.
      examples: n >= 0 examples.
      seed: int32 [2].
      reference: What moments are taken around, from `reference` or `centre`; the same
        for all statistics that are added up. Zeros when None, and directions are
        drawn from the given seed.
    """
    return self.statistics_and_spread(params, examples, seed, reference)[0]

  def statistics_and_spread(
    self,
    params: base.Params,
    examples: base.Examples,
    seed: tf.Tensor,
    reference: statistics_loss.Reference | None = None,
  ) -> tuple[statistics_loss.Statistics, base.Metrics]:
    """Returns the statistics, and 2 d means from which `encoding_std` is computed.

    `encoding_std` does not follow from the statistics, because it normalises encodings
    one by one.

    Args:
      params: The model's parameters.
      examples: n >= 0 examples.
      seed: int32 [2].
      reference: As in `statistics`.
    """
    if reference is None:
      reference = self._seed_of(seed)
    return self.statistics_of(*self.model.encode(params, examples, seed), reference)

  def statistics_of(
    self,
    f: tf.Tensor,
    g: tf.Tensor,
    reference: statistics_loss.Reference | None = None,
  ) -> tuple[statistics_loss.Statistics, base.Metrics]:
    """Returns what `statistics_and_spread` does, for encodings f and g [n, d]."""
    around = statistics_loss.around(f, g, reference, self.encoding_norm)
    kind = self.kind
    if reference and statistics_loss.SEED in reference:
      kind = kind.with_seed(reference[statistics_loss.SEED])
    return kind.statistics(*around), collapse.std_metrics(f)

  def no_statistics(self) -> statistics_loss.Statistics:
    """Returns the statistics of no example: zeros, laid out as in `statistics`."""
    return self.statistics_of(*self._no_encodings(), self.no_reference())[0]

  def reference(
    self, params: base.Params, seed: tf.Tensor
  ) -> statistics_loss.Reference:
    """Returns a reference to use before anything is known about the examples.

    It is the mean encoding of a few inputs of uniform noise, which approximates the
    offset that all encodings share at these very weights. On digits it is within 1.4
    standard deviations of the images' mean encoding after 240 rounds of Adam, and also
    with SGD at rate 1, where means move by thousands of standard deviations a round.

    Args:
      params: The model's parameters.
      seed: int32 [2], the round's; of the directions, if the loss draws any.

    Returns:
      The reference; without a mean encoding if the loss does not ignore a shift.
    """
    if self.kind.ignores_shift == statistics_loss.NO_SHIFT:
      return self._seed_of(seed)
    noise = dual_encoder.noise_examples(self.model, _NOISE_INPUTS, _NOISE_SEED)
    means = self._reference(*self.model.encode(params, noise, tf.constant(_NOISE_SEED)))
    return means | self._seed_of(seed)

  def no_reference(self) -> statistics_loss.Reference:
    """Returns the reference that changes nothing: zeros, laid out as in `reference`."""
    seed = self._seed_of(tf.zeros([2], tf.int32))
    return self._reference(*self._no_encodings()) | seed

  def centre(
    self,
    statistics: statistics_loss.Statistics,
    reference: statistics_loss.Reference,
  ) -> statistics_loss.Reference:
    """Returns the reference moved to the means that statistics have.

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
    means = collections.OrderedDict(
      (name, value + statistics[f'mean_{name}'])
      for name, value in reference.items()
      if name != statistics_loss.SEED
    )
    return collections.OrderedDict(reference) | self._common(means)

  def loss_of(self, statistics: statistics_loss.Statistics) -> tf.Tensor:
    """Returns the loss of any statistics: a batch's own, or aggregated."""
    return self.kind.loss(statistics)

  def summarize_statistics(
    self, statistics: statistics_loss.Statistics
  ) -> base.Metrics:
    """Returns the loss of a cohort's statistics, and signs of a collapse in them.

    `encoding_std` does not follow from a cohort's statistics (see
    `statistics_and_spread`).
    """
    signs = self.kind.signs_of_collapse(statistics)
    return collections.OrderedDict(loss=self.kind.loss(statistics), **signs)

  def _seed_of(self, seed: tf.Tensor) -> statistics_loss.Reference:
    """Returns the seed of directions as part of a reference, if there are any."""
    if not self.kind.draws:
      return collections.OrderedDict()
    return collections.OrderedDict([(statistics_loss.SEED, seed)])

  def _no_encodings(self) -> tuple[tf.Tensor, tf.Tensor]:
    f_dim, g_dim = self.model.output_dims
    return tf.zeros([0, f_dim]), tf.zeros([0, g_dim])

  def _reference(self, f: tf.Tensor, g: tf.Tensor) -> statistics_loss.Reference:
    """Returns the reference nearest to encodings [n, d], a constant to gradients."""
    if self.kind.ignores_shift == statistics_loss.NO_SHIFT:
      return collections.OrderedDict()
    means = self._common(statistics_loss.means(f, g))
    return tf.nest.map_structure(tf.stop_gradient, means)

  def _common(self, means: statistics_loss.Reference) -> statistics_loss.Reference:
    """Returns the reference near means; one for both views if these are compared."""
    if self.kind.ignores_shift != statistics_loss.COMMON_SHIFT or not means:
      return means
    middle = (means['f'] + means['g']) / 2
    return collections.OrderedDict(f=middle, g=middle)
