"""Metrics of classification: accuracy, recall of each class, balanced accuracy.

An absent class is one that no true label names. Its recall is not a number; balanced
accuracy is the mean over the classes that are present. A class that is predicted though
absent counts only as the mistakes it makes.
"""

import numpy as np
from sklearn import metrics as sklearn_metrics


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
  """Share of the predictions that are right.

  Args:
    labels: int [N] true classes, N at least 1.
    predictions: int [N] predicted classes.

  Returns:
    A number in [0, 1].

  Raises:
    ValueError: Lengths differ, there are no labels, or a label is negative.
  """
  _check(labels, predictions)
  return float(sklearn_metrics.accuracy_score(labels, predictions))


def per_class_recall(
  labels: np.ndarray, predictions: np.ndarray, num_classes: int
) -> np.ndarray:
  """Share of each class's examples that are predicted as that class.

  Args:
    labels: int [N] true classes, N at least 1.
    predictions: int [N] predicted classes.
    num_classes: Number of classes.

  Returns:
    float64 [num_classes] in [0, 1]; NaN for an absent class.

  Raises:
    ValueError: As for `accuracy`, or a label is not below `num_classes`.
  """
  _check(labels, predictions)
  if np.max(labels) >= num_classes:
    raise ValueError(
      f'A label is {np.max(labels)}; with {num_classes} classes it must be below that.'
    )
  recall = sklearn_metrics.recall_score(
    labels,
    predictions,
    labels=np.arange(num_classes),
    average=None,
    zero_division=np.nan,
  )
  return np.asarray(recall, np.float64)


def balanced_accuracy(
  labels: np.ndarray, predictions: np.ndarray, num_classes: int
) -> float:
  """Mean recall of the classes that are present, in [0, 1].

  Args and Raises are those of `per_class_recall`.
  """
  return float(np.nanmean(per_class_recall(labels, predictions, num_classes)))


def _check(labels: np.ndarray, predictions: np.ndarray) -> None:
  if len(labels) != len(predictions):
    raise ValueError(
      f'There are {len(predictions)} predictions for {len(labels)} labels; each label '
      'needs one.'
    )
  if not len(labels):
    raise ValueError('There are no labels; a metric needs at least one.')
  if np.min(labels) < 0:
    raise ValueError(
      f'A label is {np.min(labels)}; examples without one must be left out.'
    )
