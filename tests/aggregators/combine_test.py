"""How clients' values become one: means, sums, statistics, expected counts."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.aggregators import communication
from tff_ssl.aggregators import encoding_statistics
from tff_ssl.aggregators import expected_counts
from tff_ssl.aggregators import groupwise

_FIVE = tff.to_type((np.float32, [5, 3]))


@pytest.mark.parametrize(
  ('kind', 'expected'),
  [
    (combine.UPDATE, 60),
    (combine.METRICS, 60),
    (combine.STATISTICS, 60),
    (combine.Sum(), 60),
    # Of five places a client fills one.
    (combine.Sum(slots=5), 12),
    (combine.Mean('updates', 'update', slots=5), 12),
    (combine.Statistics(slots=5), 12),
    (combine.TOTAL, 60),
    (combine.LOCAL, 0),
    (groupwise.GroupMean(2), 60),
  ],
)
def test_bytes_of_one_client(kind, expected):
  assert kind.num_bytes(_FIVE) == expected


def test_a_sum_arrives_whole():
  """Each client sends its value over its weight: 30 of weight 3 is a mean of 10."""
  result = {'statistics': {'x': tf.constant([10.0])}, 'num_examples': tf.constant(3.0)}
  np.testing.assert_array_equal(combine.Sum().aggregated(result)['x'], [30.0])


def test_the_server_has_no_share_in_a_group_unless_given():
  assert groupwise.GroupMean(2).server_weight == 0.0


def test_values_kept_on_clients_are_not_combined():
  with pytest.raises(TypeError, match='cannot be combined'):
    combine.LOCAL.create(aggregations.plain(), _FIVE)


@pytest.mark.parametrize(
  ('value_type', 'expected'),
  [
    (tff.TensorType(np.float32), 4),
    (tff.TensorType(np.int64, [3, 5]), 120),
    (tff.TensorType(np.uint8, [0]), 0),
    (tff.to_type(()), 0),
    (tff.to_type(collections.OrderedDict(a=np.float64, b=[(np.int32, [2])])), 16),
  ],
)
def test_bytes_are_elements_times_width(value_type, expected):
  assert communication.num_bytes(value_type) == expected


@pytest.mark.parametrize(
  ('value_type', 'expected'),
  [
    (tff.TensorType(np.float32), True),
    (tff.to_type(()), False),
    (tff.to_type(collections.OrderedDict(a=(), b=[()])), False),
    (tff.to_type(collections.OrderedDict(a=(), b=[np.int32])), True),
  ],
)
def test_whether_there_is_anything_to_send(value_type, expected):
  assert communication.has_tensors(value_type) == expected


def test_shapes_must_be_known():
  with pytest.raises(ValueError, match='no fixed size'):
    communication.num_bytes(tff.TensorType(np.float32, [None, 2]))
  with pytest.raises(ValueError, match='only tensors can'):
    communication.num_bytes(tff.SequenceType(np.float32))


_VALUE = tff.to_type(
  collections.OrderedDict(mean=(np.float32, [3]), cross=(np.float32, [3, 2]))
)
_WEIGHT = tff.TensorType(np.float32)


def _values(n):
  generator = np.random.default_rng(n)
  return [
    collections.OrderedDict(
      mean=generator.normal(size=3).astype(np.float32),
      cross=generator.normal(size=(3, 2)).astype(np.float32),
    )
    for _ in range(n)
  ]


def _next(factory, values, weights):
  process = factory.create(_VALUE, _WEIGHT)
  return process.next(process.initialize(), values, weights)


def test_equals_the_weighted_mean(tff_context):
  values, weights = _values(4), [1.0, 0.0, 5.0, 2.0]
  result = _next(encoding_statistics.StatisticsFactory(), values, weights).result
  assert list(result) == ['statistics', 'num_examples']
  assert list(result['statistics']) == ['mean', 'cross']
  assert result['num_examples'] == 8.0
  for name in ('mean', 'cross'):
    expected = np.average(
      [v[name].astype(np.float64) for v in values], axis=0, weights=weights
    )
    np.testing.assert_allclose(result['statistics'][name], expected, rtol=1e-5)


def test_inner_factories_see_each_clients_weighted_value(tff_context):
  clip = tff.aggregators.clipping_factory(1.0, tff.aggregators.SumFactory())
  values, weights = _values(3), [1.0, 4.0, 2.0]
  output = _next(
    encoding_statistics.StatisticsFactory(value_sum_factory=clip), values, weights
  )
  total = np.zeros(3)
  for value, weight in zip(values, weights, strict=True):
    flat = np.concatenate([value['mean'], value['cross'].ravel()]) * weight
    total += value['mean'] * weight / max(np.linalg.norm(flat), 1.0)
  np.testing.assert_allclose(
    output.result['statistics']['mean'], total / 7.0, rtol=1e-5
  )
  # The weights are summed apart, and what the inner factories measure is passed on.
  assert output.result['num_examples'] == 7.0
  assert list(output.measurements) == ['value_sum', 'weight_sum']
  assert output.measurements['value_sum']['clipped_count'] >= 2


def test_the_weights_have_a_factory_of_their_own(tff_context):
  clip = tff.aggregators.clipping_factory(1.0, tff.aggregators.SumFactory())
  factory = encoding_statistics.StatisticsFactory(weight_sum_factory=clip)
  result = _next(factory, _values(2), [1.0, 5.0]).result
  assert result['num_examples'] == 2.0


@pytest.mark.parametrize(
  'value_type',
  [
    tff.TensorType(np.int32, [2]),
    tff.to_type(collections.OrderedDict(a=np.float32, b=np.int32)),
    tff.to_type(()),
    tff.SequenceType(np.float32),
  ],
)
def test_values_must_be_floating(value_type):
  with pytest.raises(ValueError, match='must be floating tensors'):
    encoding_statistics.StatisticsFactory().create(value_type, _WEIGHT)


def test_the_weight_must_be_a_scalar():
  with pytest.raises(ValueError, match='must be a scalar'):
    encoding_statistics.StatisticsFactory().create(
      _VALUE, tff.TensorType(np.float32, [2])
    )


_UPDATE = tff.to_type(collections.OrderedDict(x=(np.float32, [2])))
_EXPECTED = expected_counts.Expected(clients=4, examples=10.0)


def _made(noise=1e-9, expected=_EXPECTED):
  return aggregations.private(noise, 5.0, 5.0, expected=expected)


@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize('field', ['updates', 'statistics', 'metrics'])
def test_sums_are_divided_by_the_mean_number_of_examples(tff_context, field, packed):
  made = _made().packs.aggregation if packed else _made()
  process = getattr(made, field).create(_UPDATE, _WEIGHT)
  values, weights = [{'x': [1.0, 0.0]}, {'x': [0.0, 0.2]}], [0.5, 2.0]
  for count in (1, 2):
    given = values[:count], weights[:count]
    result = process.next(process.initialize(), *given).result
    got = result['statistics']['x'] if field == 'statistics' else result['x']
    np.testing.assert_allclose(got, [0.05, 0.04 * (count - 1)], atol=1e-6)
    if field == 'statistics':
      assert result['num_examples'] == 10


@pytest.mark.parametrize('packed', [False, True])
def test_clients_that_weigh_alike_are_divided_by_their_expected_number(
  tff_context, packed
):
  made = _made(expected=expected_counts.Expected(4, 10.0, weights=4.0))
  made = made.packs.aggregation if packed else made
  process = made.updates.create(_UPDATE, _WEIGHT)
  sent = [{'x': [1.0, each]} for each in (1.0, 2.0, 3.0)]
  result = process.next(process.initialize(), sent, [1.0] * 3).result
  # Of three clients where four are expected: (3 / 4, (1 + 2 + 3) / 4).
  np.testing.assert_allclose(result['x'], [0.75, 1.5], atol=1e-6)


def test_a_client_without_examples_leaves_the_noise_alone(tff_context):
  value_type = tff.to_type(collections.OrderedDict(x=(np.float32, [4000])))
  process = _made(noise=2.0).updates.create(value_type, _WEIGHT)
  zeros = [{'x': np.zeros(4000, np.float32)}]
  noise = process.next(process.initialize(), zeros, [0.0]).result['x']
  # 2 times 5, over 10 examples.
  assert noise.std() == pytest.approx(1.0, rel=0.1)


def test_counts_are_those_that_are_known(tff_context):
  counts = collections.OrderedDict(clients=1, examples=7, empty_clients=1)
  value_type = tff.to_type(collections.OrderedDict.fromkeys(counts, np.int32))
  process = _made().counts.create(value_type)
  told = process.next(process.initialize(), [counts] * 3).result
  assert dict(told) == {'clients': 4, 'examples': 10, 'empty_clients': 0}


@pytest.mark.parametrize(
  ('known', 'value_type'),
  [
    (1.0, tff.TensorType(np.float32, [2])),
    ({'clients': 1}, tff.TensorType(np.int32)),
    ({'clients': 1}, tff.to_type(collections.OrderedDict(examples=np.int32))),
  ],
)
def test_a_value_of_another_type_is_named(known, value_type):
  with pytest.raises(ValueError, match=r'The value has type .*; it must be'):
    expected_counts.KnownFactory(known).create(value_type)
