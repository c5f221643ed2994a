"""Comparison of groups of runs: mean and deviation over seeds of all their numbers."""

import collections
from collections.abc import Iterable, Mapping, Sequence
import csv
import dataclasses
import math
import os

import numpy as np

from tff_ssl.computing import inert
from tff_ssl.evaluation import label_draws
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.storage import files

# Numbers of training, which are shown with the numbers of evaluation.json.
LOSS, BYTES, SECONDS = 'loss', 'bytes', 'seconds'
# Prefixes of the names of baselines' numbers in evaluation.json, and titles.
BASELINES = {
  'random_encoder/': 'random encoder',
  'supervised_from_scratch/': 'supervised from scratch',
}
_HEADER = ('group', 'number', 'mean', 'deviation', 'runs')

Numbers = collections.OrderedDict[str, float]


@dataclasses.dataclass(frozen=True)
class Statistic:
  """One number of several runs.

  Attributes:
    mean: Arithmetic mean; NaN if a run's number is NaN.
    deviation: Sample standard deviation (divisor count - 1); of one run, that over its
      draws of few labels; NaN if there is none, and if a number is infinite.
    count: Number of runs.
  """

  mean: float
  deviation: float
  count: int

  @property
  def cells(self) -> tuple[str, str, int]:
    """The cells of a CSV file: both numbers with all digits, blank if NaN."""
    mean, deviation = (
      '' if math.isnan(x) else repr(x) for x in (self.mean, self.deviation)
    )
    return mean, deviation, self.count


@dataclasses.dataclass(frozen=True)
class ComparisonRow:
  """A row of a comparison: a group, or a baseline that its runs evaluated too.

  Attributes:
    name: The group's name, or 'GROUP: random encoder'.
    count: Number of runs.
    note: A note on runs that have not finished; otherwise empty.
    numbers: Statistics by the names of `evaluation.suite`, 'loss', 'bytes', 'seconds'.
    is_baseline: Whether it is a baseline, below its group.
  """

  name: str
  count: int
  note: str
  numbers: Mapping[str, Statistic]
  is_baseline: bool = False


def statistic(values: Iterable[float]) -> Statistic:
  """Returns mean and sample deviation of one or more numbers."""
  array = np.array(list(values), np.float64)
  # A single run has none, nor has an infinite loss; NumPy would warn about both.
  with np.errstate(invalid='ignore'):
    deviation = float(np.std(array, ddof=1)) if len(array) > 1 else math.nan
  return Statistic(float(np.mean(array)), deviation, len(array))


def arrays(statistics: Iterable[Statistic]) -> tuple[np.ndarray, np.ndarray]:
  """Returns means and deviations for a figure, where one run's deviation is 0."""
  pairs = [(each.mean, each.deviation) for each in statistics]
  mean, deviation = np.reshape(np.array(pairs, float), [-1, 2]).T
  return mean, np.nan_to_num(deviation)


def rows(groups: Sequence[run_groups.Group]) -> list[ComparisonRow]:
  """Returns a row for each group, and below it one for each baseline that it has.

  Args:
    groups: From `run_groups.group`.
  """
  result = []
  for group in groups:
    parts = [_by_encoder(run_numbers(run)) for run in group.counted]
    own = [part[''] for part in parts]
    result.append(ComparisonRow(group.name, len(own), _note(group), _statistics(own)))
    for start, title in BASELINES.items():
      if baseline := [part[start] for part in parts if part[start]]:
        name = f'{group.name}: {title}'
        result.append(
          ComparisonRow(name, len(baseline), '', _statistics(baseline), True)
        )
  return result


def run_numbers(run: run_reader.Run) -> Numbers:
  """Returns the numbers of one run.

  Args:
    run: The run.

  Returns:
    The numbers of evaluation.json, then, as far as they were recorded: `loss` of the
    last round; `bytes`, down and up, of all rounds; `seconds` of a round, as a median,
    because some rounds wait for compilation or for other programs.
  """
  numbers: Numbers = collections.OrderedDict(run.evaluation)
  # It describes the round, not the encoder.
  numbers.pop('round', None)
  if loss := by_round(run.metrics, LOSS):
    numbers[LOSS] = next(reversed(loss.values()))
  if traffic := bytes_by_round(run):
    numbers[BYTES] = math.fsum(traffic.values())
  if seconds := by_round(run.system, SECONDS):
    numbers[SECONDS] = float(np.nanmedian(list(seconds.values())))
  return numbers


def by_round(
  table: Sequence[Mapping[str, float]], name: str
) -> collections.OrderedDict[int, float]:
  """Returns a column of a table; empty if it is missing or has no finite number.

  Args:
    table: `metrics` or `system` of a run: every row has every column.
    name: The column's name, or its last part, such as 'loss' for 'client_work/loss'.

  Returns:
    The number by round, NaN if the cell is empty.
  """
  columns = table[0] if table else {}
  if name not in columns:
    ends = (column for column in columns if column.rpartition('/')[2] == name)
    name = next(ends, name)
  cells = collections.OrderedDict(
    (int(row['round']), row.get(name, math.nan)) for row in table
  )
  if not any(map(math.isfinite, cells.values())):
    cells.clear()
  return cells


def bytes_by_round(run: run_reader.Run) -> collections.OrderedDict[int, float]:
  """Returns the bytes of each round, down and up; empty if a run is not federated."""
  down, up = (by_round(run.metrics, f'bytes_{way}') for way in ('down', 'up'))
  return collections.OrderedDict(
    (round, down.get(round, 0.0) + up.get(round, 0.0)) for round in down | up
  )


def write_csv(
  path: str | os.PathLike[str], compared: Sequence[ComparisonRow], names: Sequence[str]
) -> None:
  """Writes one line for each row and number, with all digits.

  Args:
    path: The file, made or replaced.
    compared: From `rows`.
    names: The numbers to write.
  """
  write_table(
    path,
    _HEADER,
    (
      (inert.cell(row.name), inert.cell(name), *row.numbers[name].cells)
      for row in compared
      for name in names
      if name in row.numbers
    ),
  )


def write_table(
  path: str | os.PathLike[str],
  header: Sequence[str],
  lines: Iterable[Sequence[str | int]],
) -> None:
  """Writes a CSV file, which is made or replaced when it is complete.

  Args:
    path: The file.
    header: Names of the columns.
    lines: Cells that are inert (`inert.cell`).
  """
  with files.atomic(path) as aside, aside.open('w', newline='') as file:
    writer = csv.writer(file, lineterminator='\n')
    writer.writerow(header)
    writer.writerows(lines)


def _note(group: run_groups.Group) -> str:
  if not group.finished:
    return 'unfinished'
  return f'{len(group.left_out)} unfinished left out' if group.left_out else ''


def _statistics(
  runs: Sequence[Mapping[str, float]],
) -> collections.OrderedDict[str, Statistic]:
  """Returns each number's statistic over the runs that have it."""
  names = dict.fromkeys(name for numbers in runs for name in numbers)
  statistics = collections.OrderedDict(
    (name, statistic(numbers[name] for numbers in runs if name in numbers))
    for name in names
  )
  for name, each in statistics.items():
    of_draws = statistics.get(f'{name}/{label_draws.DEVIATION}')
    if each.count == 1 and of_draws is not None:
      statistics[name] = dataclasses.replace(each, deviation=of_draws.mean)
  return statistics


def _by_encoder(numbers: Mapping[str, float]) -> dict[str, Numbers]:
  """Returns a run's own numbers by '', and those of its baselines by their prefixes."""
  parts = {start: Numbers() for start in ('', *BASELINES)}
  for name, value in numbers.items():
    start = next((start for start in BASELINES if name.startswith(start)), '')
    parts[start][name.removeprefix(start)] = value
  return parts
