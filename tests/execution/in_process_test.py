"""Computations without a worker, against NumPy and against TFF's worker."""

import collections
import gc
import os
import signal
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.execution import contexts
from tff_ssl.execution import resources

_VECTOR = tff.TensorType(np.float32, [2])
_DATA = tff.SequenceType(collections.OrderedDict(x=np.float32))


class _Pair(NamedTuple):
  first: object
  second: object


@pytest.fixture(params=[True, False], ids=['optimized', 'as written'], scope='module')
def execution(request, worker_context):
  # Opened after that of the worker in any order of tests, so that it is the default.
  del worker_context
  with contexts.in_process('cpu', 2, optimize_graphs=request.param) as opened:
    yield opened


@tff.tensorflow.computation(_VECTOR, _DATA)
def _visit(mean, dataset):
  values = dataset.batch(9).take(1).get_single_element()['x']
  return collections.OrderedDict(
    update=mean * tf.reduce_sum(values), weight=tf.cast(tf.size(values), tf.float32)
  )


@tff.tensorflow.computation(_VECTOR, _VECTOR)
def _step(mean, update):
  return _Pair(mean + update, tf.reduce_sum(update))


@tff.federated_computation(
  tff.FederatedType(_VECTOR, tff.SERVER), tff.FederatedType(_DATA, tff.CLIENTS)
)
def _round(mean, data):
  sent = tff.federated_map(_visit, (tff.federated_broadcast(mean), data))
  update = tff.federated_mean(sent['update'], sent['weight'])
  return collections.OrderedDict(
    after=tff.federated_map(_step, (mean, update)),
    each=sent['weight'],
    most=tff.federated_max(sent['weight']),
    zero=tff.federated_value(0.0, tff.SERVER),
    nothing=(),
  )


def _datasets(sizes):
  return [
    tf.data.Dataset.from_tensor_slices({'x': np.arange(n, dtype=np.float32) + n})
    for n in sizes
  ]


def test_a_round_is_that_of_numpy_in_the_containers_of_the_worker(
  execution, worker_context
):
  mean, sizes = np.array([1, -2], np.float32), [3, 1, 4]
  assert tff.framework.get_context_stack().current is execution.tff_context
  got = _round(mean, _datasets(sizes))
  sums = [sum(range(n, 2 * n)) for n in sizes]
  update = mean * np.dot(sums, sizes) / sum(sizes)
  np.testing.assert_allclose(got['after'].first, mean + update, rtol=1e-6)
  assert got['after'].second == pytest.approx(update.sum(), rel=1e-6)
  assert (got['each'], got['most'], got['zero']) == (sizes, 4, 0)

  tff.framework.set_default_context(worker_context.tff_context)
  try:
    expected = _round(mean, _datasets(sizes))
  finally:
    tff.framework.set_default_context(execution.tff_context)
  assert _form(got) == _form(expected)


def _form(value):
  """Returns the types of containers and leaves."""
  if isinstance(value, dict):
    return type(value), {name: _form(each) for name, each in value.items()}
  if isinstance(value, (list, tuple)):
    return type(value), [_form(each) for each in value]
  return type(value), value.dtype, value.shape


def test_sums_are_taken_in_the_order_of_clients(execution):
  total = tff.federated_computation(
    lambda values: tff.federated_sum(values), tff.FederatedType(np.float32, tff.CLIENTS)
  )
  # Their sum in float32 depends on the order.
  values = np.random.default_rng(2).normal(size=50).astype(np.float32)
  expected = np.float32(0)
  for value in values:
    expected += value
  assert total(list(values)) == expected
  assert total(list(values[::-1])) != expected


def test_every_placed_intrinsic(execution):
  one = tff.tensorflow.computation(lambda: tf.constant(1.0))
  add = tff.tensorflow.computation(lambda x, y: x + y, [np.float32, np.float32])

  @tff.federated_computation(
    tff.FederatedType(np.float32, tff.CLIENTS, all_equal=True),
    tff.FederatedType(np.float32, tff.CLIENTS),
    np.float32,
  )
  def use(same, values, alone):
    both = tff.federated_map(add, (tff.federated_eval(one, tff.CLIENTS), values))
    both = tff.federated_map(add, (both, tff.federated_value(alone, tff.CLIENTS)))
    both = tff.federated_map(add, (both, same))
    at_server = tff.federated_eval(one, tff.SERVER)
    return both, same, add(alone, alone), tff.federated_zip((at_server, at_server))

  assert use(3.0, [10.0, 20.0], 5.0) == ([19.0, 29.0], 3.0, 10.0, (1.0, 1.0))
  # No client, and none is needed.
  assert use(3.0, [], 5.0) == ([], None, 10.0, (1.0, 1.0))


def test_a_data_set_is_read_where_it_is(execution):
  """One that calls Python cannot be serialised, as a worker would need."""
  read = []

  def values():
    read.append(threading.get_native_id())
    yield {'x': 2.0}
    yield {'x': 5.0}

  dataset = tf.data.Dataset.from_generator(
    values, output_signature={'x': tf.TensorSpec([], tf.float32)}
  )
  got = _visit(np.ones(2, np.float32), dataset)
  np.testing.assert_array_equal(got['update'], [7, 7])
  assert len(read) == 1


def test_variables_are_initialized_for_each_call(execution):
  @tff.tensorflow.computation(np.float32)
  def count(x):
    total = tf.Variable(0.0)
    with tf.control_dependencies([total.assign_add(x)]):
      return total.read_value()

  each = tff.federated_computation(
    lambda values: tff.federated_map(count, values),
    tff.FederatedType(np.float32, tff.CLIENTS),
  )
  for _ in range(2):
    assert each([1.0, 2.0, 3.0, 4.0]) == [1, 2, 3, 4]


@pytest.mark.parametrize(
  ('arguments', 'error', 'message'),
  [
    ((np.ones(3, np.float32), _datasets([1])), TypeError, None),
    ((np.ones(2, np.float64), _datasets([1])), TypeError, None),
    ((np.ones(2, np.float32), _datasets([1])[0]), TypeError, 'must be a list'),
    ((np.ones(2, np.float32), [tf.data.Dataset.range(3)]), TypeError, 'elements of a'),
    ((np.ones(2, np.float32), [7]), TypeError, 'must be a data set'),
  ],
)
def test_wrong_types_are_refused(execution, arguments, error, message):
  with pytest.raises(error, match=message):
    _round(*arguments)


@pytest.mark.parametrize(
  'value', [1.5, 2**40, -(2**31) - 1, float('nan'), '1', 1j, [1, 0.5]]
)
def test_a_number_that_its_type_would_change_is_refused(execution, value):
  number = tff.TensorType(np.int32, [2] if isinstance(value, list) else [])
  same = tff.tensorflow.computation(lambda x: x, number)
  with pytest.raises(TypeError, match='it must be int32'):
    same(value)


@pytest.mark.parametrize(
  ('value', 'dtype'),
  [(7, np.int32), (True, np.int32), (3, np.float32), (1 + 2j, np.complex64)],
)
def test_python_numbers_are_converted_to_the_type(execution, value, dtype):
  same = tff.tensorflow.computation(lambda x: x, dtype)
  found = same(value)
  assert found == value
  assert np.asarray(found).dtype == dtype


def test_lists_of_different_numbers_of_clients_are_refused(execution):
  of_clients = tff.FederatedType(np.float32, tff.CLIENTS)
  both = tff.federated_computation(
    lambda x, y: tff.federated_sum(tff.federated_zip((x, y))), of_clients, of_clients
  )
  with pytest.raises(ValueError, match='of 1 and of 2 clients'):
    both([1.0], [1.0, 2.0])


def test_an_intrinsic_that_is_not_known_is_named(execution):
  take = tff.tensorflow.computation(
    lambda table, key: tf.gather(table, key), [_VECTOR, np.int32]
  )
  select = tff.federated_computation(
    lambda keys, most, table: tff.federated_secure_select(keys, most, table, take),
    tff.FederatedType(tff.TensorType(np.int32, [1]), tff.CLIENTS),
    tff.FederatedType(np.int32, tff.SERVER),
    tff.FederatedType(_VECTOR, tff.SERVER),
  )
  with pytest.raises(ValueError, match=r'secure_select.*in_process'):
    select([[0], [1]], 2, [1.0, 2.0])


def test_a_closed_context_executes_nothing():
  three = tff.federated_computation(lambda: tff.federated_value(3, tff.SERVER))
  with contexts.in_process('cpu') as opened:
    assert three() == 3
  with pytest.raises(RuntimeError, match='context is closed'):
    opened.tff_context.invoke(three, None)
  opened.close()


def _loop():
  """Returns a computation of two clients that takes about a minute."""

  @tff.tensorflow.computation(tff.TensorType(np.float32, [500, 500]))
  def multiply(x):
    return tf.while_loop(
      lambda step, _: step < 20_000,
      lambda step, y: (step + 1, tf.math.l2_normalize(tf.matmul(y, x))),
      (0, x),
      parallel_iterations=1,
    )[1]

  return tff.federated_computation(
    lambda values: tff.federated_map(multiply, values),
    tff.FederatedType(tff.TensorType(np.float32, [500, 500]), tff.CLIENTS),
  )


def test_ctrl_c_ends_a_round_within_two_seconds():
  computation, given = _loop(), [np.eye(500, dtype=np.float32)] * 2
  # A shell that started the tests in the background has SIGINT ignored.
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  sent = []

  def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

  try:
    with contexts.in_process('cpu', concurrency=2, optimize_graphs=False):
      threading.Timer(1.0, interrupt).start()
      with pytest.raises(KeyboardInterrupt):
        computation(given)
      assert time.monotonic() - sent[0] < 2
      # Nothing runs on, and the context can be used.
      assert _visit(np.ones(2, np.float32), _datasets([1])[0])['weight'] == 1
  finally:
    signal.signal(signal.SIGINT, before)


def test_close_raises_in_a_thread_that_waits():
  computation, given = _loop(), [np.eye(500, dtype=np.float32)] * 2
  execution = contexts.in_process('cpu', concurrency=1, optimize_graphs=False)
  errors = []

  def call():
    try:
      execution.tff_context.invoke(computation, given)
    except Exception as error:
      errors.append(str(error))

  caller = threading.Thread(target=call, daemon=True)
  caller.start()
  time.sleep(1)
  assert caller.is_alive()
  execution.close()
  caller.join(10)
  assert errors == ['the execution context was closed while it computed']


def test_memory_is_flat_over_rounds_and_computations():
  """120 rounds of 4 MB a client, and computations that are made and dropped."""
  size = 2**20
  vector = tff.TensorType(np.float32, [size])
  double = tff.tensorflow.computation(lambda x: 2 * x, vector)
  process = tff.federated_computation(
    lambda values: tff.federated_sum(tff.federated_map(double, values)),
    tff.FederatedType(vector, tff.CLIENTS),
  )

  def resident():
    gc.collect()
    return resources.memory({'driver': os.getpid()})['driver']

  def run(round):
    given = [np.full(size, round, np.float32)] * 4
    assert process(given)[-1] == 8 * round
    dropped = tff.tensorflow.computation(lambda x: x + round, np.int32)
    assert dropped(1) == 1 + round

  with contexts.in_process('cpu', concurrency=2, optimize_graphs=False) as execution:
    for round in range(20):
      run(round)
    settled = resident()
    for round in range(20, 140):
      run(round)
    # One client's vector kept of each round would be 480 MB; what malloc keeps of one
    # round and not of another is up to 70.
    assert resident() - settled < 100
    gc.collect()
    assert len(execution.tff_context._programs) == 1


def test_a_part_that_is_not_of_tensorflow_is_named(execution):
  with pytest.raises(ValueError, match='kind xla; in_process takes only tensorflow'):
    tff.jax.computation(lambda x: x + 1, np.float32)(1.0)


@pytest.mark.parametrize('prepares', [True, False])
def test_tensors_passed_or_returned_twice_are_returned(monkeypatch, prepares):
  if not prepares:
    # A TensorFlow without it.
    name = '_make_callable_from_options'
    monkeypatch.setattr(tf.compat.v1.Session, name, None)

  @tff.tensorflow.computation(_VECTOR, np.int32)
  def several(x, y):
    total = tf.reduce_sum(x)
    return x, total, total, y, tf.strings.as_string(y)

  with contexts.in_process('cpu', optimize_graphs=False):
    for y in (3, 4):
      given, *totals, same, text = several(np.array([1, 2], np.float32), y)
      np.testing.assert_array_equal(given, [1, 2])
      assert (totals, same, text) == ([3, 3], y, str(y).encode())
