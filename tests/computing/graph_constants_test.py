"""Constants by reference: graphs without them, and the numbers with them."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import graph_constants
from tff_ssl.execution import contexts

_VALUE = np.arange(60_000, dtype=np.float64).reshape(3, -1) / 7
_SUM = _VALUE.astype(np.float32).sum(axis=1, dtype=np.float64)


def _plainly(x):
  return x + tf.reduce_sum(graph_constants.constant(_VALUE, tf.float32), 1)


_traced = tf.function(_plainly, autograph=False)


def _in_a_loop(x):
  return tf.while_loop(
    lambda k, _: k < 1, lambda k, y: (k + 1, _traced(y)), (tf.constant(0), x)
  )[1]


def _computation(function):
  return tff.tensorflow.computation(
    lambda x: function(x), tff.TensorType(np.float32, [3])
  )


def _bytes(computation):
  return tff.framework.serialize_computation(computation).ByteSize()


@pytest.mark.parametrize(
  'function',
  [_plainly, _traced, _in_a_loop],
  ids=['graph', 'function', 'loop'],
)
def test_graphs_refer_to_constants_that_this_process_holds(function):
  with graph_constants.by_reference():
    referring = _computation(function)
  assert _bytes(referring) < _VALUE.size < _bytes(_computation(_plainly))
  with contexts.in_process('cpu', 1):
    np.testing.assert_allclose(referring(np.ones(3, np.float32)), 1 + _SUM, rtol=1e-5)


def test_elsewhere_constants_are_constants():
  assert hasattr(graph_constants.constant(_VALUE, tf.float32), 'numpy')
  with tf.Graph().as_default():
    assert graph_constants.constant(_VALUE, tf.float64).op.type == 'Const'
  with graph_constants.by_reference():
    eager = graph_constants.constant(_VALUE, tf.float32)
  np.testing.assert_array_equal(eager, _VALUE.astype(np.float32))


def test_one_array_is_held_once_in_each_type():
  with graph_constants.by_reference(), tf.Graph().as_default() as graph:
    for dtype in (tf.float32, tf.float32, tf.float64):
      graph_constants.constant(_VALUE, dtype)
    with tf.name_scope('again'):
      graph_constants.constant(_VALUE, tf.float64)
  numbers = graph_constants.resolve(graph.as_graph_def().node, in_function=False)
  with tf.Graph().as_default():
    _, values = graph_constants.assign(numbers)
  assert {each.dtype.name for each in values.values()} == {'float32', 'float64'}
  # TensorFlow reads them where they are.
  assert all(each.ctypes.data % 64 == 0 for each in values.values())


def test_what_nobody_has_any_more_is_not_held():
  def made(value):
    with graph_constants.by_reference(), tf.Graph().as_default() as graph:
      graph_constants.constant(value, tf.float32)
    return graph_constants.resolve(graph.as_graph_def().node, in_function=False)

  value = np.zeros(7)
  (number,) = made(value)
  assert made(value) == {number}
  del value
  with tf.Graph().as_default(), pytest.raises(KeyError):
    graph_constants.assign([number])
  # Whatever has its memory now.
  assert made(np.zeros(7)) != {number}
