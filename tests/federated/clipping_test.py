"""Tests of rows that are clipped, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.federated import clients


@pytest.mark.parametrize('norm', [None, 3.0, 1e6])
def test_each_row_is_clipped_over_the_whole_structure(norm):
  generator = np.random.default_rng(2)
  a, b = generator.normal(size=(5, 2, 3)), generator.normal(size=(5, 4))
  weights = np.array([1.0, 4.0, 0.5, 0.0, 2.0])
  a[3], b[3, 1] = np.nan, np.inf
  a[2], b[2] = 0.0, 0.0
  found = clients.sum_of_rows(
    {'a': tf.constant(a), 'b': tf.constant(b)},
    tf.constant(weights, tf.float32),
    norm,
  )
  expected = {'a': np.zeros([2, 3]), 'b': np.zeros([4])}
  for k in (0, 1, 2, 4):
    length = weights[k] * np.sqrt(np.sum(a[k] ** 2) + np.sum(b[k] ** 2))
    factor = weights[k] * (min(1.0, norm / length) if norm and length else 1.0)
    expected['a'] += factor * a[k]
    expected['b'] += factor * b[k]
  for name, value in expected.items():
    np.testing.assert_allclose(found[name], value, rtol=1e-6)


def test_the_squares_of_rows_tell_what_is_not_finite():
  a, b = np.full([4, 2, 2], 0.5), np.full([4, 3], 2.0)
  a[1, 0, 1], b[3, 2] = np.nan, np.inf
  found = clients.squares_of_rows([tf.constant(a), tf.constant(b)])
  np.testing.assert_array_equal(found, [13, np.nan, 13, np.inf])


@pytest.mark.parametrize('length', [2.0, 5.0, 1e30])
def test_one_client_is_clipped_by_itself(length):
  value = {'a': tf.constant([0.6, 0.0]) * length, 'b': tf.constant(-0.8 * length)}
  found = clients.clip(value, 3.0)
  # Of 1e30 the square is more than float32 has: finite it must be, and no longer.
  clipped = min(length, 3.0) if length < 1e19 else 0.0
  np.testing.assert_allclose(found['a'], [0.6 * clipped, 0.0], rtol=1e-6)
  np.testing.assert_allclose(found['b'], -0.8 * clipped, rtol=1e-6)


def test_a_row_too_long_for_a_square_adds_nothing_unbounded():
  found = clients.sum_of_rows(tf.constant([[1e30], [1.0]]), tf.ones([2]), 2.0)
  assert abs(found[0]) <= 4.0
