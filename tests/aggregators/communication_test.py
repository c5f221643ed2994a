"""Tests of the size of what is sent."""

import collections

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_ssl.aggregators import communication


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
