"""Which factory each value that leaves a client goes through.

An algorithm takes one `Aggregation`. `plain` sums in the clear. `secure` uses secure
sums throughout, so that the server learns only totals. `private` clips every value
computed from a client's examples, except counts, and adds noise to its sum (central
differential privacy). `private_rounds` states the noise for all releases of a round
together. With `distributed` the clients add the noise themselves, under secure sums.
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
import math
from typing import Any

import tensorflow_federated as tff

from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import bounds
from tff_ssl.aggregators import encoding_statistics
from tff_ssl.aggregators import expected_counts
from tff_ssl.aggregators import secure_counts
from tff_ssl.aggregators import secure_values
from tff_ssl.aggregators import skellam
from tff_ssl.aggregators import zeros
from tff_ssl.computing import checks

# An l2 norm that no sum over clients reaches.
_UNCLIPPED = 2.0**60


@dataclasses.dataclass(frozen=True)
class Aggregation:
  """The aggregators of an algorithm.

  Attributes:
    updates: Model updates, weighted by example count.
    statistics: Encoding statistics, or population statistics of batch norm, weighted
      by example count; the result has the fields `statistics` and `num_examples` (see
      `StatisticsFactory`).
    metrics: Floating metrics, weighted by example count.
    counts: Integer counts, summed.
    packs: How packs are aggregated, where each value holds many simulated clients.
      None: packs are not possible, and each client must be a value of its own.
    noised: Whether noise is added, so that no value that arrives is 0.
    noise_multiplier: If noise is added, its standard deviation over the clip norm, for
      each value that is released.
    is_gaussian: If noise is added, whether it is Gaussian. Other noise is accounted for
      as Gaussian, but without amplification by sampling, which is not known for it.
    releases_metrics: Whether metrics leave the clients; if not, 0 arrives in their
      place.
    expected: If the sizes of cohorts are random and must not be revealed, the numbers
      that replace each round's counts; None: clients and examples are counted.
    divided: If noise is stated for a round, a function from the number of values that a
      round releases to the aggregation for such rounds; the builder calls it. None: the
      noise is stated for each release.
  """

  updates: tff.aggregators.WeightedAggregationFactory
  statistics: tff.aggregators.WeightedAggregationFactory
  metrics: tff.aggregators.WeightedAggregationFactory
  counts: tff.aggregators.UnweightedAggregationFactory
  packs: 'Packs | None' = None
  noised: bool = False
  noise_multiplier: float | None = None
  is_gaussian: bool = True
  releases_metrics: bool = True
  expected: expected_counts.Expected | None = None
  divided: 'Callable[[int], Aggregation] | None' = None


@dataclasses.dataclass(frozen=True)
class Packs:
  """How packs of clients are aggregated, and how each client in them is clipped.

  Attributes:
    aggregation: Combines packs: each value is the mean over the pack's clients, and
      each weight is the sum of their weights.
    clip_norms: By the name of what a client sends ('update', 'statistics', 'metrics'),
      the l2 norm to which n_k times each client's value is clipped before the pack is
      summed. Values that are not named are not clipped.
    most_examples: Bound of n_k, above which a client is an error; None: none.
    unmasked: Whether packs are summed in the clear although clients would mask what
      they send. Only a simulation may do this.
  """

  aggregation: Aggregation
  clip_norms: Mapping[str, float] = dataclasses.field(default_factory=dict)
  unmasked: bool = False
  most_examples: int | None = None


def plain() -> Aggregation:
  """Returns weighted means and sums in the clear."""
  aggregation = Aggregation(
    updates=tff.aggregators.MeanFactory(no_nan_division=True),
    statistics=encoding_statistics.StatisticsFactory(),
    metrics=tff.aggregators.MeanFactory(no_nan_division=True),
    counts=tff.aggregators.SumFactory(),
  )
  # A weighted mean of weighted means is the weighted mean.
  return dataclasses.replace(aggregation, packs=Packs(aggregation))


def secure(
  value_bound: float, max_examples_per_client: int, max_count: int = 2**20
) -> Aggregation:
  """Returns secure sums for every value that leaves a client.

  Args:
    value_bound: Every entry of n_k times a client's update, statistics or metrics is
      clipped to [-value_bound, value_bound] and quantised within it, in steps of 2^-31
      of it.
    max_examples_per_client: Bound of n_k; a client with more is an error.
    max_count: Bound of a client's counts (int32).

  Returns:
    The aggregation. It runs where secure sums exist: `contexts.in_process` and
    `tff.backends.test` simulate them; TFF's native runtime refuses them.

  Raises:
    ValueError: If a bound is out of range (`bounds`): with a larger `value_bound`
      updates would be rounded to 0.
  """
  bounds.check_secure(max_examples_per_client, max_count, value_bound)
  values = secure_values.SecureSumFactory(float(value_bound), -float(value_bound))
  weights = secure_values.SecureWeightFactory(max_examples_per_client)

  def mean():
    return tff.aggregators.MeanFactory(values, weights, no_nan_division=True)

  return Aggregation(
    updates=mean(),
    statistics=encoding_statistics.StatisticsFactory(values, weights),
    metrics=mean(),
    counts=secure_counts.SecureCountFactory(max_count),
  )


def private(
  noise_multiplier: float,
  update_clip: float,
  statistics_clip: float,
  metrics_clip: float | None = 1.0,
  adaptive: adaptive_clipping.AdaptiveClip | None = None,
  expected: expected_counts.Expected | None = None,
) -> Aggregation:
  """Returns central differential privacy at the level of a client.

  n_k times a client's update, its statistics and its metrics are each clipped to an l2
  norm, and the server adds Gaussian noise to each sum before anything uses it
  (McMahan et al., "Learning Differentially Private Recurrent Language Models", ICLR
  2018).

  What it does and does not protect:
    - The server itself sees every client's clipped value: it is trusted, and what it
      releases (model, statistics, metrics) is protected.
    - Example counts n_k and the counts of clients are summed in the clear, and the
      other sums are divided by the exact total. The guarantee holds for clients whose
      counts may be known. With `expected` nothing is counted, and sums are divided by
      the expected numbers.
    - Updates, statistics and metrics are separate releases, each at `noise_multiplier`:
      account for every release that an algorithm makes in a round;
      `federated.releases.of_round` lists them. DCCO makes all three, FedAvg the first
      and the last, or all three with batch norm.
    - The noise is drawn without the run's seed: no two runs are equal.

  Args:
    noise_multiplier: Standard deviation of the noise over the clip; positive.
    update_clip: l2 norm to which n_k times a client's model update is clipped.
    statistics_clip: The same for n_k times its encoding or population statistics.
    metrics_clip: The same for n_k times its floating metrics; None: they do not leave
      the client.
    adaptive: How the clip norms change from round to round, beginning with those
      given; None: they stay. With it clients cannot be packed because each client's
      norm is compared with the clip norm.
    expected: For cohorts that each client joins independently at random
      (`cohort_sampling.PoissonCohorts`): the expected numbers of a round.

  Returns:
    The aggregation.

  Raises:
    ValueError: If a number is out of range (`bounds`).
  """
  clip_norms = _clip_norms(noise_multiplier, update_clip, statistics_clip, metrics_clip)
  if adaptive is not None:
    sums = {
      name: adaptive_clipping.build_sum(adaptive, noise_multiplier, norm)
      for name, norm in clip_norms.items()
    }
    noised = _noised(noise_multiplier, sums, *_known(expected))
    return dataclasses.replace(noised, expected=expected)
  noised = _noised(
    noise_multiplier,
    {name: _noised_sum(noise_multiplier, norm) for name, norm in clip_norms.items()},
    *_known(expected),
  )
  # Packs clip each client inside. Only the same noise remains to be added, with a norm
  # that clips nothing: a power of two, by which the noise is scaled exactly.
  noise_only = _noised(
    noise_multiplier,
    {
      name: _noised_sum(noise_multiplier * norm / _UNCLIPPED, _UNCLIPPED)
      for name, norm in clip_norms.items()
    },
    *_known(expected),
  )
  packed = Packs(dataclasses.replace(noise_only, expected=expected), clip_norms)
  return dataclasses.replace(noised, packs=packed, expected=expected)


def private_rounds(
  noise_multiplier: float,
  update_clip: float,
  statistics_clip: float,
  metrics_clip: float | None = None,
  adaptive: adaptive_clipping.AdaptiveClip | None = None,
  expected: expected_counts.Expected | None = None,
) -> Aggregation:
  """Returns `private` with noise that is stated for a round, whatever it releases.

  m Gaussian releases at sqrt(m) z each are together one release at z:
  (sum z_i^-2)^-1/2. The builder counts m, the releases of a round, from the algorithm's
  phases.

  Args:
    noise_multiplier: z, for all releases of a round together.
    update_clip: See `private` for this and the following arguments.
    statistics_clip: For statistics.
    metrics_clip: For metrics.
    adaptive: For all clip norms.
    expected: For cohorts of random sizes.
  """
  return _divided(
    lambda z: private(
      z, update_clip, statistics_clip, metrics_clip, adaptive, expected
    ),
    noise_multiplier,
  )


def distributed(
  noise_multiplier: float,
  update_clip: float,
  statistics_clip: float,
  metrics_clip: float | None,
  clients_per_round: int,
  max_examples_per_client: int,
  max_count: int = 2**20,
) -> Aggregation:
  """Returns differential privacy without a trusted server.

  Each client adds its part of the noise before a secure sum (`skellam`): the server
  sees only noised sums. Counts and the n_k are summed without noise, as in `private`,
  but under secure sums. Packs of simulated clients are summed in the clear, and the
  noise of all clients is drawn at once: the same noise, without the masks.

  Args:
    noise_multiplier: That of a Gaussian that is at most as private, see `private`; the
      clip norms are defined there too.
    update_clip: For updates.
    statistics_clip: For statistics.
    metrics_clip: For metrics; None: they do not leave the client.
    clients_per_round: K, all of which add noise.
    max_examples_per_client: Bound of n_k; a client with more is an error.
    max_count: Bound of a client's counts (int32).

  Raises:
    ValueError: If a number is out of range (`bounds`).
  """
  bounds.check_secure(max_examples_per_client, max_count)
  checks.positive(clients_per_round=clients_per_round)
  clip_norms = _clip_norms(noise_multiplier, update_clip, statistics_clip, metrics_clip)
  sums: dict[str, tff.aggregators.UnweightedAggregationFactory] = {
    name: skellam.SkellamSumFactory(noise_multiplier, norm, clients_per_round)
    for name, norm in clip_norms.items()
  }
  weights = secure_values.SecureWeightFactory(max_examples_per_client)
  counts = secure_counts.SecureCountFactory(max_count)
  made = _noised(noise_multiplier, sums, weights, counts)
  of_packs = _noised(
    noise_multiplier,
    {
      name: skellam.PackedSumFactory(noise_multiplier, norm)
      for name, norm in clip_norms.items()
    },
  )
  packs = Packs(
    dataclasses.replace(of_packs, is_gaussian=False),
    clip_norms,
    unmasked=True,
    most_examples=max_examples_per_client,
  )
  return dataclasses.replace(made, packs=packs, is_gaussian=False)


def distributed_rounds(noise_multiplier: float, *others: Any) -> Aggregation:
  """Returns `distributed` with noise that is stated for a round (`private_rounds`).

  Args:
    noise_multiplier: z, for all releases of a round together.
    *others: See `distributed`.
  """
  return _divided(lambda z: distributed(z, *others), noise_multiplier)


def _clip_norms(
  noise_multiplier: float, update: float, statistics: float, metrics: float | None
) -> collections.OrderedDict[str, float]:
  """Returns the clip norms by what they clip; refuses numbers that are out of range."""
  clip_norms = collections.OrderedDict(update=update, statistics=statistics)
  if metrics is not None:
    clip_norms['metrics'] = metrics
  bounds.check_noise(
    noise_multiplier, **{f'{name}_clip': norm for name, norm in clip_norms.items()}
  )
  return clip_norms


def _divided(
  build: Callable[[float], Aggregation], noise_multiplier: float
) -> Aggregation:
  """Returns an aggregation whose noise is stated for all releases of a round together.

  Args:
    build: Noise multiplier of one release -> aggregation.
    noise_multiplier: For a round.
  """

  def divided(releases: int) -> Aggregation:
    return build(noise_multiplier * math.sqrt(releases))

  return dataclasses.replace(divided(1), divided=divided)


def _known(
  expected: expected_counts.Expected | None,
) -> tuple[tff.aggregators.UnweightedAggregationFactory | None, ...]:
  """Returns what replaces the sums of weights and of counts; None: nothing does."""
  if expected is None:
    return None, None
  counts = {'clients': expected.clients, 'examples': expected.examples}
  return (
    expected_counts.KnownFactory(expected.examples),
    expected_counts.KnownFactory(counts),
  )


def _noised_sum(
  noise_multiplier: float, clip: float
) -> tff.aggregators.UnweightedAggregationFactory:
  # `clients_per_round` is the factory's divisor: 1 makes its result a sum.
  return tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
    float(noise_multiplier), clients_per_round=1.0, clip=float(clip)
  )


def _noised(
  noise_multiplier: float,
  sums: Mapping[str, tff.aggregators.UnweightedAggregationFactory],
  weights: tff.aggregators.UnweightedAggregationFactory | None = None,
  counts: tff.aggregators.UnweightedAggregationFactory | None = None,
) -> Aggregation:
  metrics: tff.aggregators.WeightedAggregationFactory = zeros.WithheldFactory()
  if 'metrics' in sums:
    metrics = tff.aggregators.MeanFactory(
      sums['metrics'], weights, no_nan_division=True
    )
  return Aggregation(
    updates=tff.aggregators.MeanFactory(sums['update'], weights, no_nan_division=True),
    statistics=encoding_statistics.StatisticsFactory(sums['statistics'], weights),
    metrics=metrics,
    counts=counts or tff.aggregators.SumFactory(),
    noised=True,
    noise_multiplier=noise_multiplier,
    releases_metrics='metrics' in sums,
  )
