"""How sure an accuracy is: its interval over test cases or clients; what is confused.

Few test cases make an accuracy uncertain, however many labels a classifier was given:
of 14 cases, 64 % and 71 % are one case apart. The interval is the bootstrap's: test
cases are drawn with replacement, each with all its images, and the accuracy is computed
anew (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, Section 13.3, the
percentile method). Two encoders are compared on the same draws of the same cases.
Where examples have clients, such as patients, clients are drawn, as they were for the
test split: examples of one client are not independent.

Cases with the same results are drawn together, by a multinomial: the same distribution,
and no more work with 10,000 cases than with a hundred.

Deviations:
  If no case differs from the others, no draw does, and the bootstrap would be certain.
    The exact interval of so many equal cases replaces its open end (Clopper and
    Pearson, Biometrika 1934): 14 of 14 right is 76.8 % to 100 %.
  Fewer than 20 cases, clients or single examples count as so many examples, in that
    interval: with 3 to 19 clients of ten, the bootstrap's interval held the true share
    in 73 to 94 % of simulations, this one in 99 % or more.
  Accuracies over several draws of labels are means; the draws of labels stay as they
    are, and only cases are drawn. The deviation over draws of labels is a number of its
    own (`label_draws`).
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from scipy import stats

from tff_ssl.evaluation import method_names

# The share of intervals that hold the accuracy over all possible cases.
LEVEL = 0.95
DRAWS = 2000
# More classes have no matrix of confusions.
MOST_CLASSES = 20
# Ends of the names of the numbers, after the name of an accuracy.
LOW, HIGH = 'low', 'high'
GAIN, GAIN_LOW, GAIN_HIGH = 'gain', 'gain_low', 'gain_high'
# What the gain is over, by what its names begin with.
UNTRAINED, INITIAL = '', 'initial_'
OF_INPUTS = {name: f'{name}_' for name in method_names.INPUTS}
OVER = (UNTRAINED, INITIAL, *OF_INPUTS.values())
_ENDS = (
  LOW,
  HIGH,
  *(over + end for over in OVER for end in (GAIN, GAIN_LOW, GAIN_HIGH)),
)
# In the name of the number of examples of one class that are predicted as another.
CONFUSION = 'confusion'
# What was drawn: clients if they are named, otherwise cases.
CASES, CLIENTS = 'tested/cases', 'tested/clients'
_SEED = 0
# Fewer cases have the exact interval of so many examples.
_FEW = 20
# Numbers that one block of draws may hold.
_BLOCK = 2**22


def is_detail(name: str) -> bool:
  """Returns whether a number says more of another one: its interval, or confusions.

  Args:
    name: Its name.
  """
  parts = name.split('/')
  return parts[-1] in _ENDS or CONFUSION in parts


class Interval(NamedTuple):
  """The ends of an interval."""

  low: float
  high: float


@dataclasses.dataclass(frozen=True)
class Tested:
  """What methods predicted of the labelled test examples.

  Attributes:
    labels: int [N], the true classes.
    cases: int [N], the case of each.
    num_classes: C.
    predictions: The predictions of each draw of the labels, int [N], by the prefix of
      the method's numbers.
    clients: int [N], the client of each, which is drawn in place of the case; None:
      there are no clients.
  """

  labels: np.ndarray
  cases: np.ndarray
  num_classes: int
  predictions: dict[str, list[np.ndarray]] = dataclasses.field(default_factory=dict)
  clients: np.ndarray | None = None

  def add(self, prefix: str, predictions: np.ndarray) -> None:
    """Adds what a method predicted with one draw of the labels.

    Args:
      prefix: Of the method's numbers, such as 'knn/10%'.
      predictions: int [N].
    """
    self.predictions.setdefault(prefix, []).append(predictions)

  def rights(self, prefix: str) -> np.ndarray:
    """Returns the share of a method's draws in which each example is right, [N].

    Args:
      prefix: Of the method's numbers.
    """
    return np.mean([own == self.labels for own in self.predictions[prefix]], axis=0)


def joined(parts: Sequence[Tested]) -> Tested:
  """Returns what several evaluations predicted of the same examples.

  Args:
    parts: At least one, of different methods.
  """
  predictions: dict[str, list[np.ndarray]] = {}
  for part in parts:
    predictions.update(part.predictions)
  return dataclasses.replace(parts[0], predictions=predictions)


def numbers(
  tested: Tested, baselines: Mapping[str, Tested] | None = None
) -> collections.OrderedDict[str, float]:
  """Returns the details of all methods by name.

  Args:
    tested: What an encoder's methods predicted.
    baselines: What others predicted of the same examples, by a name of `OVER`.

  Returns:
    `tested/cases`, with clients also `tested/clients`, then for each method
      knn/10%/accuracy/low, high          the interval, likewise of balanced_accuracy
      knn/10%/accuracy/gain               the difference to the untrained encoder
      knn/10%/accuracy/gain_low, high     the interval of the difference
      knn/10%/accuracy/pixels_gain ...    likewise to the inputs (or features_gain), and
                                          to what a run started from (initial_gain)
      knn/10%/confusion/TRUE/PREDICTED    examples of a class predicted as another or as
                                          itself, a mean over draws of the labels; only
                                          numbers above 0, of at most 20 classes
  """
  found: collections.OrderedDict[str, float] = collections.OrderedDict()
  found[CASES] = float(len(np.unique(tested.cases)))
  drawn_of = tested.cases
  if tested.clients is not None:
    drawn_of = tested.clients
    found[CLIENTS] = float(len(np.unique(drawn_of)))
  for prefix in tested.predictions:
    drawn = functools.partial(
      bootstrap, tested.labels, drawn_of, num_classes=tested.num_classes
    )
    own = tested.rights(prefix)
    # Alone, so that its interval is the same whatever it is compared with.
    for score, (interval, _) in drawn(rights=[own]).items():
      found[f'{prefix}/{score}/{LOW}'], found[f'{prefix}/{score}/{HIGH}'] = interval
    for over, baseline in (baselines or {}).items():
      if prefix not in baseline.predictions:
        continue
      pair = [own, baseline.rights(prefix)]
      for score, (_, gain) in drawn(rights=pair).items():
        name = f'{prefix}/{score}/{over}'
        assert gain is not None
        found[f'{name}{GAIN}'], ends = gain
        found[f'{name}{GAIN_LOW}'], found[f'{name}{GAIN_HIGH}'] = ends
    found.update(_confusions(tested, prefix))
  return found


def bootstrap(
  labels: np.ndarray,
  cases: np.ndarray,
  rights: Sequence[np.ndarray],
  num_classes: int,
  draws: int = DRAWS,
) -> dict[str, tuple[Interval, tuple[float, Interval] | None]]:
  """Returns the intervals of accuracy and balanced accuracy of one or two encoders.

  Args:
    labels: int [N], true classes.
    cases: int [N], the case of each, or what else is drawn as a whole.
    rights: Shares in [0, 1], [N]: how right each example is by the encoder, and by the
      one it is compared with.
    num_classes: C.
    draws: How often the cases are drawn.

  Returns:
    By the name of the score, the interval of the first encoder, and if there are two
    the difference of the first to the second with its interval.
  """
  ids, index = np.unique(cases, return_inverse=True)
  count = len(ids)
  # By case: examples of each class, then how many of them each encoder has right.
  parts = [np.ones(len(labels)), *rights]
  of_cases = np.zeros([count, len(parts), num_classes])
  for part, values in enumerate(parts):
    np.add.at(of_cases, (index, part, labels), values)
  flat, times = np.unique(of_cases.reshape(count, -1), axis=0, return_counts=True)
  kinds = flat.reshape(len(flat), len(parts), num_classes)
  drawn = _drawn_sums(kinds, times, draws)
  whole = np.sum(of_cases, axis=0)[np.newaxis]
  result: dict[str, tuple[Interval, tuple[float, Interval] | None]] = {}
  for score in method_names.SCORES:
    values, known = (_scores(score, sums) for sums in (drawn, whole))
    gain = None
    if len(rights) > 1:
      ends = _ends(values[:, 0] - values[:, 1])
      gain = float(known[0, 0] - known[0, 1]), ends
    ends = _ends(values[:, 0])
    if count < _FEW or ends.low >= 1 or ends.high <= 0:
      ends = exact(float(known[0, 0]), count)
    result[score] = ends, gain
  return result


def exact(share: float, count: int) -> Interval:
  """Returns the exact interval of a binomial share.

  Args:
    share: In [0, 1]; of cases of several examples it need be no fraction of `count`.
    count: How many examples, or cases that count as one each; at least 1.
  """
  tail, right = (1 - LEVEL) / 2, share * count
  low = stats.beta.ppf(tail, right, count - right + 1) if right else 0.0
  high = stats.beta.ppf(1 - tail, right + 1, count - right) if right < count else 1.0
  return Interval(float(low), float(high))


def _drawn_sums(kinds: np.ndarray, times: np.ndarray, draws: int) -> np.ndarray:
  """Returns the sums over draws of cases, [draws, parts, C].

  Args:
    kinds: [K, parts, C], what cases of each kind add.
    times: int [K], how many cases are of each kind.
    draws: How often the cases are drawn.
  """
  random, count = np.random.default_rng(_SEED), int(np.sum(times))
  block = max(1, _BLOCK // len(times))
  sums = [
    np.tensordot(
      random.multinomial(count, times / count, size=min(block, draws - start)),
      kinds,
      axes=1,
    )
    for start in range(0, draws, block)
  ]
  return np.concatenate(sums)


def _scores(score: str, sums: np.ndarray) -> np.ndarray:
  """Returns a score of each draw and encoder, of sums [draws, parts, C]."""
  examples, rights = sums[:, :1], sums[:, 1:]
  if score == method_names.ACCURACY:
    return np.sum(rights, axis=2) / np.sum(examples, axis=2)
  # A class that a draw does not have does not count in it.
  present = examples > 0
  recalls = np.where(present, rights / np.maximum(examples, 1), 0.0)
  return np.sum(recalls, axis=2) / np.sum(present, axis=2)


def _ends(values: np.ndarray) -> Interval:
  tail = (1 - LEVEL) / 2
  low, high = np.quantile(values, [tail, 1 - tail])
  return Interval(float(low), float(high))


def _confusions(tested: Tested, prefix: str) -> Mapping[str, float]:
  """Returns the matrix of a method, but for zeros, by name."""
  if tested.num_classes > MOST_CLASSES:
    return {}
  matrix = np.zeros([tested.num_classes] * 2)
  of_draws = tested.predictions[prefix]
  for predictions in of_draws:
    np.add.at(matrix, (tested.labels, predictions), 1)
  matrix /= len(of_draws)
  return {
    f'{prefix}/{CONFUSION}/{true}/{predicted}': float(matrix[true, predicted])
    for true, predicted in zip(*np.nonzero(matrix), strict=True)
  }
