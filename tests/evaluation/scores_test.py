"""Metrics of eight predictions counted by hand."""

import warnings

import numpy as np
import pytest
from sklearn import metrics

from tff_ssl.evaluation import scores

# Class 0: 3 of 4 right; class 1: 1 of 2; class 3: 0 of 2; class 2 absent.
_LABELS = np.array([0, 0, 0, 0, 1, 1, 3, 3])
_PREDICTIONS = np.array([0, 0, 0, 1, 1, 2, 2, 0])


def test_counts_by_hand():
  with warnings.catch_warnings():
    warnings.simplefilter('error')  # An absent class is no accident.
    recall = scores.per_class_recall(_LABELS, _PREDICTIONS, 4)
    balanced = scores.balanced_accuracy(_LABELS, _PREDICTIONS, 4)
  np.testing.assert_allclose(recall, [0.75, 0.5, np.nan, 0.0])
  assert balanced == pytest.approx((0.75 + 0.5 + 0.0) / 3)
  assert scores.accuracy(_LABELS, _PREDICTIONS) == 4 / 8


@pytest.mark.parametrize(
  'labels, predictions, message',
  [
    ([0, 1], [0], '1 predictions for 2 labels'),
    ([], [], 'no labels'),
    ([0, -1], [0, 0], 'label is -1'),
    ([0, 4], [0, 0], 'label is 4; with 4 classes'),
  ],
)
def test_refuses_bad_input(labels, predictions, message):
  with pytest.raises(ValueError, match=message):
    scores.per_class_recall(np.array(labels), np.array(predictions), 4)


def test_the_area_under_the_curve_is_scikit_learns_with_ties():
  random = np.random.default_rng(0)
  labels = random.integers(0, 2, 50)
  for margins in (random.normal(size=50), random.integers(0, 4, 50), np.zeros(50)):
    expected = metrics.roc_auc_score(labels, margins)
    assert scores.area_under_curve(labels, margins) == pytest.approx(expected)
  # A class that nothing in a draw of labels has: no example is preferred.
  assert scores.area_under_curve(labels, np.full(50, -np.inf)) == 0.5
  assert np.isnan(scores.area_under_curve(np.ones(3, int), np.arange(3.0)))
