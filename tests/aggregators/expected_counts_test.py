"""Rounds of random sizes: sums are divided by what a round has in the mean."""

import collections

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import expected_counts

_VALUE = tff.to_type(collections.OrderedDict(x=(np.float32, [2])))
_WEIGHT = tff.TensorType(np.float32)
_EXPECTED = expected_counts.Expected(clients=4, examples=10.0)


def _made(noise=1e-9, expected=_EXPECTED):
  return aggregations.private(noise, 5.0, 5.0, expected=expected)


@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize('field', ['updates', 'statistics', 'metrics'])
def test_sums_are_divided_by_the_mean_number_of_examples(tff_context, field, packed):
  made = _made().packs.aggregation if packed else _made()
  process = getattr(made, field).create(_VALUE, _WEIGHT)
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
  process = made.updates.create(_VALUE, _WEIGHT)
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
