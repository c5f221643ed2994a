"""Group-wise averaging, against NumPy."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import groupwise

_GROUPS = np.array([0, 1, 1, 0, 0])
_SIZES = np.array([4.0, 1.0, 3.0, 2.0, 6.0])
_VALUES = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
_SERVER = np.array([1.0, -2.0, 0.5])


def _reference(values, sizes, groups, server_weight):
  """The mean over groups of (m_g sum n_k/N_g w_k + tau w_server) / (m_g + tau)."""
  means = []
  for g in range(groups.max() + 1):
    members = [k for k in range(len(values)) if groups[k] == g and sizes[k] > 0]
    if not members:
      continue
    own = np.average(values[members], axis=0, weights=sizes[members])
    total = len(members) * own + server_weight * _SERVER
    means.append(total / (len(members) + server_weight))
  return np.mean(means, axis=0)


def _process(groups, server_weight):
  plain = aggregations.plain()
  factory = groupwise.GroupwiseFactory(
    groups, server_weight, plain.updates, plain.counts
  )
  return factory.create(tff.TensorType(np.float32, [3]))


def _weights(sizes, groups, clients=None):
  clients = (sizes > 0).astype(int) if clients is None else clients
  return [
    collections.OrderedDict(examples=np.float32(n), clients=int(m), group=int(g))
    for n, m, g in zip(sizes, clients, groups, strict=True)
  ]


def _average(process, values, weights):
  result = process.next(process.initialize(), list(values), weights).result
  share = result['server_share']
  return (1 - share) * result['mean'] + share * _SERVER, result


_EQUAL_GROUPS = np.array([1.0, 4.0, 2.0, 2.0, 3.0])


@pytest.mark.parametrize('server_weight', [0.0, 1.0, 2.5])
@pytest.mark.parametrize('sizes', [_SIZES, np.full(5, 7.0), _EQUAL_GROUPS])
@pytest.mark.parametrize('num_groups', [1, 2])
def test_means_are_those_of_numpy(tff_context, num_groups, sizes, server_weight):
  groups = _GROUPS if num_groups == 2 else 0 * _GROUPS
  process = _process(num_groups, server_weight)
  got, result = _average(process, _VALUES, _weights(sizes, groups))
  expected = _reference(_VALUES, sizes, groups, server_weight)
  np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
  assert result['examples'] == sum(sizes)
  # tau / (m + tau) of each group.
  counts = np.bincount(groups)
  share = np.mean([server_weight / (m + server_weight) for m in counts])
  assert result['server_share'] == pytest.approx(share, rel=1e-6)
  if server_weight == 0 and (num_groups == 1 or sizes is _EQUAL_GROUPS):
    # FedAvg's.
    expected = np.average(_VALUES, axis=0, weights=sizes)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('absent', [[0], [1, 2], [0, 1, 3]])
def test_clients_without_contribution_equal_absent_clients(tff_context, absent):
  """Also where a whole group does not."""
  sizes = _SIZES.copy()
  sizes[absent] = 0
  got, _ = _average(_process(2, 1.0), _VALUES, _weights(sizes, _GROUPS))
  expected = _reference(_VALUES, sizes, _GROUPS, 1.0)
  np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_weights_are_rounded_in_totals_and_coefficients_alike(tff_context):
  """0.4 rounds to 0: such a client does not contribute."""
  sizes = np.array([3.6, 1.2, 2.8, 0.4, 6.4])
  got, result = _average(_process(2, 1.0), _VALUES, _weights(sizes, _GROUPS))
  expected = _reference(_VALUES, np.round(sizes), _GROUPS, 1.0)
  np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
  assert result['examples'] == 4 + 1 + 3 + 6


def test_empty_cohorts_give_zeros(tff_context):
  result = _average(_process(2, 1.0), _VALUES, _weights(0 * _SIZES, _GROUPS))[1]
  assert result['examples'] == result['server_share'] == 0
  np.testing.assert_array_equal(result['mean'], np.zeros(3))


def test_a_pack_of_a_group_counts_as_its_clients(tff_context):
  """Each value is the mean over a group's clients, or over some of them."""
  packs = [[0, 3], [4], [1, 2]]
  values = [
    np.average(_VALUES[p], axis=0, weights=_SIZES[p]).astype(np.float32) for p in packs
  ]
  weights = _weights(
    np.array([_SIZES[p].sum() for p in packs]), [0, 0, 1], [len(p) for p in packs]
  )
  got, _ = _average(_process(2, 1.0), values, weights)
  expected = _reference(_VALUES, _SIZES, _GROUPS, 1.0)
  np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_secure_sums_are_all_that_it_needs():
  secure = aggregations.secure(value_bound=64.0, max_examples_per_client=64)
  factory = groupwise.GroupwiseFactory(2, 1.0, secure.updates, secure.counts)
  process = factory.create(tff.TensorType(np.float32, [3]))
  tff.test.assert_not_contains_unsecure_aggregation(process.next)


@pytest.mark.parametrize(
  ('clients', 'sizes'),
  [(1, [1]), (2, [2]), (3, [3]), (5, [2, 3]), (6, [2, 2, 2]), (9, [2, 2, 2, 3])],
)
def test_clients_are_dealt_into_twos_and_threes(clients, sizes):
  groups = groupwise.deal(clients, seed=3, round=7)
  assert sorted(np.bincount(groups)) == sizes
  assert len(sizes) == groupwise.num_groups(clients)


def test_dealing_is_a_function_of_seed_and_round():
  dealt = [
    tuple(groupwise.deal(5, seed, round)) for seed in (0, 1) for round in range(9)
  ]
  assert dealt == [
    tuple(groupwise.deal(5, seed, round)) for seed in (0, 1) for round in range(9)
  ]
  assert len(set(dealt)) > 5
  # Of the ten ways to choose three of five clients, six hold the first.
  larger = [np.argmax(np.bincount(groupwise.deal(5, 0, r))) for r in range(400)]
  inside = [groupwise.deal(5, 0, r)[0] == larger[r] for r in range(400)]
  assert np.mean(inside) == pytest.approx(0.6, abs=0.1)


@pytest.mark.parametrize(
  ('call', 'message'),
  [
    (lambda: groupwise.num_groups(0), 'num_clients is 0'),
    (lambda: groupwise.check(0, 1.0), 'groups is 0'),
    (lambda: groupwise.check(1, -1.0), 'server_weight is -1.0'),
  ],
)
def test_out_of_range_values_are_named(call, message):
  with pytest.raises(ValueError, match=message):
    call()


@pytest.mark.parametrize('weights', [[12.0, 0.0, 4.0], [0.25, 0.0, 1.0]])
def test_coefficients_sum_to_one(weights):
  scales, share = groupwise.coefficients(
    tf.constant(weights), tf.constant([3, 0, 2]), 1.0
  )
  total = float(tf.reduce_sum(tf.constant(weights) * scales) + share)
  assert total == pytest.approx(1.0, rel=1e-6)
  assert float(scales[1]) == 0
  # Two groups that have a client; the server is one more client of each.
  np.testing.assert_allclose(scales, [3 / 8 / weights[0], 0, 1 / 3 / weights[2]])
  assert float(share) == pytest.approx((1 / 4 + 1 / 3) / 2)
