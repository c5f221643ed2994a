"""Tests of the histogram of lengths, against NumPy on the lengths themselves."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.federated import update_lengths


def _outlying(lengths):
  squares = tf.constant(np.square(np.array(lengths, np.float64)))
  return int(update_lengths.outlying(update_lengths.histogram(squares)))


@pytest.mark.parametrize(
  ('lengths', 'expected'),
  [
    ([], 0),
    ([12110.0], 0),
    ([0.67, 12110.0], 1),
    # None is sent where nothing was computed.
    ([0.0, np.nan, 0.0, 3.0], 0),
    # Twice the last interval; beyond the squares of float32.
    ([1e-30, 1e30], 1),
    ([1.0] * 5 + [1e25] * 2 + [1e150], 3),
    # Most are long: the short ones are not counted.
    ([1.0, 1e5, 1e5, 1e5], 0),
    # A client that takes a hundred steps.
    ([1.0] * 9 + [60.0], 0),
  ],
)
def test_what_is_counted(lengths, expected):
  assert _outlying(lengths) == expected


@hypothesis.given(strategies.lists(strategies.floats(1e-8, 1e8), min_size=1))
def test_a_length_is_counted_from_64_times_the_median_on_and_surely_from_1024(lengths):
  ordered = np.sort(lengths)
  ratios = ordered / ordered[(len(ordered) - 1) // 2]
  assert (ratios >= 1024).sum() <= _outlying(lengths) <= (ratios > 64).sum()
