"""Reading a run folder: its settings, its tables, evaluation.json, labels.json."""

from collections.abc import Sequence
import dataclasses
import functools
import os
import pathlib
from typing import Any

import pandas as pd

from tff_ssl.computing import kinds
from tff_ssl.runs import class_names
from tff_ssl.runs import round_table
from tff_ssl.runs import run_config
from tff_ssl.storage import files

# The settings that this package knows by name; all others are any run's own.
METHOD, OBJECTIVE, TASK, ROUNDS, SEED = 'method', 'objective', 'task', 'rounds', 'seed'


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
  """The contents of one run folder.

  Attributes:
    folder: The run folder.
    config: Configuration and versions, from config.json.
    metrics: The numbers of metrics.csv by round (see `read_table`).
    evaluation: Numbers by name, from evaluation.json; empty if the run has not reached
      its first evaluation.
    system: Those of system.csv, likewise; empty without the file.
    classes: Names of the task's classes, from labels.json; empty without the file.
  """

  folder: pathlib.Path
  config: dict[str, Any]
  metrics: pd.DataFrame
  evaluation: dict[str, float]
  system: pd.DataFrame = dataclasses.field(default_factory=pd.DataFrame)
  classes: tuple[str, ...] = ()

  @functools.cached_property
  def settings(self) -> dict[str, Any]:
    """The settings of config.json by name (`run_config.settings`).

    Raises:
      ValueError: config.json has none, or an integer of more than 64 bits.
    """
    config = self.config.get('config')
    if not isinstance(config, dict):
      raise ValueError(
        f'{self.folder / run_config.NAME} holds no configuration; it must belong to a '
        'run.'
      )
    settings = run_config.settings(config)
    for name, value in settings.items():
      _check_size(self.folder / run_config.NAME, name, value)
    return settings

  def is_neutral(self, name: str) -> bool:
    """Returns whether a setting is irrelevant to which method ran."""
    names = self.config.get('neutral')
    return isinstance(names, list) and run_config.is_among(name, [*map(str, names)])

  @property
  def seed(self) -> str:
    """The seed, as text."""
    return kinds.value_text(self.settings.get(SEED))

  @property
  def loss(self) -> str:
    """What the losses are of: the objective, or a method that has its own."""
    return kinds.value_text(self.settings.get(OBJECTIVE) or self.settings.get(METHOD))

  @property
  def rounds(self) -> int | None:
    """The rounds that the run is to have; None if it does not say."""
    rounds = self.settings.get(ROUNDS)
    return rounds if isinstance(rounds, int) else None

  @property
  def last_round(self) -> int:
    """The last round in metrics.csv, 0 without one."""
    return int(self.metrics.index[-1]) if len(self.metrics) else 0

  @property
  def _has_all_rounds(self) -> bool:
    return self.last_round >= (self.rounds or 0)

  @property
  def is_finished(self) -> bool:
    """Whether the run has all its rounds, and no evaluation of an earlier one."""
    evaluated = self.evaluation.get(round_table.ROUND)
    return self._has_all_rounds and evaluated in (None, self.last_round)

  @property
  def state(self) -> str:
    """What the run has reached, in words."""
    if self.is_finished:
      return f'finished, {self.last_round:,} rounds'
    if self._has_all_rounds:
      # The last row is written before the last evaluation begins.
      evaluated = self.evaluation[round_table.ROUND]
      done = f'trained, {self.last_round:,} rounds'
      return f'{done}, but evaluated after round {evaluated:,}'
    return f'unfinished, round {self.last_round:,} of {self.rounds:,}'


def read(folder: str | os.PathLike[str]) -> Run:
  """Reads a run folder.

  Args:
    folder: Path of the run folder.

  Returns:
    The run.

  Raises:
    ValueError: The folder is missing, has no config.json or metrics.csv, or a file
      cannot be read; the message names the file.
  """
  folder = pathlib.Path(folder)
  run_config.check_is_folder(folder)
  for name in ('config.json', 'metrics.csv'):
    if not (folder / name).is_file():
      raise ValueError(f'{folder} is not a run: it has no {name}.')
  run_config.check_contained(folder)
  evaluation, system = folder / 'evaluation.json', folder / 'system.csv'
  return Run(
    folder=folder,
    config=_read_json(folder / 'config.json'),
    metrics=read_table(folder / 'metrics.csv'),
    evaluation=read_numbers(evaluation) if evaluation.is_file() else {},
    system=read_table(system) if system.is_file() else pd.DataFrame(),
    classes=class_names.read(folder),
  )


def _read_json(path: pathlib.Path) -> dict[str, Any]:
  try:
    return files.read_json(path)
  except OSError as error:
    raise ValueError(f'{path} cannot be read: {error}.') from error


def read_numbers(path: pathlib.Path) -> dict[str, float]:
  """Reads numbers by name, as of an evaluation.

  Args:
    path: A file of JSON, which may be a stranger's.

  Raises:
    ValueError: If it cannot be read, or a value is no number.
  """
  numbers = _read_json(path)
  for name, value in numbers.items():
    if not isinstance(value, int | float) or isinstance(value, bool):
      raise ValueError(f'{path}: {name} is {value!r}; it must be a number.')
    _check_size(path, name, value)
  return numbers


def _check_size(path: pathlib.Path, name: str, value: object) -> None:
  """Refuses an integer with which no array or float can compute."""
  if isinstance(value, int) and value.bit_length() > 64:
    digits = len(str(abs(value)))
    raise ValueError(f'{path}: {name} has {digits} digits; it must fit into 64 bits.')


def read_table(
  path: pathlib.Path, keys: Sequence[str] = (round_table.ROUND,)
) -> pd.DataFrame:
  """Reads a table of numbers: a column for each, NaN for an empty cell.

  Args:
    path: The file, which a run has written with `round_table.Table`.
    keys: Its first columns, which are the index. Of rows with the same key the last
      counts.

  Raises:
    ValueError: The file cannot be read, or is not of this form; the message names it.
  """
  columns, rows = round_table.read(path)
  if columns[: len(keys)] != [*keys]:
    raise ValueError(
      f'{path} has columns {",".join(columns)[:60]!r}; the first must be '
      f'{",".join(keys)}.'
    )
  cells = [
    {
      name: row.get(name, '') if name in keys else _number(path, row, keys, name)
      for name in columns
    }
    for row in rows
  ]
  table = pd.DataFrame(cells, columns=columns).astype({round_table.ROUND: int})
  table = table.set_index([*keys]).astype(float)
  return table[~table.index.duplicated('last')]


def _number(
  path: pathlib.Path, row: dict[str, str], keys: Sequence[str], name: str
) -> float:
  cell = row.get(name, 'nan')
  try:
    return float(cell)
  except ValueError as error:
    where = f'{path}, round {", ".join(row.get(key, "") for key in keys)}'
    raise ValueError(f'{where}: {name} is {cell!r}; it must be a number.') from error
