"""IID clients: sizes, disjointness, what is left out."""

import numpy as np
import pytest

from tff_ssl.partition import iid


def _dealt(partition):
  return np.concatenate(list(partition.values()))


@pytest.mark.parametrize('examples', [1, 3, 16])
def test_fixed_size_deals_every_example_at_most_once(examples):
  partition = iid.build(iid.IidConfig(examples=examples), 50, np.random.default_rng(0))
  assert len(partition) == 50 // examples
  assert {len(held) for held in partition.values()} == {examples}
  assert len(np.unique(_dealt(partition))) == 50 - 50 % examples
  assert _dealt(partition).dtype == np.int64


def test_clients_alone_deal_every_example_in_sizes_that_differ_by_one():
  partition = iid.build(iid.IidConfig(clients=4), 10, np.random.default_rng(0))
  assert sorted(len(held) for held in partition.values()) == [2, 2, 3, 3]
  np.testing.assert_array_equal(np.sort(_dealt(partition)), np.arange(10))


def test_clients_and_examples_give_exactly_these():
  partition = iid.build(
    iid.IidConfig(examples=2, clients=3), 10, np.random.default_rng(0)
  )
  assert [len(held) for held in partition.values()] == [2, 2, 2]


def test_ids_sort_as_they_stand():
  partition = iid.build(iid.IidConfig(examples=1), 101, np.random.default_rng(0))
  assert list(partition) == sorted(partition)
  assert next(iter(partition)) == 'client_000'


def test_examples_are_shuffled():
  first = iid.build(iid.IidConfig(clients=2), 100, np.random.default_rng(0))
  assert not np.array_equal(first['client_0'], np.arange(50))


@pytest.mark.parametrize('fields', [{'examples': 11}, {'examples': 4, 'clients': 3}])
def test_too_few_examples_is_an_error(fields):
  with pytest.raises(ValueError, match='but there are 10'):
    iid.build(iid.IidConfig(**fields), 10, np.random.default_rng(0))


def test_a_size_or_a_number_is_needed():
  with pytest.raises(ValueError, match=r'needs examples \(of a client\) or clients'):
    iid.IidConfig()
