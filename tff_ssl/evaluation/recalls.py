"""How often a classifier recognises each class, and a threshold for one of two classes.

A share comes with its interval: of each class it is the recall. Where each case is one
example, the interval is the exact one of a binomial share: the bootstrap of few
examples is too sure near 0 and 1. Otherwise it is that of `intervals`, over cases.

For two classes a threshold replaces the likelier class where one of them must not be
missed. It is chosen on cases of which no share is stated: on these, it reaches what it
was chosen for by construction.
"""

from collections.abc import Mapping
import dataclasses
from typing import NamedTuple

import numpy as np

from tff_ssl.computing import inert
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import method_names

# A sensitivity that is chosen on fewer examples of its class is little known.
FEW_POSITIVE = 20


class Share(NamedTuple):
  """The share of some test examples that are classified correctly.

  Attributes:
    value: The share, in [0, 1].
    low: Lower end of its 95 % interval.
    high: Upper end.
    examples: How many they are.
  """

  value: float
  low: float
  high: float
  examples: float

  @property
  def interval(self) -> str:
    """The interval in words."""
    return f'{self.low:.1%} to {self.high:.1%}'

  def __str__(self) -> str:
    """The share in words, for a line or a card."""
    return (
      f'{self.value:.1%} of {self.examples:,.0f} test examples '
      f'(95 % interval {self.interval})'
    )


@dataclasses.dataclass(frozen=True)
class Threshold:
  """The probability from which an example counts as one of two classes.

  Attributes:
    positive: Name of the class.
    wanted: The sensitivity that it was chosen for.
    probability: The threshold.
    chosen_on: Number of examples that it was chosen on; no share is of them.
    positives: How many of these are of the class.
  """

  positive: str
  wanted: float
  probability: float
  chosen_on: int
  positives: int

  @property
  def basis(self) -> str:
    """What it was chosen on, in words."""
    few = ', too few to know it' if self.positives < FEW_POSITIVE else ''
    return f'{self.chosen_on:,} other examples, {self.positives:,} of this class{few}'


@dataclasses.dataclass(frozen=True)
class Tested:
  """What a classifier makes of test examples, each by itself.

  Attributes:
    cases: Number of cases that they are of, by which intervals are drawn.
    accuracy: Share of all of them, as the four numbers of `Share`.
    recall: The same of each class that has some, by name, with the threshold if
      there is one: of the positive class it is the sensitivity, of the other one the
      specificity.
  """

  cases: int
  accuracy: tuple[float, ...]
  recall: Mapping[str, tuple[float, ...]]

  def __post_init__(self) -> None:
    for name, numbers in {'accuracy': self.accuracy, **self.recall}.items():
      if len(numbers) != len(Share._fields):
        raise ValueError(
          f'{name} has {len(numbers)} numbers; it must have {", ".join(Share._fields)}.'
        )

  @property
  def right(self) -> Share:
    """The accuracy."""
    return Share(*self.accuracy)

  def shares(self) -> dict[str, Share]:
    """Returns the recall of each class by name."""
    return {name: Share(*numbers) for name, numbers in self.recall.items()}


def classes(
  probabilities: np.ndarray,
  label_names: tuple[str, ...],
  threshold: Threshold | None = None,
) -> np.ndarray:
  """Returns the class of each example, int [n].

  Args:
    probabilities: float [n, classes].
    label_names: Names of the classes.
    threshold: Decides in place of the larger probability, if there is one.
  """
  if threshold is None:
    return np.argmax(probabilities, axis=1)
  positive = label_names.index(threshold.positive)
  is_positive = probabilities[:, positive] >= threshold.probability
  return np.where(is_positive, positive, 1 - positive)


def tested(
  predicted: np.ndarray,
  labels: np.ndarray,
  cases: np.ndarray,
  label_names: tuple[str, ...],
) -> Tested:
  """Measures what was predicted of labelled test examples.

  Args:
    predicted: int [n], from `classes`; n at least 1.
    labels: int [n], the true classes.
    cases: int [n], the case of each.
    label_names: Names of the classes.
  """
  rights = predicted == labels
  of_classes = {name: labels == k for k, name in enumerate(label_names)}
  return Tested(
    len(np.unique(cases)),
    _share(rights, cases),
    {
      name: _share(rights[own], cases[own])
      for name, own in of_classes.items()
      if np.any(own)
    },
  )


def lines(tested: Tested, threshold: Threshold | None) -> list[str]:
  """Returns how often a classifier is right, in lines; names may be a stranger's.

  Args:
    tested: What it makes of test examples.
    threshold: Decides between two classes, if there is one.
  """
  said = [f'single examples: right for {tested.right}']
  shares = tested.shares()
  if len(shares) <= intervals.MOST_CLASSES:
    said += [f'recall of {inert.line(name)}: {own}' for name, own in shares.items()]
  if threshold is not None:
    said.append(
      f'{inert.line(threshold.positive)} from {threshold.probability:.2%} on, chosen '
      f'to find {threshold.wanted:.1%} of it on {threshold.basis}'
    )
  return said


def _share(rights: np.ndarray, cases: np.ndarray) -> Share:
  share, count = float(np.mean(rights)), len(np.unique(cases))
  if count == len(rights):
    low, high = intervals.exact(share, count)
  else:
    of_one_class = np.zeros(len(rights), np.int64)
    drawn = intervals.bootstrap(of_one_class, cases, [rights.astype(float)], 1)
    (low, high), _ = drawn[method_names.ACCURACY]
  return Share(share, low, high, float(len(rights)))


def choose_threshold(
  probabilities: np.ndarray, is_positive: np.ndarray, sensitivity: float
) -> float:
  """Returns the highest threshold that finds enough of the positive class.

  It lies halfway to the next lower probability: rounding then moves no example that it
  was chosen on to the other side.

  Args:
    probabilities: float [n], of the positive class.
    is_positive: bool [n], whether an example is of this class; some are.
    sensitivity: Share of these to find, in (0, 1].

  Raises:
    ValueError: No example is of the class.
  """
  positive = np.sort(probabilities[is_positive])
  if not len(positive):
    raise ValueError(
      'The examples to choose a threshold on have 0 of the positive class; they must '
      'have some.'
    )
  # Rounded, as 0.95 of 20 is 19 and a little more.
  needed = int(np.ceil(np.round(sensitivity * len(positive), 9)))
  lowest = positive[len(positive) - needed]
  below = probabilities[probabilities < lowest]
  return float((lowest + np.max(below, initial=0.0)) / 2)
