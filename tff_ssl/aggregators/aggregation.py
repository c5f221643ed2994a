"""Everything that leaves a client, and the factory that each thing goes through.

An algorithm takes one `Aggregation`. `plain` sums in the clear; `secure` uses secure
sums throughout, so that the server learns only totals; `private` clips and noises what
is computed from a client's examples (central differential privacy), all but the counts.
"""

import collections
from collections.abc import Mapping
import dataclasses
import math

import tensorflow_federated as tff

from tff_ssl.aggregators import statistics as statistics_lib

# An l2 norm that no sum of clients reaches.
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
    packs: How the same is done where each value holds many simulated clients; None: it
      cannot be, and clients must be apart.
    noised: Whether noise is added, so that nothing that arrives is 0.
  """

  updates: tff.aggregators.WeightedAggregationFactory
  statistics: tff.aggregators.WeightedAggregationFactory
  metrics: tff.aggregators.WeightedAggregationFactory
  counts: tff.aggregators.UnweightedAggregationFactory
  packs: 'Packs | None' = None
  noised: bool = False


@dataclasses.dataclass(frozen=True)
class Packs:
  """An aggregation of packs of clients: what acts on each client, and the rest.

  Attributes:
    aggregation: Combines packs: each value is the mean over the pack's clients, each
      weight the sum of theirs.
    clip_norms: By the name of what a client sends ('update', 'statistics', 'metrics'),
      the l2 norm to which n_k times each client's value is clipped before the pack is
      summed. What is not named is not clipped.
  """

  aggregation: Aggregation
  clip_norms: Mapping[str, float] = dataclasses.field(default_factory=dict)


def plain() -> Aggregation:
  """Returns weighted means and sums in the clear."""
  aggregation = Aggregation(
    updates=tff.aggregators.MeanFactory(no_nan_division=True),
    statistics=statistics_lib.StatisticsFactory(),
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
      clipped to [-value_bound, value_bound] and quantised within it.
    max_examples_per_client: Bound of n_k.
    max_count: Bound of a client's integer counts.

  Returns:
    The aggregation. It runs where secure sums exist (`tff.backends.test` simulates
    them); TFF's native runtime refuses them.

  Raises:
    ValueError: If a bound is not positive and finite.
  """
  _check_positive(
    value_bound=value_bound,
    max_examples_per_client=max_examples_per_client,
    max_count=max_count,
  )
  values = tff.aggregators.SecureSumFactory(float(value_bound), -float(value_bound))
  weights = tff.aggregators.SecureSumFactory(float(max_examples_per_client), 0.0)

  def mean():
    return tff.aggregators.MeanFactory(values, weights, no_nan_division=True)

  return Aggregation(
    updates=mean(),
    statistics=statistics_lib.StatisticsFactory(values, weights),
    metrics=mean(),
    counts=tff.aggregators.SecureSumFactory(max_count, 0),
  )


def private(
  noise_multiplier: float,
  update_clip: float,
  statistics_clip: float,
  metrics_clip: float = 1.0,
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
      sums are divided by the exact total. The guarantee holds for clients whose counts
      may be known.
    - Updates, statistics and metrics are three releases of one round, each at
      `noise_multiplier`: account for every one that an algorithm uses. DCCO has the
      first two, FedAvg the first and the last, with batch norm all three.
    - The noise is drawn without the run's seed: no two runs are equal.

  Args:
    noise_multiplier: Standard deviation of the noise over the clip; positive.
    update_clip: l2 norm to which n_k times a client's model update is clipped.
    statistics_clip: The same of n_k times its encoding or population statistics.
    metrics_clip: The same of n_k times its floating metrics.

  Returns:
    The aggregation.

  Raises:
    ValueError: If a number is not positive and finite.
  """
  _check_positive(
    noise_multiplier=noise_multiplier,
    update_clip=update_clip,
    statistics_clip=statistics_clip,
    metrics_clip=metrics_clip,
  )

  clip_norms = collections.OrderedDict(
    update=update_clip, statistics=statistics_clip, metrics=metrics_clip
  )
  noised = _noised(
    {name: _noised_sum(noise_multiplier, norm) for name, norm in clip_norms.items()}
  )
  # In packs each client is clipped inside; what is left is the same noise, by a norm
  # that clips nothing. Of a power of two the scale is exactly one.
  noise_only = _noised(
    {
      name: _noised_sum(noise_multiplier * norm / _UNCLIPPED, _UNCLIPPED)
      for name, norm in clip_norms.items()
    }
  )
  return dataclasses.replace(noised, packs=Packs(noise_only, clip_norms))


def _noised_sum(
  noise_multiplier: float, clip: float
) -> tff.aggregators.UnweightedAggregationFactory:
  # One client per round by name: the factory divides by it, and a sum is wanted.
  return tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
    float(noise_multiplier), clients_per_round=1.0, clip=float(clip)
  )


def _noised(
  sums: Mapping[str, tff.aggregators.UnweightedAggregationFactory],
) -> Aggregation:
  return Aggregation(
    updates=tff.aggregators.MeanFactory(sums['update'], no_nan_division=True),
    statistics=statistics_lib.StatisticsFactory(sums['statistics']),
    metrics=tff.aggregators.MeanFactory(sums['metrics'], no_nan_division=True),
    counts=tff.aggregators.SumFactory(),
    noised=True,
  )


def _check_positive(**values: float) -> None:
  for name, value in values.items():
    if not (math.isfinite(value) and value > 0):
      raise ValueError(f'{name} is {value}; it must be positive and finite.')
