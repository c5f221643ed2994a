"""Everything that leaves a client, and the factory that each thing goes through.

An algorithm takes one `Aggregation`. `plain` sums in the clear; `secure` uses secure
sums throughout, so that the server learns only totals; `private` clips and noises what
depends on a client's examples (central differential privacy).
"""

import dataclasses

import tensorflow_federated as tff

from tff_ssl.aggregators import statistics as statistics_lib


@dataclasses.dataclass(frozen=True)
class Aggregation:
  """The aggregators of an algorithm.

  Attributes:
    updates: Model updates, weighted by example count.
    statistics: Encoding statistics, weighted by example count; the result has the
      fields `statistics` and `num_examples` (see `StatisticsFactory`).
    metrics: Floating metrics, weighted by example count.
    counts: Integer counts, summed.
  """

  updates: tff.aggregators.WeightedAggregationFactory
  statistics: tff.aggregators.WeightedAggregationFactory
  metrics: tff.aggregators.WeightedAggregationFactory
  counts: tff.aggregators.UnweightedAggregationFactory


def plain() -> Aggregation:
  """Returns weighted means and sums in the clear."""
  return Aggregation(
    updates=tff.aggregators.MeanFactory(no_nan_division=True),
    statistics=statistics_lib.StatisticsFactory(),
    metrics=tff.aggregators.MeanFactory(no_nan_division=True),
    counts=tff.aggregators.SumFactory(),
  )


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
    ValueError: If a bound is not positive.
  """
  for name, value in (
    ('value_bound', value_bound),
    ('max_examples_per_client', max_examples_per_client),
    ('max_count', max_count),
  ):
    if value <= 0:
      raise ValueError(f'{name} is {value}; it must be positive.')
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
