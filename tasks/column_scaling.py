"""How the columns of a table are scaled: measured on the training rows, or stated.

A stated scaling is a CSV file with a row for each column of features: its name in
`column` (its number from 0 if the table names none), and the numbers `center` and
`scale`. A feature x becomes (x - center) / scale.
"""

from collections.abc import Sequence
import math
import os
import pathlib

import numpy as np

from tasks import csv_rows
from tasks import intake
from tasks import provenance

# In the place of a file: columns are taken as they are.
NONE = 'none'
MEASURED = provenance.Measured(
  'the mean and deviation of each column',
  '--data=scaling=FILE (a CSV of column,center,scale, known without these rows) or '
  '--data=scaling=none',
)
_HEADER = ('column', 'center', 'scale')


def measured(
  name: str, rows: np.ndarray, columns: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the mean and the deviation of each column.

  Args:
    name: Name of the task, for errors.
    rows: float64 [n, d], n >= 1. The deviation of a constant column is infinite, so
      that the column becomes 0.
    columns: Names of the d columns.

  Raises:
    ValueError: The mean or the deviation of a column is beyond float64.
  """
  with np.errstate(over='ignore', invalid='ignore'):
    # By its range: the mean of equal numbers is rounded, so that their deviation may
    # be above 0.
    varies = np.ptp(rows, axis=0) > 0
    center, deviation = rows.mean(axis=0), rows.std(axis=0)
  is_known = np.isfinite(center) & (np.isfinite(deviation) & (deviation > 0) | ~varies)
  if not np.all(is_known):
    column = int(np.argmin(is_known))
    least, most = np.min(rows[:, column]), np.max(rows[:, column])
    raise ValueError(
      f'The column {columns[column]!r} of {name} has numbers from {least:.3g} to '
      f'{most:.3g}, too large or too alike to be standardised; use {MEASURED.instead}.'
    )
  return center, np.where(varies, deviation, np.inf)


def stated(
  path: str | os.PathLike[str], columns: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the center and the scale of each column, from a file.

  Args:
    path: The file.
    columns: Names of the columns of features, in order.

  Raises:
    ValueError: The file is missing or not as it must be, lacks a column, or has one
      that the table has not.
  """
  file = pathlib.Path(path)
  if not file.is_file():
    raise ValueError(f'scaling is {str(path)!r}; it must be a CSV file, or {NONE}.')
  header, rows = csv_rows.read(str(file), file.read_bytes())
  if sorted(header) != sorted(_HEADER):
    raise ValueError(
      f'{file} has the columns {intake.some(header)}; it must have '
      f'{", ".join(_HEADER)}.'
    )
  numbers = {row.cells['column']: _numbers(file, row) for row in rows}
  if len(numbers) < len(rows):
    raise ValueError(f'{file} has a column twice; each must have one row.')
  if others := numbers.keys() ^ set(columns):
    name = min(others)
    fault = 'lacks' if name in columns else 'has'
    raise ValueError(
      f'{file} {fault} the column {name!r}; it must have a row for each column of '
      f'features and no other: {intake.some(columns, intake.COLUMNS_SHOWN)}.'
    )
  center, scale = np.array([numbers[name] for name in columns]).T
  return center, scale


def scale(
  name: str,
  features: np.ndarray,
  known: np.ndarray,
  columns: Sequence[str],
  scaling: str | None,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
  """Returns the scaled features, float32, and `Task.scaling`.

  Args:
    name: Name of the task, for errors.
    features: [n, d], of all rows.
    known: float64 [m, d], of the training rows.
    columns: Names of the d features.
    scaling: The file, or `NONE`; None: measured on the training rows.

  Raises:
    ValueError: As in `measured` and `stated`, or scaled features are beyond float32.
  """
  scaled, used = features, None
  if scaling != NONE:
    center, divisor = (
      measured(name, known, columns) if scaling is None else stated(scaling, columns)
    )
    scaled, used = (features - center) / divisor, (center, 1 / divisor)
  with np.errstate(over='ignore'):
    inputs = scaled.astype(np.float32)
  if not np.all(np.isfinite(inputs)):
    raise ValueError(
      f'The features of {name} reach {np.max(np.abs(scaled)):.3g} with the scaling '
      f'{scaling}; they must stay within {np.finfo(np.float32).max:.3g}.'
    )
  return inputs, used


def _numbers(file: pathlib.Path, row: csv_rows.Row) -> tuple[float, float]:
  """Returns the center and the scale of a row."""
  center, scale = (csv_rows.number(row.cells[name]) for name in ('center', 'scale'))
  if not (math.isfinite(center) and 0 < scale < math.inf):
    raise ValueError(
      f'Line {row.line} of {file} has the center {row.cells["center"]!r} and the scale '
      f'{row.cells["scale"]!r}; they must be numbers, and the scale above 0.'
    )
  return center, scale
