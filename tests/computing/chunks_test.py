"""Chunks side by side: their order, their sums, their errors and their threads."""

import gc

import numpy as np
import psutil
import pytest
import tensorflow as tf

from tff_ssl.computing import chunks
from tff_ssl.computing import sessions

_ROWS = tf.TensorSpec([None, 3], tf.float32)
_SIZE = tf.TensorSpec([], tf.int32)
_BOUNDS = tf.TensorSpec([None], tf.int32)


def _drawn(count):
  return np.random.default_rng(0).normal(size=[count, 3]).astype(np.float32)


def _doubled(rows, size):
  return chunks.rows_of_chunks(lambda part: 2.0 * part, rows, size)


@pytest.mark.parametrize('size', [1, 3, 4, 10, 11])
def test_rows_of_chunks_are_in_the_order_of_the_rows(size):
  rows = _drawn(10)
  compiled = chunks.Function(_doubled).of(_ROWS, _SIZE)
  np.testing.assert_array_equal(compiled(rows, np.int32(size)), 2.0 * rows)


@pytest.mark.parametrize('size', [1, 3, 4, 10, 11])
def test_chunks_are_of_the_given_size_but_for_the_last(size):
  def length(part):
    count = tf.shape(part)[0]
    return tf.fill([count], tf.cast(count, tf.float32))

  def lengths(rows, size):
    return chunks.rows_of_chunks(length, rows, size)

  compiled = chunks.Function(lengths).of(_ROWS, _SIZE)
  whole, rest = divmod(10, size)
  expected = [size] * (whole * size) + [rest] * rest
  np.testing.assert_array_equal(compiled(_drawn(10), np.int32(size)), expected)


def _summed(values, bounds):
  return chunks.over_chunks(
    lambda start, stop: {'sum': tf.reduce_sum(values[start:stop])},
    bounds,
    {'sum': tf.zeros([])},
  )


def _sum(values, bounds):
  specs = (tf.TensorSpec([None], tf.float32), _BOUNDS)
  compiled = chunks.Function(_summed).of(*specs)
  return compiled(np.float32(values), np.int32(bounds))['sum']


@pytest.mark.parametrize('cores', [1, 2, 5])
def test_chunks_are_summed_in_their_order_whatever_the_cores(monkeypatch, cores):
  monkeypatch.setattr(sessions, 'cores', lambda: cores)
  # In float32 1e8 + 1 is 1e8, so that a sum depends on the order.
  assert _sum([1e8, 1.0, -1e8, 1.0], [0, 1, 2, 3, 4]) == 1.0
  assert _sum([1e8, -1e8, 1.0, 1.0], [0, 1, 2, 3, 4]) == 2.0
  values = 1e4 * _drawn(100)[:, 0]
  expected = np.float32(0.0)
  for value in values:
    expected += value
  assert _sum(values, range(101)) == expected


def test_a_sum_over_no_chunk_or_an_empty_one_is_zero():
  assert _sum([1.0, 2.0], [0]) == 0.0
  assert _sum([1.0, 2.0], [1, 1]) == 0.0
  assert _sum([1.0, 2.0], [0, 1, 1, 2]) == 3.0


def _checked(rows, size):
  def part(rows):
    with tf.control_dependencies([tf.debugging.assert_positive(rows, 'not positive')]):
      return tf.sqrt(rows)

  return chunks.rows_of_chunks(part, rows, size)


@pytest.mark.parametrize('row', [0, 5, 9])
def test_an_error_in_any_chunk_reaches_the_caller_and_the_next_call_is_sound(row):
  compiled = chunks.Function(_checked).of(_ROWS, _SIZE)
  rows = np.ones([10, 3], np.float32)
  rows[row] = -1.0
  with pytest.raises(tf.errors.InvalidArgumentError, match='not positive'):
    compiled(rows, np.int32(2))
  np.testing.assert_array_equal(compiled(rows * rows, np.int32(2)), np.ones([10, 3]))


def test_structures_are_returned_as_they_are_given():
  def swapped(pair, extra):
    return {'second': pair[1], 'first': (pair[0], extra['x'])}

  spec = tf.TensorSpec([], tf.float32)
  compiled = chunks.Function(swapped).of((spec, spec), {'x': spec})
  found = compiled((np.float32(1), tf.constant(2.0)), {'x': np.float32(3)})
  assert found == {'second': 2.0, 'first': (1.0, 3.0)}


def test_a_function_is_compiled_once_for_the_same_types():
  traced = []

  def function(rows):
    traced.append(rows.shape)
    return rows

  made = chunks.Function(function)
  assert made.of(_ROWS) is made.of(tf.TensorSpec([None, 3], tf.float32))
  assert made.of(tf.TensorSpec([None, 4], tf.float32)) is not made.of(_ROWS)
  assert [shape.as_list() for shape in traced] == [[None, 3], [None, 4]]


def test_a_function_of_variables_has_their_newest_values():
  variable = tf.Variable(2.0)
  compiled = chunks.Function(lambda rows: variable * rows).of(_ROWS)
  rows = _drawn(4)
  np.testing.assert_array_equal(compiled(rows), 2.0 * rows)
  variable.assign(3.0)
  np.testing.assert_array_equal(compiled(rows), 3.0 * rows)
  # Each of its operations has all cores.
  assert compiled.rows_at_a_time(8) == 8


def test_a_call_has_some_chunks_for_each_core(monkeypatch):
  monkeypatch.setattr(sessions, 'cores', lambda: 3)
  compiled = chunks.Function(_doubled).of(_ROWS, _SIZE)
  assert compiled.rows_at_a_time(8) % (3 * 8) == 0


def test_a_function_has_one_thread_of_its_own_which_ends_with_it():
  def computed():
    compiled = chunks.Function(_doubled).of(_ROWS, _SIZE)
    for _ in range(3):
      compiled(_drawn(40), np.int32(4))
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
