"""Whether an encoder is any good, in sentences: by its signals, and by test cases.

The light needs no label. It compares an encoder's signals (`evaluation.signals`) with
those of the same network before training, on the same views of the same examples:

  red     diverged: the features are not finite
  red     collapsed: the features vary less than a quarter as much as before training,
          or have less than half the rank
  yellow  undertrained: the variance between examples, relative to that between views
          of one example, has not doubled
  green   fine
  grey    unclear: with as much noise of privacy again, the light would often change,
          or noise hides the variance between views

docs/is_it_any_good.md has the runs that the three thresholds come from, and the runs
that they were tested on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import itertools
import math
from typing import NamedTuple

import pandas as pd

from tff_ssl.computing import inert
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import plain_text

# Prefix of the numbers of the encoder before training.
UNTRAINED = 'random_encoder/'
RED, YELLOW, GREEN, GREY = 'red', 'yellow', 'green', 'grey'
# Of the untrained encoder's: least spread and rank, and least ratio of variances.
LEAST_SPREAD, LEAST_RANK, LEAST_GAIN = 0.25, 0.5, 2.0
# The signals that decide the light; good encoders have a large ratio of variances.
DECIDING = _SPREAD, _RANK, RATIO = (
  'signals/spread',
  'signals/rank',
  'signals/view_ratio',
)
NEEDED = _SPREAD, _RANK
# What an accuracy is compared with, by the names of the gains.
_OTHERS = {
  **{over: f'its own {name}' for name, over in intervals.OF_INPUTS.items()},
  intervals.INITIAL: 'the encoder it started from',
  intervals.UNTRAINED: 'an untrained encoder',
}
# How an accuracy compares, by the interval of the difference.
BETTER, NOT_BETTER, WORSE = 'better', 'not better', 'worse'
# Fewer test cases (or clients) say nothing of a difference: draws of a few are too
# sure.
FEWEST_CASES = 10
# The share of draws of noise in which the light stays, and the least to believe it:
# with 0.95 it was believed in 2 % of cases in which noise is all there is.
CERTAINTY, LEAST_CERTAINTY = 'signals/certainty', 1.0


class Light(NamedTuple):
  """What the signals say of an encoder.

  Attributes:
    color: `RED`, `YELLOW`, `GREEN` or `GREY`.
    word: Its state: diverged, collapsed, undertrained, fine or unclear.
    why: A clause with the numbers that decided.
  """

  color: str
  word: str
  why: str


def traffic_light(numbers: Mapping[str, float]) -> Light | None:
  """Returns what the signals say; None without signals, or others to compare with.

  Args:
    numbers: Those of evaluation.json, by name.
  """
  # Noise may hide the ratios.
  if any(each + name not in numbers for each in ('', UNTRAINED) for name in NEEDED):
    return None
  if not all(math.isfinite(numbers.get(UNTRAINED + name, 0.0)) for name in DECIDING):
    return None
  shown = _shown(numbers)
  certainty = numbers.get(CERTAINTY, 1.0)
  if certainty < LEAST_CERTAINTY and shown.color != GREY:
    why = f'{shown.color}, {shown.word} in {certainty:.0%} of draws of as much noise'
    return Light(GREY, 'unclear', f'the noise of privacy hides it; {why}')
  return shown


def _shown(numbers: Mapping[str, float]) -> Light:
  """Returns what the signals say, whatever the noise in them."""
  spread, rank = (numbers[name] for name in NEEDED)
  spread_0, rank_0 = (numbers[UNTRAINED + name] for name in NEEDED)
  ratio, ratio_0 = numbers.get(RATIO), numbers.get(UNTRAINED + RATIO)
  if not all(math.isfinite(value) for value in (spread, rank, ratio or 0.0)):
    return Light(RED, 'diverged', 'its features are not finite')
  if spread < LEAST_SPREAD * spread_0:
    why = f'have a variance of {spread:.2g}, less than a quarter of the {spread_0:.2g}'
    return Light(RED, 'collapsed', f'its features {why} before training')
  if rank < LEAST_RANK * rank_0:
    why = f'have a rank of {rank:.3g}, less than half of the {rank_0:.3g}'
    return Light(RED, 'collapsed', f'its features {why} before training')
  if ratio is None or ratio_0 is None:
    which = 'encoder' if ratio is None else 'encoder before training'
    why = f'noise hides how much views of one example vary for the {which}'
    return Light(GREY, 'unclear', why)
  why = f'examples vary {ratio:.2g} times as much as views of one example'
  if ratio < LEAST_GAIN * ratio_0 or not ratio:
    less = f'less than twice the {ratio_0:.2g} before training'
    if not ratio:
      less = 'so that nothing tells them apart'
    return Light(YELLOW, 'undertrained', f'{why}, {less}')
  return Light(GREEN, 'fine', f'{why}, before training {ratio_0:.2g} times')


def sentences(numbers: Mapping[str, float], classes: Sequence[str] = ()) -> list[str]:
  """Returns what signals and test cases say, a sentence each.

  Args:
    numbers: Those of evaluation.json, by name.
    classes: Names of the classes; empty: they are not known.

  Returns:
    The light, if there are signals; then for each method its accuracy with its interval
    and whether it is better than the encoder's own inputs, than the encoder that the
    run started from and than the untrained one, if these were evaluated on the same
    cases; then which methods call all test examples one class.
  """
  shown = traffic_light(numbers)
  found = []
  if shown is not None:
    found.append(f'Without labels: {shown.color}, {shown.word}: {shown.why}.')
  for name in numbers:
    count, unit = _drawn(numbers, name)
    if name.rpartition('/')[2] == method_names.ACCURACY and count:
      low, high = (
        numbers.get(f'{name}/{end}') for end in (intervals.LOW, intervals.HIGH)
      )
      if low is not None and high is not None:
        value = f'{numbers[name]:.1%}, between {low:.1%} and {high:.1%}'
        found.append(
          f'{plain_text.title(name)}: {value} (95 %) by {count:,.0f} test {unit}'
          f'{_against_others(numbers, name)}.'
        )
  return [*found, *_one_class(numbers, classes)]


def _one_class(numbers: Mapping[str, float], classes: Sequence[str]) -> Iterator[str]:
  """Yields a sentence on the methods that call all test examples one class."""
  methods: dict[tuple[str, str], list[str]] = {}
  for method, matrix in matrices(numbers).items():
    counts = {pair: count for pair, count in matrix.items() if count > 0}
    true, called = ({pair[k] for pair in counts} for k in (0, 1))
    if len(called) == 1 < len(true):
      (only,) = called
      name = inert.line(plain_text.class_name(method, only, classes))
      what = f"'{name}'" if name else f'class {only}'
      count = sum(counts.values())
      said = f'{count:,.0f} test examples are called {what}'
      share = f'{counts.get((only, only), 0.0) / count:.1%}'
      methods.setdefault((said, share), []).append(plain_text.title(method))
  for (said, share), titles in methods.items():
    yield (
      f'All {said} by {" and ".join(titles)}: {share} is the share of that class, and '
      'says nothing of the encoder.'
    )


def _drawn(numbers: Mapping[str, float], name: str) -> tuple[float, str]:
  """Returns how many clients, or cases, an accuracy was tested on, and what they are.

  They are those of its task; clients, if there are any, are what was drawn.
  """
  parts = name.split('/')
  for n in range(len(parts), -1, -1):
    for unit in (intervals.CLIENTS, intervals.CASES):
      if (count := numbers.get('/'.join([*parts[:n], unit]))) is not None:
        return count, unit.rpartition('/')[2]
  return 0.0, ''


def _against_others(numbers: Mapping[str, float], name: str) -> str:
  """Returns how an accuracy compares with others, as far as these are known."""
  found = []
  if _drawn(numbers, name)[0] < FEWEST_CASES:
    return ', too few to compare it with others'
  for over, title in _OTHERS.items():
    if word := _compared(numbers, name, over):
      other = numbers[name] - numbers[f'{name}/{over}{intervals.GAIN}']
      found.append(f'{word} than {title} ({numbers[name]:.0%} against {other:.0%})')
  return f'; {", ".join(found)}' if found else ''


def _compared(numbers: Mapping[str, float], name: str, over: str) -> str | None:
  """Returns the word for a gain in accuracy; None if it is not known."""
  ends = (intervals.GAIN, intervals.GAIN_LOW, intervals.GAIN_HIGH)
  names = [f'{name}/{over}{end}' for end in ends]
  is_few = 0 < _drawn(numbers, name)[0] < FEWEST_CASES
  if is_few or any(each not in numbers for each in names):
    return None
  _, low, high = (numbers[each] for each in names)
  return BETTER if low > 0 else WORSE if high < 0 else NOT_BETTER


def against(numbers: Mapping[str, float], others: Iterable[str]) -> list[str]:
  """Returns how accuracies on a run's own task compare with those of others.

  Args:
    numbers: Those of evaluation.json, by name.
    others: What they are compared with, each one of `intervals.OVER`.

  Returns:
    `BETTER`, `NOT_BETTER` or `WORSE` for each method and number of labels.
  """
  # Names with more parts are of other tasks or encoders.
  last = f'/{method_names.ACCURACY}'
  own = [name for name in numbers if name.count('/') == 2 and name.endswith(last)]
  pairs = itertools.product(own, others)
  return [word for pair in pairs if (word := _compared(numbers, *pair))]


def confusions(
  numbers: Mapping[str, float], classes: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
  """Returns what each method confuses, by its name.

  Args:
    numbers: Those of evaluation.json, by name.
    classes: Names of the classes; empty: they are not known.

  Returns:
    Tables as text: a row for each true class, with the test examples predicted as each
    class and the share that is right, the sensitivity. Means over draws of the labels
    may be fractions.
  """
  tables = {}
  for method, counts in matrices(numbers).items():
    places = sorted({each for pair in counts for each in pair})
    # A file may come from strangers: `intervals` writes no more.
    if len(places) <= intervals.MOST_CLASSES:
      names = {each: plain_text.class_name(method, each, classes) for each in places}
      tables[plain_text.title(method)] = _table(counts, names)
  return tables


def matrices(numbers: Mapping[str, float]) -> dict[str, dict[tuple[int, int], float]]:
  """Returns the test examples of a class predicted as another, by method.

  Args:
    numbers: Those of evaluation.json.
  """
  counts: dict[str, dict[tuple[int, int], float]] = {}
  for name, value in numbers.items():
    method, found, classes = name.partition(f'/{intervals.CONFUSION}/')
    true, _, predicted = classes.partition('/')
    # A file may come from strangers: Python reads no number of 4,301 digits.
    if found and all(each.isdecimal() and len(each) < 20 for each in (true, predicted)):
      counts.setdefault(method, {})[int(true), int(predicted)] = value
  return counts


def _table(
  counts: Mapping[tuple[int, int], float], names: Mapping[int, str]
) -> pd.DataFrame:
  rows = []
  for true, name in names.items():
    row = [counts.get((true, predicted), 0.0) for predicted in names]
    right = counts.get((true, true), 0.0)
    sensitivity = f'{right / sum(row):.1%}' if sum(row) > 0 else plain_text.EMPTY
    cells = (f'{value:.4g}' for value in row)
    rows.append([name or f'class {true}', *cells, sensitivity])
  columns = (f'as {name or each}' for each, name in names.items())
  return pd.DataFrame(rows, columns=['true class', *columns, 'sensitivity'])
