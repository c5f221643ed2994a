"""The factories of what leaves a client, as one value that cannot contradict itself."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import types
from typing import Any

import tensorflow_federated as tff

from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import encoding_statistics
from tff_ssl.aggregators import expected_counts

# As `Aggregation.made`: the fields belong together as they are given.
KNOWN: Mapping[str, Any] = types.MappingProxyType({})
_WEIGHTED = tff.aggregators.WeightedAggregationFactory
_NEEDED = {
  'updates': _WEIGHTED,
  'metrics': _WEIGHTED,
  'statistics': encoding_statistics.StatisticsFactory,
  'counts': tff.aggregators.UnweightedAggregationFactory,
}


@dataclasses.dataclass(frozen=True)
class Aggregation:
  """The aggregators of an algorithm.

  The first four can be any factories. The other fields state what is known of them, so
  that only the functions of `aggregations` set those. If `dataclasses.replace`
  exchanges a factory, packs are no longer possible; in a private aggregation it is
  refused.

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
    multipliers: If noise is added, its standard deviation over the clip norm, for each
      value that is released; by what is clipped ('update', 'statistics', 'metrics',
      'within').
    adaptive: By what is clipped, the norms that adapt (`federated.followed_norms`). Of
      these the aggregation sums values that were divided by them.
    within: Counts of clients within a norm that adapts; None: no norm does.
    is_gaussian: If noise is added, whether it is Gaussian. Other noise is accounted for
      as Gaussian, but without amplification by sampling, which is not known for it.
    releases_metrics: Whether metrics leave the clients; if not, 0 arrives in their
      place.
    expected: If the sizes of cohorts are random and must not be revealed, the numbers
      that replace each round's counts; None: clients and examples are counted.
    divided: If noise is stated for a round, a function from the sizes of the values
      that a round releases (`noise_split.divide`) to the aggregation for such rounds;
      the builder calls it. None: the noise is stated for each release.
    made: All other fields as they belong together; None: nothing is known.
  """

  updates: tff.aggregators.WeightedAggregationFactory
  statistics: tff.aggregators.WeightedAggregationFactory
  metrics: tff.aggregators.WeightedAggregationFactory
  counts: tff.aggregators.UnweightedAggregationFactory
  packs: 'Packs | None' = None
  noised: bool = False
  multipliers: Mapping[str, float] = dataclasses.field(default_factory=dict, hash=False)
  adaptive: Mapping[str, adaptive_clipping.AdaptiveClip] = dataclasses.field(
    default_factory=dict, hash=False
  )
  within: tff.aggregators.WeightedAggregationFactory | None = None
  is_gaussian: bool = True
  releases_metrics: bool = True
  expected: expected_counts.Expected | None = None
  divided: 'Callable[[Mapping[str, Sequence[int]]], Aggregation] | None' = None
  made: Mapping[str, Any] | None = dataclasses.field(
    default=None, repr=False, compare=False
  )

  def __post_init__(self):
    fields = {name: value for name, value in vars(self).items() if name != 'made'}
    for name, needed in _NEEDED.items():
      if not isinstance(fields[name], needed):
        raise ValueError(
          f'{name} is {fields[name]}; it must be of {needed.__name__}: MeanFactory or '
          'StatisticsFactory of a sum, as_weighted_aggregator of an unweighted mean, '
          'SumFactory for counts, or `aggregations.private` for noise.'
        )
    if self.made is KNOWN:
      object.__setattr__(self, 'made', fields)
    made = self.made or {'noised': False, 'packs': None}
    new = [name for name in fields if fields[name] is not made.get(name)]
    if not new:
      return
    if self.noised or made['noised'] or self.packs not in (None, made['packs']):
      names = ', '.join(new) if self.made else 'noised or packs'
      raise ValueError(
        f'{names} of an aggregation is set; it must be as a function of `aggregations` '
        'made it, because noise and packs hold for its own factories alone: give '
        '`private` other arguments, or `of` other factories.'
      )
    object.__setattr__(self, 'packs', None)


@dataclasses.dataclass(frozen=True)
class Packs:
  """How packs of clients are aggregated, and how each client in them is clipped.

  Attributes:
    aggregation: Combines packs: each value is the mean over the pack's clients, and
      each weight is the sum of their weights.
    clip_norms: By what is clipped ('update', 'statistics', 'metrics', 'within'),
      the l2 norm to which n_k times each client's value is clipped before the pack is
      summed. Values that are not named are not clipped.
    most_examples: Bound of n_k, above which a client is an error; None: none.
    unmasked: Whether packs are summed in the clear although clients would mask what
      they send. Only a simulation may do this.
    noised_before: Combines packs whose sums have their noise (`skellam.noised_quanta`),
      which it does not add again; None: no noise is added before.
  """

  aggregation: Aggregation
  clip_norms: Mapping[str, float] = dataclasses.field(default_factory=dict)
  unmasked: bool = False
  most_examples: int | None = None
  noised_before: Aggregation | None = None
