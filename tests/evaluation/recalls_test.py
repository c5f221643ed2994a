"""Recalls with intervals, and a threshold for one of two classes."""

import numpy as np
import pytest
from scipy import stats

from tff_ssl.evaluation import recalls

_NAMES = ('a', 'b', 'c')


def test_recall_is_the_share_of_each_class_with_a_binomial_interval():
  labels = np.repeat([0, 1], [40, 8])
  predicted = labels.copy()
  predicted[:10] = 1
  found = recalls.tested(predicted, labels, np.arange(48), _NAMES)
  exact = stats.binomtest(30, 40).proportion_ci(0.95, method='exact')
  shares = found.shares()
  # No class is stated that no test example has.
  assert [*shares] == ['a', 'b']
  assert shares['a'].value == 0.75
  assert shares['a'].examples == 40
  np.testing.assert_allclose(shares['a'][1:3], [exact.low, exact.high], rtol=1e-6)
  # Of 8 of 8.
  exact = stats.binomtest(8, 8).proportion_ci(0.95, method='exact')
  assert shares['b'].low == pytest.approx(exact.low)
  assert shares['b'].high == 1
  assert found.right.value == pytest.approx(38 / 48)
  assert found.cases == 48


# What few cases, and cases that are all right, have: intervals_test.
def test_examples_of_one_case_are_drawn_together():
  labels, rights = np.zeros(400, int), np.repeat([0, 1], 200)
  apart, together = (
    recalls.tested(rights, 1 - labels, cases, _NAMES).right
    for cases in (np.arange(400), np.arange(400) // 10)
  )
  assert together.high - together.low > 2 * (apart.high - apart.low)


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('sensitivity', [0.5, 0.95, 1.0])
def test_threshold_is_the_highest_that_finds_enough(seed, sensitivity):
  generator = np.random.default_rng(seed)
  # Rounded, so that some are equal.
  probabilities = np.round(generator.random(60), 1 + seed % 2)
  is_positive = generator.random(60) < 0.4

  threshold = recalls.choose_threshold(probabilities, is_positive, sensitivity)

  def found(limit):
    return np.mean(probabilities[is_positive] >= limit)

  enough = [p for p in probabilities if found(p) >= sensitivity]
  np.testing.assert_array_equal(
    probabilities >= threshold, probabilities >= max(enough)
  )
  # And rounding moves no example.
  assert np.min(np.abs(probabilities - threshold)) > 1e-3 or threshold == 0


def test_threshold_decides_in_place_of_the_larger_probability():
  threshold = recalls.Threshold('b', 0.9, 0.25, 7, 3)
  probabilities = np.array([[0.7, 0.3], [0.75, 0.25], [0.8, 0.2]])
  assert recalls.classes(probabilities, ('a', 'b')).tolist() == [0, 0, 0]
  assert recalls.classes(probabilities, ('a', 'b'), threshold).tolist() == [1, 1, 0]
  first = recalls.Threshold('a', 0.9, 0.75, 7, 3)
  assert recalls.classes(probabilities, ('a', 'b'), first).tolist() == [1, 0, 0]


def test_what_cannot_be_measured_is_refused():
  with pytest.raises(ValueError, match='have 0 of the positive class; they must have'):
    recalls.choose_threshold(np.array([0.5]), np.array([False]), 0.9)
  with pytest.raises(ValueError, match='a has 1 numbers; it must have value, low, '):
    recalls.Tested(3, (1.0, 0.9, 1.0, 3.0), {'a': (1.0,)})
