"""Tests of the aggregations an algorithm can take."""

import collections
import dataclasses
import itertools
import re

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import encoding_statistics

_VALUE = tff.to_type(collections.OrderedDict(x=(np.float32, [2])))
_WEIGHT = tff.TensorType(np.float32)
_COUNTS = tff.to_type(collections.OrderedDict(clients=np.int32))
_FACTORIES = (
  tff.aggregators.WeightedAggregationFactory,
  tff.aggregators.UnweightedAggregationFactory,
)
# The last two are no float32.
_OUT_OF_RANGE = [0.0, -1.0, float('nan'), float('inf'), 1e39, 1e-46]
_ALL = {
  'plain': aggregations.plain,
  'secure': lambda: aggregations.secure(8.0, 16),
  'private': lambda: aggregations.private(1.0, 1.0, 1.0),
  'distributed': lambda: aggregations.distributed(1.0, 1.0, 1.0, 1.0, 4, 16),
}
_A = tff.aggregators
_MEAN = _A.MeanFactory()
_DP = _A.DifferentiallyPrivateFactory.gaussian_fixed(1.0, 4, 1.0)
# Factories that fit, those that do not.
_PLACES = {
  'updates': (_A.clipping_factory(1.0, _MEAN), (_A.UnweightedMeanFactory(), _DP, '')),
  'metrics': (_A.as_weighted_aggregator(_DP), (_A.SumFactory(), _A.MeanFactory)),
  'statistics': (encoding_statistics.StatisticsFactory(_DP), (_MEAN, None)),
  'counts': (_A.SecureSumFactory(9, 0), (_MEAN,)),
}


@pytest.mark.parametrize('name', _ALL)
def test_every_factory_fits_its_place(name):
  made = _ALL[name]()
  assert (made.packs is None) == (name == 'secure')
  in_packs = made.packs.aggregation if made.packs else made
  assert in_packs.is_gaussian == (name != 'distributed')
  for each in (made, in_packs):
    assert each.noised == (name in ('private', 'distributed'))
    for field in dataclasses.fields(each):
      factory = getattr(each, field.name)
      if not isinstance(factory, _FACTORIES):
        continue
      if field.name == 'counts':
        process = factory.create(_COUNTS)
      else:
        process = factory.create(_VALUE, _WEIGHT)
      assert isinstance(process, tff.templates.AggregationProcess)
      if name == 'secure' or (name == 'distributed' and each is made):
        tff.test.assert_not_contains_unsecure_aggregation(process.next)


@pytest.mark.parametrize('field', ['updates', 'metrics', 'statistics'])
def test_plain_means_are_weighted_and_defined_without_weight(tff_context, field):
  process = getattr(aggregations.plain(), field).create(_VALUE, _WEIGHT)
  values = [{'x': [1.0, 2.0]}, {'x': [4.0, 8.0]}]

  def mean(weights):
    result = process.next(process.initialize(), values, weights).result
    return result['statistics']['x'] if field == 'statistics' else result['x']

  np.testing.assert_allclose(mean([1.0, 2.0]), [3.0, 6.0], rtol=1e-6)
  np.testing.assert_array_equal(mean([0.0, 0.0]), [0.0, 0.0])


def test_secure_clips_beyond_its_bound_and_counts_whom(tff_context):
  process = aggregations.secure(8.0, 16).updates.create(_VALUE, _WEIGHT)
  # n_k times the values are [3, 6], [9, -2] and [1, -20]: the bound is 8.
  values = [{'x': [3.0, 6.0]}, {'x': [3.0, -2 / 3]}, {'x': [0.5, -10.0]}]
  output = process.next(process.initialize(), values, [1.0, 3.0, 2.0])
  expected = np.array([3 + 8 + 1, 6 - 2 - 8]) / 6
  # Three roundings by half of 16 / 2^32, and of the weights by half of 16 / 2^32.
  np.testing.assert_allclose(output.result['x'], expected, atol=1e-7)
  told = output.measurements['mean_value']
  assert told['secure_upper_clipped_count'] == told['secure_lower_clipped_count'] == 1
  assert told['secure_upper_threshold'] == -told['secure_lower_threshold'] == 8
  assert output.measurements['mean_weight']['secure_upper_clipped_count'] == 0


@pytest.mark.parametrize(
  ('field', 'clips'), [('updates', (5.0, 1e3)), ('statistics', (1e3, 5.0))]
)
def test_private_clips_each_client_by_itself(tff_context, field, clips):
  made = aggregations.private(1e-9, *clips)
  process = getattr(made, field).create(_VALUE, _WEIGHT)
  # n_k times the values are [3, 0], within the clip of 5, and [0, 40], beyond it.
  values = [{'x': [1.0, 0.0]}, {'x': [0.0, 20.0]}]
  result = process.next(process.initialize(), values, [3.0, 2.0]).result
  got = result['statistics']['x'] if field == 'statistics' else result['x']
  np.testing.assert_allclose(got, [3.0 / 5.0, 5.0 / 5.0], atol=1e-5)


@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize(
  'made',
  [
    aggregations.private(2.0, 3.0, 1.0),
    aggregations.distributed(2.0, 3.0, 1.0, None, 2, 1),
  ],
  ids=['private', 'distributed'],
)
def test_noise_has_the_stated_deviation(tff_context, made, packed):
  value_type = tff.to_type(collections.OrderedDict(x=(np.float32, [4000])))
  updates = made.packs.aggregation.updates if packed else made.updates
  process = updates.create(value_type, _WEIGHT)
  values = [{'x': np.zeros(4000, np.float32)}] * 2
  noise = process.next(process.initialize(), values, [1.0, 1.0]).result['x']
  # The sum has a standard deviation of 2 times 3, its mean over 2 examples half.
  assert noise.std() == pytest.approx(3.0, rel=0.1)
  assert abs(noise.mean()) < 0.25


@pytest.mark.parametrize('value', _OUT_OF_RANGE)
@pytest.mark.parametrize(
  ('builds', 'arguments', 'names'),
  [
    (
      (aggregations.secure,),
      {'value_bound': 1.0, 'max_examples_per_client': 1, 'max_count': 1},
      ('value_bound', 'max_examples_per_client', 'max_count'),
    ),
    (
      (
        aggregations.private,
        lambda noise_multiplier, **clips: aggregations.of_rounds(
          lambda z: aggregations.private(z, **clips), noise_multiplier
        ),
      ),
      {'noise_multiplier': 1.0, 'update_clip': 1.0, 'statistics_clip': 1.0},
      ('noise_multiplier', 'update_clip', 'statistics_clip', 'metrics_clip'),
    ),
    (
      (aggregations.distributed,),
      {
        'noise_multiplier': 1.0,
        'update_clip': 1.0,
        'statistics_clip': 1.0,
        'metrics_clip': None,
        'clients_per_round': 4,
        'max_examples_per_client': 16,
      },
      ('noise_multiplier', 'update_clip', 'statistics_clip', 'metrics_clip'),
    ),
  ],
  ids=['secure', 'private', 'distributed'],
)
def test_a_number_out_of_range_is_named(builds, arguments, names, value):
  for build, name in itertools.product(builds, names):
    with pytest.raises(ValueError, match=re.escape(f'{name} is {value}; it must be')):
      build(**{**arguments, name: value})


@pytest.mark.parametrize('bound', [1e12, 1e30, 2.0**17 + 1])
def test_secure_sums_that_would_round_updates_to_nothing_are_refused(bound):
  # A step is 2^-31 of the bound; an update's entries are about the rate, 1e-3.
  aggregations.secure(2.0**17, 4096)
  assert 2.0**17 * 2.0**-31 < 0.1 * 1e-3
  with pytest.raises(ValueError, match='between 1e-12 and 131072'):
    aggregations.secure(bound, 4096)


@pytest.mark.parametrize('field', _PLACES)
def test_own_factories_are_never_packed_and_replace_no_noise(field):
  own, others = _PLACES[field]
  second = dataclasses.replace(aggregations.of(updates=_MEAN), **{field: own})
  replaced = dataclasses.replace(aggregations.plain(), **{field: own})
  for made in (second, replaced, aggregations.of(**{field: own})):
    assert getattr(made, field) is own
    assert made.packs is None
    assert not made.noised
  for other in others:
    with pytest.raises(ValueError, match=f'^{field} is .*; it must be of .*Factory: '):
      dataclasses.replace(aggregations.plain(), **{field: other})
  rounds = aggregations.of_rounds(lambda z: aggregations.private(z, 1.0, 1.0), 1.0)
  for made in (_ALL['private'](), _ALL['distributed'](), rounds):
    with pytest.raises(ValueError, match=f'^{field} of an aggregation is set; it must'):
      dataclasses.replace(made, **{field: own})


def test_noise_and_packs_cannot_be_claimed():
  plain, private = aggregations.plain(), _ALL['private']()
  own = aggregations.of(updates=_MEAN)
  assert aggregations.of().packs is not None
  for made, change in (
    (own, {'noised': True}),
    (own, {'packs': plain.packs}),
    (plain, {'packs': private.packs}),
    (plain, {'noised': True, 'multipliers': {'update': 9.0}}),
    (private, {'multipliers': {'update': 9.0}}),
    (private, {'is_gaussian': False}),
  ):
    with pytest.raises(ValueError, match=', '.join(change)):
      dataclasses.replace(made, **change)
  with pytest.raises(ValueError, match='noised or packs of an aggregation is set'):
    aggregations.Aggregation(_MEAN, own.statistics, _MEAN, own.counts, noised=True)
