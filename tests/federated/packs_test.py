"""Tests of how clients are dealt into packs."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tff_ssl.federated import packs


@pytest.mark.parametrize('num_packs', [1, 2, 3, 8])
def test_every_client_is_in_one_pack_small_ones_first(num_packs):
  sizes = [3, 0, 6, 1, 1, 2, 5, 4, 0]
  dealt = packs.deal(sizes, num_packs, bytes_per_example=100)
  assert len(dealt) == num_packs
  assert sorted(k for pack in dealt for k in pack) == list(range(9))
  for pack in dealt:
    assert [sizes[k] for k in pack] == sorted(sizes[k] for k in pack)
  loads = [sum(sizes[k] for k in pack) for pack in dealt]
  # Nobody has more than the mean and one client.
  assert max(loads) <= 22 / num_packs + 6


def test_equal_clients_are_dealt_equally():
  assert [len(p) for p in packs.deal([4] * 128, 2, 1)] == [64, 64]
  assert [len(p) for p in packs.deal([0] * 6, 3, 1)] == [2, 2, 2]


def test_there_are_no_packs_without_clients():
  assert packs.deal([5, 5], 16, 1) in ([[0], [1]], [[1], [0]])
  with pytest.raises(ValueError, match='The cohort is empty'):
    packs.deal([], 2, 1)
  with pytest.raises(ValueError, match='num_packs is 0'):
    packs.deal([1], 0, 1)


def test_packs_can_be_sent():
  # 64 clients of 4 MiB: 256 MiB must not go in two values.
  dealt = packs.deal([1] * 64, 2, 4 * 2**20)
  assert len(dealt) == 4
  assert {len(pack) for pack in dealt} == {16}


def test_states_count_when_packs_are_sent():
  # One client with much to do, and 100 with little and with a state of 1 MiB each.
  dealt = packs.deal([1000, *[1] * 100], 2, 100, bytes_per_client=2**20)
  assert len(dealt) == 2
  assert sorted(k for pack in dealt for k in pack) == list(range(101))
  assert max(len(pack) for pack in dealt) <= 64
  # What is too large by itself goes by itself.
  assert packs.deal([1, 1], 1, 1, bytes_per_client=2**27) == [[1], [0]]


def test_stacked_states_come_apart_again():
  states = [
    collections.OrderedDict(z=np.float32([k, 2 * k]), a=np.int32(k)) for k in range(3)
  ]
  stacked = packs.stack(states)
  assert list(stacked) == ['z', 'a']
  assert stacked['z'].tolist() == [[0, 0], [1, 2], [2, 4]]
  assert stacked['a'].dtype == np.int32
  for state, own in zip(states, packs.unstack(stacked), strict=True):
    tf.nest.map_structure(np.testing.assert_array_equal, state, own)


def test_a_pack_is_one_element_of_its_type():
  (dataset,) = harness.packed_cohort([[3], [0, 1], []], num_packs=1)
  spec = harness.PACKS.pack_spec
  fits = tf.nest.map_structure(
    lambda a, b: a.is_compatible_with(b), spec, dataset.element_spec
  )
  assert all(tf.nest.flatten(fits))
  pack = dataset.get_single_element()
  assert pack[packs.SIZES].numpy().tolist() == [0, 1, 2]
  assert pack[packs.EXAMPLES]['example_id'].numpy().tolist() == [103, 100, 101]
  assert list(pack[packs.EXAMPLES]) == list(harness.ELEMENT)


def test_batches_are_not_examples():
  batch = collections.OrderedDict(example_id=tf.TensorSpec([None], tf.int64))
  with pytest.raises(ValueError, match='single examples'):
    packs.PackSpec(batch)


def test_sizes_may_be_a_list_or_an_array():
  sizes = np.random.default_rng(0).integers(1, 7, 50).tolist()
  assert packs.deal(sizes, 4, 1) == packs.deal(np.array(sizes), 4, 1)
