"""Tabular data: examples with a vector of `features`, from a file or scikit-learn.

A .npz file holds `features` (numbers [n, d]), optionally `label` (integers [n] from 0,
-1: none) and, if the split is given, `test` (bool [n]). A .csv file has a header. If it
has a column `label`, this holds the class (empty: none); if it has a column `split`,
this holds `train` or `test`. All other columns are features, except an index that
pandas wrote without a name. The same holds for a .parquet file. Without a split, a
fifth of every class is the test split, the same in each run. Without a label, nothing
is labelled.

Features are standardised by mean and deviation of the training examples; a feature that
is constant there becomes 0.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import math
import os
import pathlib
import re
from typing import Any
import zipfile

from absl import logging
import numpy as np

from tasks import rows as rows_lib
from tasks import splits
from tasks import task as task_lib
from tff_ssl.runtime import archives
from tff_ssl.runtime import files
from tff_ssl.runtime import memory

FEATURES = 'features'
BUNDLED = ('wine', 'breast_cancer')
_TEST_FRACTION = 0.2
_SPLIT_SEED = 0
_LABEL, _SPLIT = 'label', 'split'
# Bytes of copies that are made of a number, and of a cell of Parquet as an object.
_COPIES, _A_CELL = 24, 64
# Columns that pandas makes of an index without a name: in CSV, in CSV that was read
# and written again, and in Parquet.
_INDEX = re.compile(r'|Unnamed: \d+|__index_level_\d+__')


def load_bundled(name: str) -> task_lib.Task:
  """Loads one of scikit-learn's bundled tables, without a download.

  Args:
    name: One of `BUNDLED`: 178 wines of 3 growers with 13 measurements, or 569 tumours,
      benign or malignant, with 30.
  """
  # Imported here: it takes seconds, for which the other tasks need not wait.
  from sklearn import datasets

  table = {
    'wine': datasets.load_wine,
    'breast_cancer': datasets.load_breast_cancer,
  }[name]()
  return build(name, table.data, table.target, [str(n) for n in table.target_names])


def load_file(path: str | os.PathLike[str] | None) -> task_lib.Task:
  """Loads a user's own table.

  Args:
    path: A .npz, .csv or .parquet file (see the module).

  Raises:
    ValueError: There is no such file, or its content is not as it must be.
  """
  table = _found(path)
  readers = {'.npz': _read_npz, '.csv': _read_csv, '.parquet': _read_parquet}
  try:
    return readers[table.suffix](table)
  except ValueError as error:
    if str(table) in str(error):
      raise
    raise ValueError(f'{table}: {error}') from error


def _found(path: str | os.PathLike[str] | None) -> pathlib.Path:
  if path is None:
    raise ValueError(
      'data_dir is not given; the task features needs a .npz, .csv or .parquet file.'
    )
  table = pathlib.Path(path).expanduser()
  if table.suffix not in ('.npz', '.csv', '.parquet') or not table.is_file():
    raise ValueError(
      f'data_dir is {str(table)!r}; it must be a .npz, .csv or .parquet file.'
    )
  return table


def has_label(path: str | os.PathLike[str] | None) -> bool:
  """Returns whether a table has labels; reads no row.

  Args:
    path: As in `load_file`.

  Raises:
    ValueError: As in `load_file`, as far as it shows without reading rows.
  """
  table = _found(path)
  if table.suffix == '.csv':
    return _LABEL in rows_lib.header(str(table), memory.read_csv(table))
  if table.suffix == '.npz':
    with _npz(table) as arrays:
      return _LABEL in arrays.headers
  try:
    return _LABEL in _parquet_columns(table)
  except (ValueError, OSError) as error:
    raise ValueError(f'{table} cannot be read: {error}') from error


@contextlib.contextmanager
def _npz(path: pathlib.Path) -> Iterator[archives.Arrays]:
  """Opens a .npz file; raises a ValueError with its path if it is damaged."""
  try:
    if not zipfile.is_zipfile(path):
      raise ValueError('it holds a single array, or is not a .npz file')
    with archives.open_arrays(path, stored=False) as arrays:
      yield arrays
  except files.NPZ_ERRORS as error:
    raise ValueError(f'{path} cannot be read: {error}') from error


def _parquet_columns(path: pathlib.Path) -> list[str]:
  # Imported here: only such a file needs it.
  import pyarrow as pa
  from pyarrow import parquet

  try:
    return list(parquet.read_schema(path).names)
  except pa.ArrowException as error:
    raise ValueError(str(error)) from error


def build(
  name: str,
  features: np.ndarray,
  label: np.ndarray,
  label_names: list[str],
  test: np.ndarray | None = None,
) -> task_lib.Task:
  """Makes a task of a table.

  Args:
    name: Name of the task.
    features: Numbers [n, d].
    label: Integers [n], -1 for none.
    label_names: Names of the classes.
    test: bool [n], which rows are the test split; None: a fifth of every class.

  Raises:
    ValueError: The features are not finite numbers [n, d], or lengths differ.
  """
  features, label = np.asarray(features), np.asarray(label)
  if features.ndim != 2 or features.dtype.kind not in 'fiub' or not features.size:
    raise ValueError(
      f'The features of {name} are {features.dtype} of shape {features.shape}; they '
      'must be numbers [n, d].'
    )
  if not np.all(np.isfinite(features)):
    raise ValueError(f'The features of {name} are not all finite.')
  for what, array in ((_LABEL, label), ('test', test)):
    if array is not None and array.shape != features.shape[:1]:
      raise ValueError(
        f'The {what} of {name} has shape {array.shape}; it must have one for each of '
        f'the {len(features)} rows.'
      )
  if label.dtype.kind not in 'iu':
    raise ValueError(f'The label of {name} is {label.dtype}; it must be integers.')
  if np.max(label) >= len(label) or np.min(label) < -1:
    raise ValueError(
      f'The label of {name} ranges from {np.min(label)} to {np.max(label)}; it must '
      'be at least 0 (or -1 for no label) and below the number of rows, '
      f'{len(label)}.'
    )
  ids = np.arange(len(features), dtype=np.int64)
  label = label.astype(np.int32)
  if test is None:
    test = splits.hold_out_cases(ids, label, _TEST_FRACTION, _SPLIT_SEED, 'rows')
  test = test.astype(bool)
  known = features[~test].astype(np.float64)
  if not len(known) or len(known) == len(features):
    raise ValueError(
      f'{name} has {len(known)} training rows of {len(features)}; both splits need '
      'some.'
    )
  mean, deviation = known.mean(axis=0), known.std(axis=0)
  # By its range: the mean of equal numbers is rounded, so that their deviation may
  # be above 0.
  divisor = np.where(np.ptp(known, axis=0) > 0, deviation, np.inf)
  scaled = (features - mean) / divisor
  examples = task_lib.Examples(
    {FEATURES: scaled.astype(np.float32)}, label, ids, case=ids
  )
  return task_lib.Task(
    name=name,
    label_names=tuple(label_names),
    train=examples.take(np.flatnonzero(~test)),
    test=examples.take(np.flatnonzero(test)),
    scaling=(mean, 1 / divisor),
  )


def _read_npz(path: pathlib.Path) -> task_lib.Task:
  with _npz(path) as arrays:
    # Compressed ones may be larger than any file. They are also taken as float64, and
    # standardised.
    taken = sum(
      header.num_bytes + _COPIES * math.prod(header.shape)
      for header in arrays.headers.values()
    )
    memory.check(taken, str(path))
    held = {name: arrays.read(name) for name in arrays.headers}
  if FEATURES not in held:
    raise ValueError(
      f'{path} holds {", ".join(held) or "nothing"}; it must hold {FEATURES!r}.'
    )
  label = held.get(_LABEL)
  if label is None:
    label = np.full(np.shape(held[FEATURES])[:1], -1)
  # `build` rejects labels of a wrong type or range; no names are made for these.
  most = int(np.max(label, initial=-1)) if label.dtype.kind in 'iu' else -1
  classes = range(min(most + 1, len(label)))
  return build(FEATURES, held[FEATURES], label, [*map(str, classes)], held.get('test'))


def _read_csv(path: pathlib.Path) -> task_lib.Task:
  columns, rows = rows_lib.read(str(path), memory.read_csv(path))
  if not rows:
    raise ValueError(f'{path} must have a header and rows.')
  by_name = {name: [row.cells[name] for row in rows] for name in columns}
  return _of_columns(path, by_name, [row.line for row in rows])


def _read_parquet(path: pathlib.Path) -> task_lib.Task:
  # Imported here: only this needs it.
  import pyarrow as pa
  from pyarrow import parquet

  try:
    held = parquet.read_metadata(path)
    packed = [held.row_group(k).total_byte_size for k in range(held.num_row_groups)]
    cells = held.num_rows * held.num_columns
    memory.check(2 * sum(packed) + _A_CELL * cells, str(path))
    columns = parquet.read_table(path).to_pydict()
  except (pa.ArrowException, OSError) as error:
    raise ValueError(f'{path} cannot be read as Parquet: {error}') from error
  if not columns or not any(columns.values()):
    raise ValueError(f'{path} must have columns and rows.')
  for name in (_LABEL, _SPLIT):
    if name in columns:
      columns[name] = ['' if cell is None else str(cell) for cell in columns[name]]
  count = len(next(iter(columns.values())))
  return _of_columns(path, columns, range(1, count + 1))


def _of_columns(
  path: pathlib.Path, columns: Mapping[str, Sequence[Any]], lines: Sequence[int]
) -> task_lib.Task:
  """Makes a task of columns by name.

  Args:
    path: The file that they are from.
    columns: Cells of label and split as text; other cells as numbers or their text.
    lines: The number of each row, for errors.
  """
  count = len(lines)
  others = [name for name in columns if name not in (_LABEL, _SPLIT)]
  indices = [name for name in others if _INDEX.fullmatch(name)]
  if indices:
    others = [name for name in others if name not in indices]
    logging.warning(
      '%s: the column %r has no name, like an index that pandas writes; it is not '
      'used as a feature.',
      path,
      indices[0],
    )
  features = np.zeros([count, len(others)])
  for place in range(count):
    try:
      features[place] = [float(columns[name][place]) for name in others]
    except (TypeError, ValueError):
      raise ValueError(
        f'Line {lines[place]} of {path} has a cell that is not a number; only '
        f'{_LABEL!r} and {_SPLIT!r} may.'
      ) from None
  classes = columns.get(_LABEL, [''] * count)
  names = sorted({name for name in classes if name})
  numbers = {name: number for number, name in enumerate(names)}
  label = np.array([numbers.get(name, -1) for name in classes])
  test = None
  if _SPLIT in columns:
    found = set(columns[_SPLIT])
    if not found <= {'train', 'test'}:
      raise ValueError(
        f'The column {_SPLIT!r} of {path} has {sorted(map(str, found))}; allowed are '
        'train and test.'
      )
    test = np.array([split == 'test' for split in columns[_SPLIT]])
  return build(FEATURES, features, label, names, test)
