"""The stored figures of runs: a small CSV file for each budget.

Run folders are large and stay on their machine. A row names its run by the hash of
program and flags; rows of runs that no claim has are left out.
"""

from collections.abc import Iterable
import csv
import io
import pathlib

from docs.claims import data

_HEADER = ['run', 'hash', 'seed', 'figure', 'value']
# Values by hash of the run, seed and column.
Stored = dict[tuple[str, int, str], float]


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


def text(stored: Stored, claims: Iterable[data.Claim]) -> str:
  """Returns the text of a file of figures.

  Args:
    stored: The figures.
    claims: All claims of the budget: figures that they do not need are left out.
  """
  lines = io.StringIO()
  writer = csv.writer(lines, lineterminator='\n')
  writer.writerow(_HEADER)
  needed = {run.key: (run, names) for run, names in data.columns(claims).items()}
  for (key, seed, column), value in stored.items():
    if key in needed and column in needed[key][1]:
      writer.writerow([needed[key][0].name, key, seed, column, repr(value)])
  return lines.getvalue()


def values(stored: Stored, claim: data.Claim) -> dict[str, dict[int, float]]:
  """Returns the values of a claim's figures, by title, by seed.

  Args:
    stored: The figures.
    claim: The claim.
  """
  return {
    title: {
      seed: stored[key]
      for seed in claim.seeds
      if (key := (figure.run.key, seed, figure.column)) in stored
    }
    for title, figure in claim.figures.items()
  }
