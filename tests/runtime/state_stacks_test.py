"""Tests of states stacked in memory that is used again."""

import collections

import numpy as np

from tff_ssl.federated import packs
from tff_ssl.runtime import state_stacks


def _state(seed):
  rng = np.random.default_rng(seed)
  weights = collections.OrderedDict(b=rng.normal(size=[2, 3]), a=np.int32(seed))
  return (np.int32(seed), weights, ())


def _same(stack, states):
  expected = packs.stack(states)
  np.testing.assert_array_equal(stack[0], expected[0])
  assert list(stack[1]) == ['b', 'a']
  for name, value in expected[1].items():
    assert stack[1][name].dtype == value.dtype
    np.testing.assert_array_equal(stack[1][name], value)


def test_stacks_are_those_of_packs_whatever_was_there():
  stacks = state_stacks.StateStacks(_state(0))
  for count in (3, 2, 5, 1):
    states = [_state(10 * count + k) for k in range(count)]
    _same(stacks.fill(0, count, iter(states)), states)


def test_places_are_apart_and_memory_is_used_again():
  stacks = state_stacks.StateStacks(_state(0))
  first, second = [_state(1), _state(2)], [_state(3)]
  one = stacks.fill(0, 2, first)
  other = stacks.fill(1, 1, second)
  _same(one, first)
  _same(other, second)
  again = stacks.fill(0, 1, [_state(4)])
  assert np.shares_memory(again[1]['b'], one[1]['b'])
  assert not np.shares_memory(again[1]['b'], other[1]['b'])
