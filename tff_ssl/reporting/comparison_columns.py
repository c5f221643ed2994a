"""The columns of a comparison: which numbers are shown, and how they are written."""

from collections.abc import Iterable, Mapping, Sequence
import fnmatch
import math

from tff_ssl.evaluation import label_draws
from tff_ssl.reporting import best_round
from tff_ssl.reporting import comparison

GROUP, RUNS = 'group', 'runs'
# Shown last, in this order, after the evaluation.
_TITLES = {
  comparison.LOSS: 'final loss',
  comparison.BYTES: 'bytes in all',
  comparison.SECONDS: 'seconds a round',
  best_round.ROUND: 'best round',
}
_ACCURACY, _BALANCED = 'accuracy', 'balanced_accuracy'
_RECALL = 'recall'
# The last two are of masks: intersection over union, and the share that is found.
_SHARES = (_ACCURACY, _BALANCED, _RECALL, 'iou', 'found')
# Recall of retrieval, with its k following.
_RECALL_AT = 'recall_at_'
# Prefix of a single cluster's numbers; their mean and the best have other names.
_OF_A_CLUSTER = 'clusters/cluster_'
_EMPTY = '-'
_UNITS = ('B', 'kB', 'MB', 'GB', 'TB', 'PB')
# If classes are of about the same size, the two accuracies differ by less.
_LEAST_DIFFERENCE = 0.01


def choose(
  rows: Sequence[comparison.ComparisonRow], patterns: Sequence[str] = ()
) -> list[str]:
  """Chooses the numbers to show.

  Args:
    rows: From `comparison.rows`.
    patterns: Names, or shell patterns such as 'linear/*'; without any, all accuracies
      (balanced ones if they differ from plain ones), recall at 1 of retrieval, and the
      cost of training. Recalls of classes, deviations over draws of labels, numbers of
      single clusters, and numbers of a validation split are shown only if a pattern
      names them.

  Returns:
    Names: evaluation first, in its own order.

  Raises:
    ValueError: A pattern matches no number.
  """
  names = available(rows)
  usual = [
    name
    for name in names
    if _is_usual(rows, name)
    and not best_round.is_of_validation(name)
    and not name.startswith(_OF_A_CLUSTER)
  ]
  chosen = set()
  for pattern in patterns:
    matches = [
      name
      for name in names
      if fnmatch.fnmatchcase(name, pattern)
      and (_RECALL in pattern or not _is_recall(name))
      and (
        label_draws.DEVIATION in pattern
        or not name.endswith(f'/{label_draws.DEVIATION}')
      )
      and (
        best_round.is_of_validation(pattern) or not best_round.is_of_validation(name)
      )
    ]
    if not matches:
      raise ValueError(
        f'metric is {pattern!r}, which none of the numbers matches; among them are '
        f'{", ".join(usual or names)}.'
      )
    chosen.update(matches)
  return [name for name in names if name in chosen] if patterns else usual


def available(rows: Iterable[comparison.ComparisonRow]) -> list[str]:
  """Returns the names of all numbers, evaluation first."""
  names = dict.fromkeys(name for row in rows for name in row.numbers)
  last = list(_TITLES)
  return sorted(names, key=lambda name: last.index(name) if name in last else -1)


def is_accuracy(name: str) -> bool:
  """Returns whether a number is an accuracy, balanced or not."""
  return name.rpartition('/')[2] in (_ACCURACY, _BALANCED)


def title(name: str) -> str:
  """Returns a number's name in print: 'linear 10%' for linear/10%/accuracy."""
  if name in _TITLES:
    return _TITLES[name]
  short = name.removesuffix(f'/{_ACCURACY}').replace(_BALANCED, 'balanced')
  return short.replace('/', ' ').replace('_', ' ')


def cells(
  rows: Iterable[comparison.ComparisonRow], names: Sequence[str]
) -> list[dict[str, str]]:
  """Returns the rows of the table as text, by the titles of the columns.

  Args:
    rows: From `comparison.rows`.
    names: The numbers to show.

  Returns:
    For each row the group, the number of runs, and the numbers as mean ± deviation;
    the deviation of a single run is over its draws of few labels, or left out.
  """
  return [
    {
      GROUP: row.name,
      RUNS: f'{row.count} ({row.note})' if row.note else str(row.count),
      **{title(name): _cell(row, name) for name in names},
    }
    for row in rows
  ]


def best(
  rows: Sequence[comparison.ComparisonRow], names: Sequence[str]
) -> set[tuple[int, str]]:
  """Returns the places of the best numbers, in columns that have one.

  The best accuracies and recalls are the largest, the best bytes and seconds the
  smallest; losses of different objectives are not comparable. Numbers that are written
  the same are all best. Baselines are not compared, nor is a single group.

  Args:
    rows: From `comparison.rows`.
    names: The numbers shown.

  Returns:
    Positions of rows, with the title of the column.
  """
  own = [k for k, row in enumerate(rows) if not row.is_baseline]
  places = set()
  for name in names:
    sign = _sign(name)
    means = {
      k: rows[k].numbers[name].mean
      for k in own
      if name in rows[k].numbers and math.isfinite(rows[k].numbers[name].mean)
    }
    if not sign or len(means) < 2:
      continue
    first = max(means, key=lambda k: sign * means[k])
    shown = {k: number(name, mean, math.nan) for k, mean in means.items()}
    places |= {(k, title(name)) for k in means if shown[k] == shown[first]}
  return places


def ordered(rows: Sequence[comparison.ComparisonRow], name: str) -> list[str]:
  """Returns the names of the groups, the best first; those without the number last.

  Args:
    rows: From `comparison.rows`.
    name: The number's name, or its `title`.

  Raises:
    ValueError: If there is no such number.
  """
  names = available(rows)
  own = [number for number in names if name in (number, title(number))]
  if not own:
    usual = [number for number in names if _is_usual(rows, number)]
    raise ValueError(f'order is {name!r}; the numbers are {", ".join(usual or names)}.')
  # A loss, or another number that is better if smaller.
  sign = _sign(own[0]) or -1

  def worth(row: comparison.ComparisonRow) -> float:
    mean = row.numbers[own[0]].mean if own[0] in row.numbers else math.nan
    return -sign * mean if math.isfinite(mean) else math.inf

  return [row.name for row in sorted(rows, key=worth) if not row.is_baseline]


def _sign(name: str) -> int:
  """Returns 1 if more is better, -1 if less is, 0 if that is not known."""
  if any(part in _SHARES for part in name.split('/')):
    # The name of their spread over clients or draws is an accuracy's with a suffix.
    return 0 if name.endswith(('/std', f'/{label_draws.DEVIATION}')) else 1
  return -1 if name in (comparison.BYTES, comparison.SECONDS) else 0


def _is_recall(name: str) -> bool:
  return _RECALL in name.split('/')


def _is_usual(rows: Iterable[comparison.ComparisonRow], name: str) -> bool:
  head, _, last = name.rpartition('/')
  if last != _BALANCED:
    return last in (_ACCURACY, f'{_RECALL_AT}1') or name in _TITLES
  plain = f'{head}/{_ACCURACY}'
  return any(_differ(row.numbers, name, plain) for row in rows)


def _differ(numbers: Mapping[str, comparison.Statistic], name: str, other: str) -> bool:
  if name not in numbers:
    return False
  if other not in numbers:
    return True
  return abs(numbers[name].mean - numbers[other].mean) > _LEAST_DIFFERENCE


def _cell(row: comparison.ComparisonRow, name: str) -> str:
  if name not in row.numbers or not math.isfinite(row.numbers[name].mean):
    return _EMPTY
  statistic = row.numbers[name]
  text = number(name, statistic.mean, statistic.deviation)
  return text if statistic.count == row.count else f'{text} (n={statistic.count})'


def number(name: str, mean: float, deviation: float) -> str:
  """Writes a mean and, unless it is NaN, a deviation, in the number's unit."""
  unit, factor, decimals = '', 1.0, None
  parts = name.split('/')
  if any(part in _SHARES for part in parts) or parts[-1].startswith(_RECALL_AT):
    unit, factor, decimals = '%', 100.0, 1
  elif name == comparison.BYTES:
    power = min(int(math.log10(max(mean, 1)) // 3), len(_UNITS) - 1)
    unit, factor = f' {_UNITS[power]}', 1000.0**-power
  mean, deviation = factor * mean, factor * deviation
  if decimals is None and deviation > 0:
    # Two digits of the deviation, and as many decimals of the mean.
    decimals = max(0, 1 - math.floor(math.log10(deviation)))
  text = f'{mean:.4g}' if decimals is None else f'{mean:.{decimals}f}'
  if math.isfinite(deviation):
    text += f' ± {deviation:.{decimals or 0}f}'
  return text + unit
