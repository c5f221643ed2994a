"""Runs by their flags, and their stored figures: a small CSV file for each campaign.

Run folders are large and stay on their machine. A row names its run by the hash of
program and flags; rows of runs that the campaign does not have are left out.

Only the standard library is imported, because the site's environment is not ours.
"""

from collections.abc import Collection, Mapping
import csv
import dataclasses
import hashlib
import io
import json
import pathlib

_HEADER = ['run', 'hash', 'seed', 'figure', 'value']
# Values by hash of the run, seed and column.
Stored = dict[tuple[str, int, str], float]


@dataclasses.dataclass(frozen=True)
class Run:
  """A command, without its seed and folder.

  Attributes:
    name: Name of its folder; unique in a campaign.
    program: Module of `binaries`.
    flags: Flags such as '--rounds=20'.
  """

  name: str
  program: str
  flags: tuple[str, ...]

  @property
  def key(self) -> str:
    """A short hash of program, flags and imported files: figures count for these."""
    imported = (flag.partition('=')[2] for flag in self.flags if '--import=' in flag)
    paths = [pathlib.Path(name) for each in imported for name in each.split(',')]
    read = [hashlib.sha256(p.read_bytes()).hexdigest() for p in paths if p.is_file()]
    text = json.dumps([self.program, *sorted(self.flags), *read])
    return hashlib.sha256(text.encode()).hexdigest()[:10]

  @property
  def task(self) -> str:
    """The task that it is trained on."""
    return dict(flag.split('=') for flag in self.flags if '--task=' in flag)['--task']

  def folder(self, base: pathlib.Path, seed: int) -> pathlib.Path:
    """Returns its run folder in the folder of all."""
    return base / f'{self.name}-{self.key}' / f'seed_{seed}'


# The columns that are stored of each run.
Columns = Mapping[Run, Collection[str]]


def read(path: pathlib.Path) -> Stored:
  """Reads a file of figures; there are none if the file does not exist.

  Args:
    path: The CSV file.

  Raises:
    ValueError: If it does not hold figures.
  """
  if not path.exists():
    return {}
  with path.open(encoding='utf-8', newline='') as file:
    rows = csv.DictReader(file)
    try:
      return {
        (row['hash'], int(row['seed']), row['figure']): float(row['value'])
        for row in rows
      }
    except (KeyError, TypeError, ValueError) as error:
      raise ValueError(
        f'Line {rows.line_num} of {path} is wrong; it must be a run, its hash, a seed, '
        'a figure and a number.'
      ) from error


def text(stored: Stored, columns: Columns) -> str:
  """Returns the text of a file of figures.

  Args:
    stored: The figures.
    columns: All runs of the campaign: other figures are left out.
  """
  lines = io.StringIO()
  writer = csv.writer(lines, lineterminator='\n')
  writer.writerow(_HEADER)
  runs = {run.key: run for run in columns}
  for (key, seed, column), value in stored.items():
    if key in runs and column in columns[runs[key]]:
      writer.writerow([runs[key].name, key, seed, column, repr(value)])
  return lines.getvalue()
