"""Which factory each value that leaves a client goes through.

An algorithm takes one `Aggregation`. `plain` sums in the clear; `of` takes own
factories. `secure` uses secure sums throughout, so that the server learns only totals.
`private` clips every value computed from a client's examples, except counts, and adds
noise to its sum (central differential privacy). With `distributed` the clients add the
noise themselves, under secure sums. `of_rounds` states the noise for all releases of a
round together.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import Any

import tensorflow_federated as tff
import tensorflow_privacy

from tff_ssl.aggregators import aggregation
from tff_ssl.aggregators import bounds
from tff_ssl.aggregators import clip_norms
from tff_ssl.aggregators import encoding_statistics
from tff_ssl.aggregators import expected_counts
from tff_ssl.aggregators import noise_split
from tff_ssl.aggregators import secret_noise
from tff_ssl.aggregators import secure_counts
from tff_ssl.aggregators import secure_values
from tff_ssl.aggregators import skellam
from tff_ssl.aggregators import zeros
from tff_ssl.computing import checks

Aggregation = aggregation.Aggregation
Packs = aggregation.Packs
# An l2 norm that no sum over clients reaches.
_UNCLIPPED = 2.0**60


def plain() -> Aggregation:
  """Returns weighted means and sums in the clear."""
  whole = Aggregation(
    updates=tff.aggregators.MeanFactory(no_nan_division=True),
    statistics=encoding_statistics.StatisticsFactory(),
    metrics=tff.aggregators.MeanFactory(no_nan_division=True),
    counts=tff.aggregators.SumFactory(),
  )
  # A weighted mean of weighted means is the weighted mean.
  return dataclasses.replace(whole, packs=Packs(whole), made=aggregation.KNOWN)


def checked(aggregation: Any) -> Aggregation:
  """Returns an aggregation; a plain one for None.

  Args:
    aggregation: As the user gives it.

  Raises:
    ValueError: If it is anything else.
  """
  if aggregation is None:
    return plain()
  if not isinstance(aggregation, Aggregation):
    raise ValueError(
      f'aggregation is a {type(aggregation).__name__}; it must be an Aggregation, as '
      '`plain`, `of`, `secure`, `private` and `distributed` return it.'
    )
  return aggregation


def of(
  updates: tff.aggregators.WeightedAggregationFactory | None = None,
  statistics: encoding_statistics.StatisticsFactory | None = None,
  metrics: tff.aggregators.WeightedAggregationFactory | None = None,
  counts: tff.aggregators.UnweightedAggregationFactory | None = None,
) -> Aggregation:
  """Returns an aggregation by own factories; see `Aggregation`, also for arguments.

  They act on each client: packs and parts are refused, because a mean of means may be
  another one. Where none is given it is plain. Noise of a factory is in no ledger.

  Raises:
    ValueError: If a factory does not fit its place.
  """
  whole = plain()
  return dataclasses.replace(
    whole,
    updates=updates or whole.updates,
    statistics=statistics or whole.statistics,
    metrics=metrics or whole.metrics,
    counts=counts or whole.counts,
  )


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
  noise_multiplier: float | Mapping[str, float],
  update_clip: clip_norms.Clip,
  statistics_clip: clip_norms.Clip,
  metrics_clip: clip_norms.Clip | None = 1.0,
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
    - Updates, statistics and metrics are separate releases, each at `noise_multiplier`,
      and where a norm adapts so is the number of clients within it: account for every
      release that an algorithm makes in a round, at `Aggregation.multipliers`;
      `federated.releases.names` lists them. DCCO makes the first three, FedAvg the
      first and the last, or all three with batch norm.
    - The noise is drawn from secret seeds (`secret_noise`): no two runs are equal.

  Args:
    noise_multiplier: Standard deviation of the noise over the clip, positive; of each
      release, or by what is clipped (`Aggregation.multipliers`).
    update_clip: l2 norm to which n_k times a client's model update is clipped: a
      number, or how it adapts.
    statistics_clip: The same for n_k times its encoding or population statistics.
    metrics_clip: The same for n_k times its floating metrics; None: they do not leave
      the client.
    expected: For cohorts that each client joins independently at random
      (`cohort_sampling.PoissonCohorts`): the expected numbers of a round.

  Returns:
    The aggregation.

  Raises:
    ValueError: If a number is out of range (`bounds`).
  """
  adaptive, norms = clip_norms.divided(update_clip, statistics_clip, metrics_clip)
  multipliers = clip_norms.multipliers(noise_multiplier, adaptive, norms)
  known = expected_counts.factories(expected)
  # Packs clip each client inside. Only the same noise remains to be added, with a norm
  # that clips nothing: a power of two, by which the noise is scaled exactly.
  noise_only = {
    name: _noised_sum(multipliers[name] * norm / _UNCLIPPED, _UNCLIPPED)
    for name, norm in norms.items()
  }
  packed = _noised(multipliers, noise_only, *known, expected=expected)
  return _noised(
    multipliers,
    {name: _noised_sum(multipliers[name], norm) for name, norm in norms.items()},
    *known,
    packs=Packs(packed, norms),
    expected=expected,
    adaptive=adaptive,
  )


def distributed(
  noise_multiplier: float | Mapping[str, float],
  update_clip: clip_norms.Clip,
  statistics_clip: clip_norms.Clip,
  metrics_clip: clip_norms.Clip | None,
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
  adaptive, norms = clip_norms.divided(update_clip, statistics_clip, metrics_clip)
  multipliers = clip_norms.multipliers(noise_multiplier, adaptive, norms)
  sums: dict[str, tff.aggregators.UnweightedAggregationFactory] = {
    name: skellam.SkellamSumFactory(multipliers[name], norm, clients_per_round)
    for name, norm in norms.items()
  }
  weights = secure_values.SecureWeightFactory(max_examples_per_client)
  counts = secure_counts.SecureCountFactory(max_count)
  noise_only: dict[str, tff.aggregators.UnweightedAggregationFactory] = {
    name: skellam.PackedSumFactory(multipliers[name], norm)
    for name, norm in norms.items()
  }
  plain_sums: dict[str, tff.aggregators.UnweightedAggregationFactory] = {
    name: tff.aggregators.SumFactory() for name in norms
  }
  packs = Packs(
    _noised(multipliers, noise_only, is_gaussian=False),
    norms,
    unmasked=True,
    most_examples=max_examples_per_client,
    noised_before=_noised(multipliers, plain_sums, is_gaussian=False),
  )
  return _noised(
    multipliers,
    sums,
    weights,
    counts,
    packs=packs,
    is_gaussian=False,
    adaptive=adaptive,
  )


def of_rounds(
  build: Callable[[float | Mapping[str, float]], Aggregation],
  noise_multiplier: float,
  by_size: bool = True,
) -> Aggregation:
  """Returns an aggregation whose noise is stated for a round, whatever it releases.

  The builder finds the releases of a round, and their sizes, from the algorithm's
  phases.

  Args:
    build: Noise multiplier of each release, or by what is clipped -> `private` or
      `distributed`.
    noise_multiplier: z, for all releases of a round together.
    by_size: How the noise is divided among releases, see `noise_split.divide`.
  """
  whole = build(noise_multiplier)

  def divided(sizes: Mapping[str, Sequence[int]]) -> Aggregation:
    counts = whole.multipliers.get(noise_split.WITHIN, math.inf)
    split = noise_split.divide(noise_multiplier, sizes, counts, by_size)
    # What a round does not release has no share, but a factory.
    return build({**whole.multipliers, **split})

  return dataclasses.replace(whole, divided=divided, made=aggregation.KNOWN)


def _noised_sum(
  noise_multiplier: float, clip: float
) -> tff.aggregators.UnweightedAggregationFactory:
  query = secret_noise.GaussianSumQuery(float(clip), float(clip) * noise_multiplier)
  # As TFF's `gaussian_fixed`, so that states of earlier runs fit: a sum over 1.
  return tff.aggregators.DifferentiallyPrivateFactory(
    tensorflow_privacy.NormalizedQuery(query, denominator=1.0)
  )


def _noised(
  multipliers: Mapping[str, float],
  sums: Mapping[str, tff.aggregators.UnweightedAggregationFactory],
  weights: tff.aggregators.UnweightedAggregationFactory | None = None,
  counts: tff.aggregators.UnweightedAggregationFactory | None = None,
  **stated: Any,
) -> Aggregation:
  metrics: tff.aggregators.WeightedAggregationFactory = zeros.WithheldFactory()
  if noise_split.METRICS in sums:
    metrics = tff.aggregators.MeanFactory(
      sums[noise_split.METRICS], weights, no_nan_division=True
    )
  within = None
  if noise_split.WITHIN in sums:
    within = encoding_statistics.StatisticsFactory(sums[noise_split.WITHIN], weights)
  return Aggregation(
    updates=tff.aggregators.MeanFactory(
      sums[noise_split.UPDATE], weights, no_nan_division=True
    ),
    statistics=encoding_statistics.StatisticsFactory(
      sums[noise_split.STATISTICS], weights
    ),
    metrics=metrics,
    counts=counts or tff.aggregators.SumFactory(),
    noised=True,
    multipliers=multipliers,
    within=within,
    releases_metrics=noise_split.METRICS in sums,
    made=aggregation.KNOWN,
    **stated,
  )
