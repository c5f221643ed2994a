"""Functions computed in chunks: numbers, order, errors and forks."""

from concurrent import futures
import gc
import itertools

import numpy as np
import psutil
import pytest
import tensorflow as tf

from tests.computing import in_fork
from tff_ssl.computing import assertions
from tff_ssl.computing import chunks
from tff_ssl.computing import sessions

_SECONDS = 60
_ROWS = tf.TensorSpec([None, 2], tf.float32)
_SIZE = tf.TensorSpec([], tf.int32)


def _rows(count):
  return np.arange(2 * count, dtype=np.float32).reshape([count, 2])


def _compiled(function):
  """Compiles a function of rows, applied chunk by chunk."""
  return chunks.Function(
    lambda rows, size: chunks.rows_of_chunks(function, rows, size)
  ).of(_ROWS, _SIZE)


def test_function_takes_and_returns_structures():
  function = chunks.Function(lambda a, b: {'sum': a + b['x'], 'pair': (a * b['x'], a)})
  a, x = np.float32([1, 2]), np.float32([3, 5])
  vector = tf.TensorSpec([None], tf.float32)
  found = function.of(vector, {'x': vector})(a, {'x': tf.constant(x)})
  np.testing.assert_array_equal(found['sum'], [4, 7])
  np.testing.assert_array_equal(found['pair'][0], [3, 10])
  assert isinstance(found['pair'][1], np.ndarray)


def test_function_is_traced_once_for_the_same_types():
  traced = []
  function = chunks.Function(lambda x: traced.append(x.dtype) or x)
  for dtype in (tf.float32, tf.float32, tf.int32, tf.float32):
    function.of(tf.TensorSpec([None], dtype))
  assert traced == [tf.float32, tf.int32]


@pytest.mark.parametrize('size', [1, 3, 5, 10, 64])
def test_results_are_in_the_order_of_rows(size):
  """The first chunk takes longest: it would come last in the order of completion."""

  def slow(rows):
    steps = 20_000 // (1 + tf.cast(rows[0, 0], tf.int32))
    _, waited = tf.while_loop(
      lambda k, _: k < steps,
      lambda k, x: (k + 1, tf.cos(x)),
      (tf.constant(0), tf.constant(1.0)),
    )
    return 2 * rows + 0 * waited

  found = _compiled(slow)(_rows(10), np.int32(size))
  np.testing.assert_array_equal(found, 2 * _rows(10))


@pytest.mark.parametrize('cores', [1, 2, 8])
def test_sum_is_in_the_order_of_chunks_whatever_the_cores(cores, monkeypatch):
  monkeypatch.setattr(sessions, 'cores', lambda: cores)
  # In any other order, float32 rounds to another sum.
  values = np.float32([1e8, 3, -1e8, 5, 1e8, 7, -1e8, 0.1])
  bounds = np.int32([0, 1, 3, 3, 6, 8])

  def total(numbers, bounds):
    return chunks.over_chunks(
      lambda first, after: {'sum': tf.reduce_sum(numbers[first:after])},
      bounds,
      {'sum': tf.constant(0.0)},
    )

  vector = tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.int32)
  found = chunks.Function(total).of(*vector)(values, bounds)['sum']
  expected = np.float32(0)
  for first, after in itertools.pairwise(bounds):
    part = np.float32(0)
    for value in values[first:after]:
      part = np.float32(part + value)
    expected = np.float32(expected + part)
  assert found == expected
  assert found != np.float32(np.sum(values.astype(np.float64)))


def test_error_in_a_chunk_reaches_the_caller_and_the_next_call_works():
  def positive(rows):
    sentence = 'A row is {}; it must not be negative.'
    least = tf.reduce_min(rows)
    return assertions.checked(rows, least >= 0, sentence, least)

  compiled = _compiled(positive)
  rows = _rows(8)
  rows[5] = -1
  with pytest.raises(tf.errors.InvalidArgumentError) as raised:
    compiled(rows, np.int32(2))
  sentence = assertions.sentence_of(raised.value)
  assert sentence == 'A row is -1; it must not be negative.'
  np.testing.assert_array_equal(compiled(_rows(8), np.int32(2)), _rows(8))


def test_calls_from_many_threads_have_their_own_results():
  compiled = _compiled(lambda rows: rows + 1)
  with futures.ThreadPoolExecutor(8) as pool:
    calls = [pool.submit(compiled, k + _rows(9), np.int32(2)) for k in range(24)]
    for k, call in enumerate(calls):
      np.testing.assert_array_equal(call.result(_SECONDS), k + 1 + _rows(9))


def test_function_with_a_variable_sees_its_new_value():
  factor = tf.Variable(2.0)
  compiled = _compiled(lambda rows: factor * rows)
  np.testing.assert_array_equal(compiled(_rows(3), np.int32(2)), 2 * _rows(3))
  factor.assign(3.0)
  np.testing.assert_array_equal(compiled(_rows(3), np.int32(2)), 3 * _rows(3))
  # Each operation has all cores: one chunk in a call is enough.
  assert compiled.rows_at_a_time(5) == 5


def test_a_call_has_chunks_for_each_core(monkeypatch):
  if sessions.on_gpu():
    pytest.skip('a batch is not divided on a GPU')
  monkeypatch.setattr(sessions, 'cores', lambda: 3)
  assert _compiled(lambda rows: rows).rows_at_a_time(5) == 5 * 3 * 4


def test_a_function_has_one_thread_of_its_own_which_ends_with_it():
  def computed():
    compiled = _compiled(lambda rows: 2 * rows)
    compiled(_rows(9), np.int32(2))
    return compiled

  first = computed()
  gc.collect()
  before = psutil.Process().num_threads()
  others = [computed() for _ in range(5)]
  assert psutil.Process().num_threads() <= before + len(others)
  others.clear()
  gc.collect()
  assert psutil.Process().num_threads() <= before
  del first


@pytest.mark.forks
def test_fork_of_a_process_that_has_computed_is_refused():
  """It has none of the session's threads: it would wait for them for ever."""
  compiled = _compiled(lambda rows: 2 * rows)
  compiled(_rows(3), np.int32(2))
  said = in_fork.said(lambda: compiled(_rows(3), np.int32(2)))
  assert said.startswith('RuntimeError: the compiled function was opened by process')
  np.testing.assert_array_equal(compiled(_rows(3), np.int32(2)), 2 * _rows(3))
