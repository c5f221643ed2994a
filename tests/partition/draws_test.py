"""Whole-number shares."""

import numpy as np
import pytest

from tff_ssl.partition import draws


def test_apportioned_numbers_sum_up_and_are_near_their_shares():
  rng = np.random.default_rng(0)
  totals = np.array([0, 1, 7, 1000, 123_457])
  proportions = rng.dirichlet(np.full(9, 0.3), 5)
  parts = draws.apportion(totals, proportions)
  np.testing.assert_array_equal(np.sum(parts, axis=1), totals)
  assert np.all(np.abs(parts - totals[:, np.newaxis] * proportions) <= 1)


def test_a_class_is_split_evenly_and_larger_shares_go_where_least_is():
  holders = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 1, 0]], bool)
  # 4: 2, 1, 1. 3 over the first two, of whom the second has less: 1, 2. 1 over the
  # first and the third, which have least: 0, 1. The last has no holder.
  np.testing.assert_array_equal(
    draws.split_evenly(np.array([4, 3, 1, 5]), holders),
    [[2, 1, 0, 0], [1, 2, 0, 0], [1, 0, 1, 0]],
  )


def test_classes_end_to_end_are_cut_into_clients():
  np.testing.assert_array_equal(
    draws.cut(np.array([3, 0, 1, 5]), 4, 2),
    [[2, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 2], [0, 0, 0, 2]],
  )


def test_empty_clients_are_counted():
  draws.check_filled('toy', np.array([[1, 0], [0, 2]]))
  with pytest.raises(ValueError, match='of 3 examples to 4 clients leaves 2 of'):
    draws.check_filled('toy', np.array([[1, 0], [0, 0], [0, 0], [0, 2]]))
