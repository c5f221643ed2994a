"""Tests of the aggregation of statistics, against NumPy."""

import collections

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_ssl.aggregators import encoding_statistics

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


def test_without_weight_it_is_zero(tff_context):
  result = _next(encoding_statistics.StatisticsFactory(), _values(2), [0.0, 0.0]).result
  assert result['num_examples'] == 0.0
  assert not result['statistics']['mean'].any()
  assert not result['statistics']['cross'].any()


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
