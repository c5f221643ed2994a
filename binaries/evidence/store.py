"""Keeps what claims need of runs: a small CSV file of figures for each budget.

Run folders are large and go with their machine. A row says which run it is of, by the
hash of program and flags: a row whose hash no run has any more is left out.
"""

from collections.abc import Collection, Iterable, Mapping
import csv
import io
import json
import os
import pathlib

from binaries.evidence import claim as claim_lib
from binaries.launching import complete
from tff_ssl.storage import files

_HEADER = ['run', 'hash', 'seed', 'figure', 'value']
_DIGITS = 6

# Figures of one run and seed, by column.
Numbers = Mapping[str, float]


class Store:
  """The figures of one budget's runs, in memory and in their file."""

  def __init__(self, path: str | os.PathLike[str], claims: Iterable[claim_lib.Claim]):
    """Reads the file, if there is one.

    Args:
      path: The CSV file.
      claims: All claims of the budget: what they do not need is not kept.

    Raises:
      ValueError: If the file is not one of figures.
    """
    self._path = pathlib.Path(path)
    self._columns = claim_lib.columns(claims)
    self._numbers = self._read()

  @property
  def runs(self) -> list[claim_lib.Run]:
    """All runs of the budget, each once."""
    return list(self._columns)

  def has(self, run: claim_lib.Run, seed: int, columns: Iterable[str]) -> bool:
    """Returns whether these figures of a run and seed are there."""
    known = self._numbers.get((run.key, seed), {})
    return all(column in known for column in columns)

  def add(self, run: claim_lib.Run, seed: int, numbers: Numbers) -> None:
    """Adds the figures of a finished run, and writes the file.

    Args:
      run: The run.
      seed: Its seed.
      numbers: By column; other columns of the run stay as they are.
    """
    rounded = {name: float(f'{value:.{_DIGITS}g}') for name, value in numbers.items()}
    self._numbers.setdefault((run.key, seed), {}).update(rounded)
    self.write()

  def values(self, claim: claim_lib.Claim) -> dict[str, dict[int, float]]:
    """Returns the values of a claim's figures: by figure, by seed."""
    return {
      name: {
        seed: self._numbers[figure.run.key, seed][figure.column]
        for seed in range(claim.seeds)
        if figure.column in self._numbers.get((figure.run.key, seed), {})
      }
      for name, figure in claim.figures.items()
    }

  def write(self) -> None:
    """Writes the figures of all runs that claims still have, in the claims' order.

    Without any figure no file is made.
    """
    if not self._numbers and not self._path.exists():
      return
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator='\n')
    writer.writerow(_HEADER)
    for run, columns in self._columns.items():
      for seed in sorted(seed for key, seed in self._numbers if key == run.key):
        known = self._numbers[run.key, seed]
        writer.writerows(
          [run.name, run.key, seed, column, repr(known[column])]
          for column in columns
          if column in known
        )
    self._path.parent.mkdir(parents=True, exist_ok=True)
    with files.atomic(self._path) as aside:
      aside.write_text(lines.getvalue(), encoding='utf-8')

  def _read(self) -> dict[tuple[str, int], dict[str, float]]:
    numbers: dict[tuple[str, int], dict[str, float]] = {}
    if not self._path.exists():
      return numbers
    rows = list(csv.reader(self._path.read_text(encoding='utf-8').splitlines()))
    if rows[:1] != [_HEADER]:
      raise ValueError(
        f'{self._path} has another header; it must be {",".join(_HEADER)}.'
      )
    for number, row in enumerate(rows[1:], start=2):
      try:
        _, key, seed, column, value = row
        numbers.setdefault((key, int(seed)), {})[column] = float(value)
      except ValueError as error:
        raise ValueError(
          f'{self._path}, line {number}, is {",".join(row)!r}; it must be a run, its '
          'hash, a seed, a column and a number.'
        ) from error
    return numbers


def read_folder(
  folder: str | os.PathLike[str], columns: Collection[str]
) -> Numbers | None:
  """Returns the figures of a run folder; None unless the run is complete.

  Args:
    folder: The run folder, which need not exist.
    columns: Names of numbers, each once, of `evaluation.json`, or where it has none of
      the name, of the last row of `metrics.csv`.
  """
  run = complete.read(folder)
  if run is None:
    return None
  known = {**run.metrics[-1], **run.evaluation}
  found = {column: known[column] for column in columns if column in known}
  return found if len(found) == len(columns) else None


def describe_missing(folder: str | os.PathLike[str], columns: Iterable[str]) -> str:
  """Returns why the folder of a run that has succeeded is not complete."""
  path = pathlib.Path(folder) / 'evaluation.json'
  try:
    known = json.loads(path.read_text())
  except (OSError, ValueError):
    return f'{path} cannot be read'
  missing = [name for name in columns if name not in known]
  return f'{path} and metrics.csv have no {", ".join(missing) or "last round"}'
