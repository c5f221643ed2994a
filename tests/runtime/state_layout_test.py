"""Tests of nests of arrays as bytes."""

import collections

import numpy as np
import pytest

from tff_ssl.runtime import state_layout

_Pair = collections.namedtuple('_Pair', ['number', 'rest'])


def _nest():
  rest = collections.OrderedDict(z=np.float32([[1, 2], [3, 4]]), a=np.bool_(True))
  return _Pair(np.int32(-7), [rest, (), np.zeros([0, 2], np.int64)])


def test_bytes_are_those_of_the_arrays_in_the_order_of_names():
  nest = _nest()
  layout = state_layout.StateLayout(nest)
  assert list(layout.spec.items()) == [
    ('state/number', ['int32', []]),
    ('state/rest/0/a', ['bool', []]),
    ('state/rest/0/z', ['float32', [2, 2]]),
    ('state/rest/2', ['int64', [0, 2]]),
  ]
  expected = nest.number.tobytes() + b'\x01' + np.float32([1, 2, 3, 4]).tobytes()
  assert layout.encode(nest) == expected
  assert layout.num_bytes == len(expected) == 21


def test_what_is_decoded_is_what_was_encoded():
  nest = _nest()
  layout = state_layout.StateLayout(nest)
  decoded = layout.decode(layout.encode(nest))
  assert isinstance(decoded, _Pair)
  assert isinstance(decoded.number, np.int32)
  assert decoded.number == -7
  assert list(decoded.rest[0]) == ['z', 'a']
  np.testing.assert_array_equal(decoded.rest[0]['z'], nest.rest[0]['z'])
  assert decoded.rest[1] == ()
  assert decoded.rest[2].shape == (0, 2)


def test_a_nest_of_another_layout_is_refused():
  layout = state_layout.StateLayout(_nest())
  other = _nest()._replace(number=np.int64(-7))
  with pytest.raises(ValueError, match=r"'state/number' is int64 .* int32"):
    layout.encode(other)
  assert layout.difference(layout.spec) == ''
