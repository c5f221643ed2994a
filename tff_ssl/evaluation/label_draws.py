"""Several draws of few labels, whose numbers become one mean and one deviation.

With few labels, an accuracy depends on which they are: with 30 labels of ten kinds of
digits, it varies by five per cent from draw to draw. Runs and methods are therefore
compared by means over draws.
"""

import collections
from collections.abc import Mapping, Sequence

import numpy as np

from tff_ssl.evaluation import label_fractions
from tff_ssl.evaluation import method_names

# Draws of methods that train little, such as probes, and of training from scratch.
PROBES, FROM_SCRATCH = 8, 3
# More labels are drawn once: their accuracies differ by less, and cost more.
FEW_LABELS = 1_000
# Ends the name of a score's deviation over draws, begins the name of their number.
DEVIATION, NUMBER = 'deviation', 'draws'
# 1 only if it is 1 in every draw.
_OF_ALL = 'converged'


def subsets(
  labels: np.ndarray,
  fraction: float,
  seed: int,
  groups: np.ndarray | None = None,
  draws: Sequence[int] = range(PROBES),
) -> list[np.ndarray]:
  """Returns the positions of the labels of each draw, or of the first if not few.

  Args:
    labels: As in `label_fractions.label_fraction`, like the next three.
    fraction: Share of the labelled examples.
    seed: The same seed and draw give the same subset.
    groups: Cases, drawn as a whole.
    draws: Numbers of the draws, at least one.
  """
  first = label_fractions.label_fraction(labels, fraction, seed, groups, draws[0])
  if not are_few(first.size, fraction):
    return [first]
  return [
    first,
    *(
      label_fractions.label_fraction(labels, fraction, seed, groups, draw)
      for draw in draws[1:]
    ),
  ]


def are_few(count: float, fraction: float) -> bool:
  """Returns whether so many labels, a fraction of all, are drawn more than once."""
  return fraction < 1 and count <= FEW_LABELS


def mean(
  of_draws: Sequence[Mapping[str, float]],
) -> collections.OrderedDict[str, float]:
  """Returns the means of numbers over draws, and the deviation of each score.

  Args:
    of_draws: The numbers of each draw, by the same names.

  Returns:
    Of several draws, the mean of each number, and below the name of an accuracy
    'NAME/deviation', the sample deviation. A single draw has no deviation.
  """
  if len(of_draws) == 1:
    return collections.OrderedDict(of_draws[0])
  numbers: collections.OrderedDict[str, float] = collections.OrderedDict()
  for name in of_draws[0]:
    values = [each[name] for each in of_draws]
    last = name.rpartition('/')[2]
    numbers[name] = min(values) if last == _OF_ALL else float(np.mean(values))
    if method_names.way(name) or last == method_names.AUC:
      numbers[f'{name}/{DEVIATION}'] = float(np.std(values, ddof=1))
  return numbers
