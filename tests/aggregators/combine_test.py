"""What each kind of value costs, and how a sum arrives."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.aggregators import communication
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
