"""Numbers of runs against a setting: how much a result depends on it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
import math
import os
import re
from typing import NamedTuple

import pandas as pd

from tff_ssl.computing import kinds
from tff_ssl.computing import near_names
from tff_ssl.reporting import comparison
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import tables


@dataclasses.dataclass(frozen=True)
class Axis:
  """What numbers are shown against.

  Attributes:
    title: Name of the axis.
    settings: The setting, and settings that change with it, as the number of rounds
      does with the number of local epochs if the budget is fixed.
    shown: The values of the setting -> what is shown of them.
  """

  title: str
  settings: tuple[str, ...]
  shown: Mapping[str, str]

  def value(self, run: run_reader.Run) -> str:
    """Returns the value of a run."""
    return self.shown[kinds.value_text(run.settings[self.settings[0]])]


class Line(NamedTuple):
  """One number of the runs that agree in everything but a setting and the seed.

  Attributes:
    name: The settings in which the line differs from the others.
    points: Columns mean, deviation and runs over the seeds, by the value of the setting
      as text: increasing if all values are numbers, otherwise in the order of the runs.
  """

  name: str
  points: pd.DataFrame


def over(settings: Sequence[str], runs: Sequence[run_reader.Run]) -> Axis:
  """Returns the axis of a setting, and of settings that change with it.

  If values such as 'shares:alpha=0.02,clients=5' differ only in alpha, the title is
  alpha, and its values are shown.

  Args:
    settings: Names of the settings.
    runs: All runs that are compared.
  """
  first = settings[0]
  own = [run.settings[first] for run in runs if first in run.settings]
  values = dict.fromkeys(map(kinds.value_text, own))
  title, shown = _only_part(values) or (first, {value: value for value in values})
  return Axis(title, tuple(settings), shown)


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


def lines(
  runs: Sequence[run_reader.Run],
  axis: Axis,
  questions: Collection[str],
  label: Sequence[str] = (),
) -> tuple[dict[str, list[Line]], list[str]]:
  """Returns, for each number, a line for each setting of everything else.

  Args:
    runs: The runs; those that have not finished are left out.
    axis: The setting, and what changes with it.
    questions: The numbers' questions (`run_numbers.Number`).
    label: Settings whose values name the lines; empty: all in which they differ.

  Returns:
    The lines of each number in the order of their first run, by the number's question;
    by its name without the model if runs answer several questions by it, as where the
    count of labels that a share stands for changes with the setting. And what numbers
    in the lines' names mean, a sentence each.

  Raises:
    ValueError: No run has finished, or not all of them have these settings.
  """
  finished = [run for run in runs if run.is_finished]
  if not finished:
    raise ValueError(
      'No run has finished; numbers against a setting need finished runs.'
    )
  for name in axis.settings:
    strays = [run for run in finished if name not in run.settings]
    if strays:
      raise ValueError(
        f'vary_axis names {name!r}; {strays[0].folder} has no such setting.'
        f'{near_names.question(name, strays[0].settings)}'
      )
  groups = run_groups.group(finished, axis.settings, label)
  rows = [
    (each.name, each.question, k, each.model, axis.value(run), each.value)
    for k, group in enumerate(groups)
    for run in group.counted
    for each in run_numbers.numbers(run)
    if each.question in questions
    and each.model not in run_numbers.BASELINES
    and math.isfinite(each.value)
  ]
  keys = ['number', 'group', 'model', 'at']
  every = pd.DataFrame(rows, columns=['name', 'question', *keys[1:], 'value'])
  asked = every.groupby('name')['question'].transform('nunique')
  every['number'] = every['question'].where(asked == 1, every['name'])
  table = comparison.over_seeds(every, keys)
  found: dict[str, list[Line]] = {}
  for (name, k, model), points in table.groupby(keys[:3], sort=False):
    own = points.set_index('at')[['mean', 'deviation', 'runs']]
    title = f': {run_numbers.MODELS[model]}' if model else ''
    line = Line(f'{groups[k].name}{title}', own.loc[ordered(own.index)])
    found.setdefault(name, []).append(line)
  return found, [group.legend for group in groups if group.legend]


def ordered(values: Iterable[str]) -> list[str]:
  """Returns different values in the order of an axis: numbers by size, others as is."""
  unique = list(dict.fromkeys(values))
  try:
    return sorted(unique, key=float)
  except ValueError:
    return unique


def table(
  number: str, lines: Sequence[Line], notes: Sequence[str] = ()
) -> tables.Table:
  """Returns a table of one number: a row for each line, a column for each value.

  Args:
    number: The number's name.
    lines: Its lines, from `lines`.
    notes: Lines below the table.

  Returns:
    Mean ± deviation as text; the deviation of a single run is left out.
  """
  values = ordered(value for line in lines for value in line.points.index)
  rows = []
  for line in lines:
    row = [line.name, *[plain_text.EMPTY] * len(values)]
    for value, mean, deviation, _ in line.points.itertuples():
      row[1 + values.index(value)] = plain_text.number(number, mean, deviation)
    rows.append(row)
  cells = pd.DataFrame(rows, columns=[comparison.NAME, *values])
  return tables.Table(cells, (), notes)


def write_csv(
  path: str | os.PathLike[str], axis: Axis, panels: Mapping[str, Sequence[Line]]
) -> None:
  """Writes one line for each number, line and value, with all digits.

  Args:
    path: The file, made or replaced.
    axis: What the numbers are shown against.
    panels: Lines by the name of the number.
  """
  rows = [
    (value, line.name, number, *point)
    for number, lines in panels.items()
    for line in lines
    for value, *point in line.points.itertuples()
  ]
  names = [axis.title, 'line', 'number', 'mean', 'deviation', 'runs']
  comparison.write_lines(path, pd.DataFrame(rows, columns=names))
