"""Numbers of runs against a flag: how much a result depends on one setting."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
import math
import os
import re
from typing import NamedTuple

from tff_ssl.computing import inert
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_columns
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader

_METHOD = 'method'
_EMPTY = '-'


@dataclasses.dataclass(frozen=True)
class Axis:
  """What numbers are shown against.

  Attributes:
    title: Name of the axis.
    flags: The flag, and flags that change with it, as the number of rounds does with
      the number of local epochs if the budget is fixed.
    value_of: The value of a run, as text; None: the value of the first flag.
    label: Names the lines; None: the flags in which they differ.
  """

  title: str
  flags: tuple[str, ...]
  value_of: Callable[[run_reader.Run], str] | None = None
  label: run_groups.Label | None = None

  def value(self, run: run_reader.Run) -> str:
    """Returns the value of a run."""
    if self.value_of is not None:
      return self.value_of(run)
    return run_groups.text(run.flags[self.flags[0]])

  def of_groups(self) -> run_groups.Label | None:
    """Returns the label of groups, each of one value; None if lines have no label."""
    if self.label is None:
      return None
    of_line = self.label.of_run
    return run_groups.Label(
      lambda run: f'{self.value(run)} {of_line(run)}', (*self.label.flags, *self.flags)
    )


def over(
  flags: Sequence[str],
  runs: Sequence[run_reader.Run] = (),
  label: run_groups.Label | None = None,
) -> Axis:
  """Returns the axis of a flag, and of flags that change with it.

  If values such as 'shares:alpha=0.02,clients=5' differ only in alpha, the title is
  alpha, and its values are shown.

  Args:
    flags: Names of the flags.
    runs: All runs that are compared.
    label: See `Axis`.
  """
  first = flags[0]
  values = {run_groups.text(run.flags[first]) for run in runs if first in run.flags}
  part = _only_part(values)
  if part is None:
    return Axis(first, tuple(flags), label=label)
  title, shown = part

  def value_of(run: run_reader.Run) -> str:
    return shown[run_groups.text(run.flags[first])]

  return Axis(title, tuple(flags), value_of, label)


def _only_part(values: Collection[str]) -> tuple[str, dict[str, str]] | None:
  """Returns the name and the values of the one part in which values differ."""
  parts = {value: re.split('[:,]', value) for value in values}
  if len({*map(len, parts.values())}) != 1:
    return None
  differing = [each for each in zip(*parts.values(), strict=True) if len({*each}) > 1]
  if len(differing) != 1:
    return None
  named = [part.partition('=') for part in differing[0]]
  if len({name for name, _, _ in named}) > 1 or not all(sign for _, sign, _ in named):
    return None
  return named[0][0], dict(zip(parts, (value for _, _, value in named), strict=True))


class Line(NamedTuple):
  """One number of the runs that agree in everything but a flag and the seed.

  Attributes:
    name: The flags in which the line differs from the others.
    points: The number over the seeds by the flag's value as text: increasing if all
      values are numbers, otherwise in the order of the runs.
  """

  name: str
  points: Mapping[str, comparison.Statistic]


def lines(runs: Sequence[run_reader.Run], axis: Axis, number: str) -> list[Line]:
  """Returns a line for each setting of the other flags.

  Args:
    runs: The runs; those that have not finished are left out.
    axis: The flag, and what changes with it.
    number: A number of `comparison.run_numbers`.

  Returns:
    The lines that have the number, in the order of their first run.

  Raises:
    ValueError: No run has finished, or not all of them have these flags.
  """
  finished = [run for run in runs if run_groups.is_finished(run)]
  if not finished:
    raise ValueError('No run has finished; numbers against a flag need finished runs.')
  for flag in axis.flags:
    strays = [run for run in finished if flag not in run.flags]
    if strays:
      raise ValueError(f'over names {flag!r}; {strays[0].folder} has no such flag.')
  result = []
  neutral = (*run_groups.NEUTRAL, *axis.flags)
  for group in run_groups.group(finished, neutral, axis.label):
    by_value: dict[str, list[float]] = {}
    for run in group.counted:
      numbers = comparison.run_numbers(run)
      if math.isfinite(numbers.get(number, math.nan)):
        by_value.setdefault(axis.value(run), []).append(numbers[number])
    if by_value:
      points = {k: comparison.statistic(by_value[k]) for k in ordered(by_value)}
      result.append(Line(group.name, points))
  return result


def ordered(values: Iterable[str]) -> list[str]:
  """Returns different values in the order of an axis: numbers by size, others as is."""
  unique = list(dict.fromkeys(values))
  try:
    return sorted(unique, key=float)
  except ValueError:
    return unique


def cells(number: str, lines: Sequence[Line]) -> list[dict[str, str]]:
  """Returns a table of one number: a row for each line, a column for each value.

  Args:
    number: The number's name.
    lines: Its lines, from `lines`.

  Returns:
    Mean ± deviation as text by the value; the deviation of a single run is left out.
  """
  values = ordered(value for line in lines for value in line.points)
  return [
    {
      _METHOD: line.name,
      **dict.fromkeys(values, _EMPTY),
      **{
        value: comparison_columns.number(number, point.mean, point.deviation)
        for value, point in line.points.items()
      },
    }
    for line in lines
  ]


def write_csv(
  path: str | os.PathLike[str], axis: Axis, panels: Mapping[str, Sequence[Line]]
) -> None:
  """Writes one line for each number, line and value, with all digits.

  Args:
    path: The file, made or replaced.
    axis: What the numbers are shown against.
    panels: Lines by the name of the number.
  """
  comparison.write_table(
    path,
    [inert.cell(axis.title), _METHOD, 'number', 'mean', 'deviation', 'runs'],
    (
      (*map(inert.cell, (value, line.name, number)), *point.cells)
      for number, lines in panels.items()
      for line in lines
      for value, point in line.points.items()
    ),
  )
