"""Tests of what is sent to the worker: the messages are TFF's own, to the byte."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import executor_pb2

from tff_ssl.runtime import sending

_STATE = tff.types.to_type(
  collections.OrderedDict(
    client=np.int32,
    kept=collections.OrderedDict(
      kernel=tff.TensorType(np.float32, [None, 3]), done=tff.TensorType(np.bool_, [2])
    ),
    nothing=(),
  )
)


def _state(seed, rows=2):
  rng = np.random.default_rng(seed)
  kept = collections.OrderedDict(
    kernel=rng.normal(size=[rows, 3]).astype(np.float32), done=np.array([True, False])
  )
  return collections.OrderedDict(client=np.int32(seed), kept=kept, nothing=())


_CASES = {
  'struct': (_STATE, _state(1)),
  'no rows': (_STATE, _state(1, rows=0)),
  'clients': (tff.FederatedType(_STATE, tff.CLIENTS), [_state(1), _state(2, rows=5)]),
  'no client': (tff.FederatedType(_STATE, tff.CLIENTS), []),
  'server': (tff.FederatedType(_STATE, tff.SERVER), _state(3)),
  'unnamed': (tff.types.to_type((np.float32, np.int64)), (np.float32(1), np.int64(2))),
  'transposed': (
    tff.TensorType(np.float32, [3, 2]),
    np.arange(6, dtype=np.float32).reshape(2, 3).T,
  ),
  'text': (tff.TensorType(np.str_, [2]), np.array([b'a', b'b'], np.object_)),
  'a list': (tff.TensorType(np.int32, [2]), [1, 2]),
}


@pytest.mark.parametrize('case', _CASES)
def test_the_message_is_that_of_tff(case):
  type_spec, value = _CASES[case]
  message = executor_pb2.Value()
  sending.fill(message, value, type_spec)
  assert message == tff.framework.serialize_value(value, type_spec)[0]


@pytest.mark.parametrize(
  ('type_spec', 'value'),
  [
    (tff.TensorType(np.float32, [2]), np.zeros([3], np.float32)),
    (tff.TensorType(np.float32, [2]), np.zeros([2], np.int64)),
    (_STATE, collections.OrderedDict(client=np.int32(1))),
    (tff.FederatedType(np.float32, tff.CLIENTS), np.zeros([2], np.float32)),
  ],
)
def test_what_is_not_of_the_type_is_refused(type_spec, value):
  with pytest.raises(TypeError):
    sending.fill(executor_pb2.Value(), value, type_spec)


def test_values_arrive(tff_context):
  @tff.tensorflow.computation(_STATE, tff.SequenceType(np.int64))
  def use(state, data):
    total = data.reduce(np.int64(0), lambda a, b: a + b)
    return tf.reduce_sum(state['kept']['kernel']), state['client'], total

  @tff.federated_computation(
    tff.FederatedType(_STATE, tff.CLIENTS),
    tff.FederatedType(tff.SequenceType(np.int64), tff.CLIENTS),
  )
  def each(states, data):
    return tff.federated_map(use, (states, data))

  states = [_state(1), _state(2, rows=4)]
  data = [tf.data.Dataset.range(3), tf.data.Dataset.range(5)]
  for result, state, total in zip(each(states, data), states, (3, 10), strict=True):
    assert result[0] == pytest.approx(state['kept']['kernel'].sum(), rel=1e-5)
    assert (result[1], result[2]) == (state['client'], total)
