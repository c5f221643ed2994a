"""Scores of a test set's predictions by name, over the full set and over clients.

They are accuracy, recall of each class and balanced accuracy; of two classes also the
area under the ROC curve, if a method says how much it prefers one. An absent class is
one that no true label names. Its recall is not a number; balanced accuracy is the mean
over the classes that are present. Predictions of an absent class count only as
mistakes.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math

import numpy as np
from scipy import stats

from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import fairness
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import method_names

# Prefix of the names of a validation split's numbers.
VALIDATION = 'validation/'
# Classes are imbalanced if the largest is this many times the smallest.
_IMBALANCED = 2
# (labels, cases) of test examples -> client id -> positions into them.
Deal = Callable[[np.ndarray, np.ndarray], Mapping[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Problem:
  """A classification problem, on which an encoder is evaluated.

  Attributes:
    train: What classifiers are trained on.
    test: What they are tested on; images (or cases) without a label are left out.
    num_classes: Number of classes.
    case_level: Whether a case is classified as a whole, by the mean of its images'
      encodings, rather than each image.
    field: Name of the field that the encoder reads.
    validation: Examples that classifiers are tested on too; None: nothing.
    deal: Deals the labelled test images (or cases) to clients, for fairness over them;
      None: fairness is not measured.
  """

  train: encoded.Examples
  test: encoded.Examples
  num_classes: int
  case_level: bool = False
  field: str = encoded.IMAGE
  validation: encoded.Examples | None = None
  deal: Deal | None = None


class Scorer:
  """Turns predictions of the test images (or cases) into numbers.

  Attributes:
    seen: The labelled test images (or cases), and all that was predicted of them.
  """

  def __init__(self, test_set: encoded.EncodedSet, num_classes: int, deal: Deal | None):
    """Sets the labels that predictions are compared with.

    Args:
      test_set: The test images (or cases); those without a label are left out.
      num_classes: Number of classes.
      deal: Deals the labelled examples to clients; None: there is no fairness.

    Raises:
      ValueError: No example has a label.
    """
    self._tested = np.flatnonzero(test_set.labels >= 0)
    if not self._tested.size:
      raise ValueError('None of the test examples has a label; evaluation needs one.')
    self._labels = test_set.labels[self._tested]
    self._num_classes = num_classes
    cases = test_set.cases[self._tested]
    self._clients = deal and deal(self._labels, cases)
    self.seen = intervals.Tested(self._labels, cases, num_classes)

  def about_clients(self) -> collections.OrderedDict[str, float]:
    """Returns how many clients have test examples, if they are dealt to clients."""
    if self._clients is None:
      return collections.OrderedDict()
    count = sum(len(positions) > 0 for positions in self._clients.values())
    return collections.OrderedDict([('fairness/clients', float(count))])

  def __call__(
    self, prefix: str, predictions: np.ndarray
  ) -> collections.OrderedDict[str, float]:
    """Returns every metric by name; an absent class has no recall, and no area."""
    labels, predictions = self._labels, predictions[self._tested]
    area = math.nan
    if predictions.ndim == 2 and self._num_classes == 2:
      area = area_under_curve(labels, predictions[:, 1] - predictions[:, 0])
    predictions = classes(predictions)
    self.seen.add(prefix, predictions)
    recalls = per_class_recall(labels, predictions, self._num_classes)
    scores = collections.OrderedDict(
      accuracy=accuracy(labels, predictions),
      balanced_accuracy=balanced_accuracy(labels, predictions, self._num_classes),
    )
    if not math.isnan(area):
      scores[method_names.AUC] = area
    for c in np.flatnonzero(~np.isnan(recalls)):
      scores[f'recall/{c}'] = float(recalls[c])
    numbers = collections.OrderedDict((f'{prefix}/{k}', v) for k, v in scores.items())
    if self._clients is not None:
      of_clients = fairness.client_accuracies(labels, predictions, self._clients)
      for name, value in fairness.summarize(of_clients).items():
        numbers[f'fairness/{prefix}/accuracy/{name}'] = value
    return numbers


class TestSplits:
  """What classifiers are tested on: the test split, followed by the validation split.

  Attributes:
    features: [M, d], the encodings of both.
    labels: int [T], of the test split, whose features come first.
    inputs: [N, ...], what the encoder reads of both.
    cases: int [N], the case of each input; None if each is classified by itself.
  """

  def __init__(self, encode: Callable[[np.ndarray], np.ndarray], problem: Problem):
    """Encodes them."""
    test, field, case_level = problem.test, problem.field, problem.case_level
    splits = {'': test}
    if problem.validation is not None:
      splits[VALIDATION] = problem.validation
    self._sets = [
      encoded.encode_set(name.rstrip('/') or 'test', encode, split, case_level, field)
      for name, split in splits.items()
    ]
    self._scorers = {
      name: Scorer(found, problem.num_classes, None if name else problem.deal)
      for name, found in zip(splits, self._sets, strict=True)
    }
    self._case_level = case_level
    self.features = _joined([found.features for found in self._sets])
    self.labels = self._sets[0].labels
    self.inputs = _joined([split[field] for split in splits.values()])
    cases = [np.asarray(split.case) for split in splits.values()]
    self.cases = _joined(cases) if case_level else None

  @property
  def seen(self) -> intervals.Tested:
    """All that was predicted of the test split."""
    return self._scorers[''].seen

  def about_clients(self) -> collections.OrderedDict[str, float]:
    """Returns how many clients have test examples, if they are dealt to clients."""
    return self._scorers[''].about_clients()

  def of_finetuned(self, predictions: np.ndarray) -> np.ndarray:
    """Returns predictions of all cases by increasing id in the order of `features`."""
    if not self._case_level:
      return predictions
    cases = np.concatenate([found.cases for found in self._sets])
    return predictions[np.searchsorted(np.sort(cases), cases)]

  def score(
    self, prefix: str, predictions: np.ndarray
  ) -> collections.OrderedDict[str, float]:
    """Returns every metric by name, of both splits.

    Args:
      prefix: Names the method.
      predictions: int [M], the classes, or float [M, C], a preference for each class,
        in the order of `features`.
    """
    numbers: collections.OrderedDict[str, float] = collections.OrderedDict()
    ends = np.cumsum([len(found.labels) for found in self._sets])
    parts = np.split(predictions, ends[:-1])
    for (name, score), part in zip(self._scorers.items(), parts, strict=True):
      numbers.update((name + key, value) for key, value in score(prefix, part).items())
    return numbers


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
  """Concatenates arrays; returns a single one as it is: it may be memory-mapped."""
  return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def classes(predictions: np.ndarray) -> np.ndarray:
  """Returns classes, int [n], of classes or of a preference for each, [n, C]."""
  return predictions if predictions.ndim == 1 else np.argmax(predictions, axis=1)


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
  return float(np.mean(labels == predictions))


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
  # Counted here: scikit-learn checks what it is given for ten times as long.
  sizes = np.bincount(labels, minlength=num_classes)
  right = np.bincount(labels[labels == predictions], minlength=num_classes)
  return np.where(sizes > 0, right / np.maximum(sizes, 1), np.nan)


def balanced_accuracy(
  labels: np.ndarray, predictions: np.ndarray, num_classes: int
) -> float:
  """Mean recall of the classes that are present, in [0, 1].

  Args and Raises are those of `per_class_recall`.
  """
  return float(np.nanmean(per_class_recall(labels, predictions, num_classes)))


def area_under_curve(labels: np.ndarray, margins: np.ndarray) -> float:
  """Area under the ROC curve of two classes.

  It is the share of the pairs of an example of class 1 and one of class 0 in which the
  first has the larger margin; a tie counts half.

  Args:
    labels: int [N], 0 or 1.
    margins: float [N], how much class 1 is preferred to class 0.

  Returns:
    A number in [0, 1]; NaN if a class is absent.
  """
  positive = int(np.sum(labels == 1))
  negative = len(labels) - positive
  if not positive or not negative:
    return math.nan
  ranks = stats.rankdata(margins)[labels == 1]
  below = float(np.sum(ranks)) - positive * (positive + 1) / 2
  return below / (positive * negative)


def is_imbalanced(labels: np.ndarray) -> bool:
  """Returns whether classes differ enough in size for accuracy to mislead.

  Args:
    labels: int [N]; -1 for none.
  """
  _, counts = np.unique(labels[labels >= 0], return_counts=True)
  return len(counts) > 0 and bool(np.max(counts) > _IMBALANCED * np.min(counts))


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
