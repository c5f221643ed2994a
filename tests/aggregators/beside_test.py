"""Tests of statistics beside an update, against NumPy."""

import collections

import numpy as np
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation
from tff_ssl.aggregators import beside

_WEIGHTS = tff.to_type(
  tff.learning.models.ModelWeights(
    collections.OrderedDict(w=(np.float32, [2])),
    collections.OrderedDict(mean=(np.float32, [3])),
  )
)
_VALUE = tff.to_type(
  collections.OrderedDict(update=_WEIGHTS.trainable, statistics=_WEIGHTS.non_trainable)
)


def _values(n):
  generator = np.random.default_rng(n)
  return [
    collections.OrderedDict(
      update={'w': generator.normal(size=2).astype(np.float32)},
      statistics={'mean': generator.normal(size=3).astype(np.float32)},
    )
    for _ in range(n)
  ]


def _result(aggregations, values, weights):
  factory = beside.factory(aggregations, _WEIGHTS)
  process = factory.create(_VALUE, tff.TensorType(np.float32))
  assert process.is_weighted
  result_type = process.next.type_signature.result.result.member
  expected_type = beside.result_type(_WEIGHTS.trainable, _WEIGHTS.non_trainable)
  assert expected_type.is_assignable_from(result_type)
  return process.next(process.initialize(), values, weights).result


def test_both_are_weighted_means(tff_context):
  values, weights = _values(3), [1.0, 0.0, 4.0]
  got = _result(aggregation.plain(), values, weights)
  for found, part, name in (
    (got['update'], 'update', 'w'),
    (got['statistics']['statistics'], 'statistics', 'mean'),
  ):
    each = [value[part][name] for value in values]
    expected = np.average(each, axis=0, weights=weights)
    np.testing.assert_allclose(found[name], expected, rtol=1e-5)
  assert got['statistics']['num_examples'] == 5.0


def test_each_is_clipped_by_its_own_norm(tff_context):
  values = _values(1)
  got = _result(aggregation.private(1e-9, 0.5, 1e3), values, [1.0])
  assert np.linalg.norm(got['update']['w']) < 0.501
  np.testing.assert_allclose(
    got['statistics']['statistics']['mean'], values[0]['statistics']['mean'], rtol=1e-4
  )


def test_without_statistics_it_is_the_factory_of_updates():
  plain = aggregation.plain()
  weights = tff.to_type(
    tff.learning.models.ModelWeights((np.float32, [2]), collections.OrderedDict())
  )
  assert beside.factory(plain, weights) is plain.updates
