"""Tabular data: examples with a vector of `features`, from a file or scikit-learn.

A .npz file holds `features` (numbers [n, d]), optionally `label` (integers [n] from 0,
-1: none) and, if the split is given, `test` (bool [n]). A .csv file (see `csv_rows`)
has a header. If it has a column `label`, this holds the class (empty or NA: none; -1 is
a class, which is said); if it has a column `split`, this holds `train` or `test`. All
other columns are features, except an index that pandas wrote without a name; one that
probably is something else is refused (see `column_kinds`). Columns may have other names
(see `column_names`). The same holds for a .parquet file (see `parquet_rows`). Without a
split, about a fifth of the rows are the test split, by their places, so that rows added
at the end move none. Without a label, nothing is labelled.

Features are standardised by mean and deviation of the training examples; a feature that
is constant there becomes 0. They are scaled by stated numbers, or left as they are, if
`scaling` says so.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import hashlib
import math
import os
import pathlib
import re
import reprlib
from typing import Any
import zipfile

import numpy as np

from tasks import array_tasks
from tasks import column_kinds
from tasks import column_names
from tasks import column_scaling
from tasks import csv_rows
from tasks import intake
from tasks import layouts
from tasks import manifest
from tasks import parquet_rows
from tasks import splits
from tasks import task_types
from tff_ssl.storage import archives
from tff_ssl.storage import files
from tff_ssl.storage import memory

FEATURES = 'features'
BUNDLED = ('wine', 'breast_cancer')
_TEST_FRACTION = 0.2
_SPLIT_SEED = 0
_LABEL, _SPLIT = column_names.LABEL, column_names.SPLIT
_KNOWN = (_LABEL, _SPLIT)
# The array of a .npz that says which rows are the test split.
_TEST = 'test'
# Of so many rows, not each is a class of its own: such labels are measurements.
_MANY = 20
# Bytes of copies that are made of a number.
_COPIES = 24
# Columns that pandas makes of an index without a name: in CSV, in CSV that was read
# and written again, and in Parquet.
_INDEX = re.compile(r'|Unnamed: \d+|__index_level_\d+__')


def load_bundled(name: str, scaling: str | None = None) -> task_types.Task:
  """Loads one of scikit-learn's bundled tables, without a download.

  Args:
    name: One of `BUNDLED`: 178 wines of 3 growers with 13 measurements, or 569 tumours,
      benign or malignant, with 30.
    scaling: See `load_file`.
  """
  # Imported here: it takes seconds, for which the other tasks need not wait.
  from sklearn import datasets

  table = {
    'wine': datasets.load_wine,
    'breast_cancer': datasets.load_breast_cancer,
  }[name]()
  return build(
    name,
    table.data,
    table.target,
    [str(n) for n in table.target_names],
    columns=list(map(str, table.feature_names)),
    scaling=scaling,
  )


def load_file(
  data_dir: str | os.PathLike[str] | None,
  columns: Mapping[str, str] | None = None,
  scaling: str | None = None,
) -> task_types.Task:
  """Loads a user's own table.

  Args:
    data_dir: A .npz, .csv or .parquet file (see the module).
    columns: The table's own names of its columns label and split; see
      `column_names.parse`.
    scaling: File of a stated scaling (see `column_scaling`), or 'none': features stay
      as they are; None: they are standardised by the training examples.

  Raises:
    ValueError: There is no such file, or its content is not as it must be.
  """
  table = _found(data_dir)
  allowed = (*_KNOWN, *column_names.SEVERAL)
  for column in {*(columns or ())}.difference(allowed):
    raise ValueError(f'columns has {column!r}; a table has only {", ".join(allowed)}.')
  suffix = table.suffix.lower()
  if columns and suffix == '.npz':
    raise ValueError(f'columns is given with {table}; the arrays of a .npz have names.')
  try:
    if suffix == '.npz':
      return _read_npz(table, scaling)
    read = _read_csv if suffix == '.csv' else parquet_rows.read
    cells, lines = read(table)
    return _of_columns(table, cells, lines, columns, scaling)
  except ValueError as error:
    if str(table) in str(error) or (scaling and scaling in str(error)):
      raise
    raise ValueError(f'{table}: {error}') from error


def _found(path: str | os.PathLike[str] | None) -> pathlib.Path:
  if path is None:
    raise ValueError(
      'data_dir is not given; the task features needs a .npz, .csv or .parquet file.'
    )
  table = pathlib.Path(path).expanduser()
  if table.suffix.lower() not in ('.npz', '.csv', '.parquet') or not table.is_file():
    raise ValueError(
      f'data_dir is {str(table)!r}; it must be a .npz, .csv or .parquet file.'
    )
  return table


def has_label(
  path: str | os.PathLike[str] | None, own: Mapping[str, str] | None = None
) -> bool:
  """Returns whether a table has labels; reads no row.

  Args:
    path: As in `load_file`.
    own: Likewise.

  Raises:
    ValueError: As in `load_file`, as far as it shows without reading rows.
  """
  table = _found(path)
  suffix = table.suffix.lower()
  if suffix == '.npz':
    with _npz(table) as arrays:
      return _LABEL in arrays.headers
  if suffix == '.csv':
    header = csv_rows.header(str(table), memory.read_csv(table))
  else:
    header = parquet_rows.header(table)
  return _LABEL in column_names.match(str(table), header, own, _KNOWN).named


@contextlib.contextmanager
def _npz(path: pathlib.Path) -> Iterator[archives.Arrays]:
  """Opens a .npz file; raises a ValueError with its path if it is damaged."""
  try:
    if not zipfile.is_zipfile(path):
      raise ValueError('it holds a single array, or is not a .npz file')
    with archives.open_arrays(path, stored=False) as arrays:
      names = arrays.headers.keys()
      if FEATURES not in names or names - {FEATURES, _LABEL, _TEST}:
        raise ValueError(
          f'it holds {intake.some(names) or "nothing"}; it must hold {FEATURES!r}, and '
          f'may hold {_LABEL!r} and {_TEST!r}'
        )
      yield arrays
  except files.NPZ_ERRORS as error:
    raise ValueError(f'{path} cannot be read: {error}') from error


def build(
  name: str,
  features: np.ndarray,
  label: np.ndarray,
  label_names: list[str],
  test: np.ndarray | None = None,
  report: tuple[str, ...] = (),
  columns: Sequence[str] | None = None,
  scaling: str | None = None,
) -> task_types.Task:
  """Makes a task of a table.

  Args:
    name: Name of the task.
    features: Numbers [n, d].
    label: Integers [n], -1 for none.
    label_names: Names of the classes.
    test: bool [n], which rows are the test split; None: a fifth of every class, or of a
      user's own table about a fifth, by place.
    report: What must be said of it.
    columns: Names of the d features; by default their numbers from 0.
    scaling: See `load_file`.

  Raises:
    ValueError: The features are not finite numbers [n, d], lengths differ, or the
      scaling does not fit.
  """
  features, label = np.asarray(features), np.asarray(label)
  if features.ndim != 2 or features.dtype.kind not in 'fiub' or not features.size:
    raise ValueError(
      f'The features of {name} are {features.dtype} of shape {features.shape}; they '
      'must be numbers [n, d].'
    )
  if not np.all(np.isfinite(features)):
    row, column = np.argwhere(~np.isfinite(features))[0]
    raise ValueError(
      f'The features of {name} are not all finite: row {row}, column {column}, counted '
      f'from 0, has {features[row, column]}.'
    )
  for what, array in ((_LABEL, label), (_TEST, test)):
    if array is not None and array.shape != features.shape[:1]:
      raise ValueError(
        f'The {what} of {name} has shape {array.shape}; it must have one for each of '
        f'the {len(features)} rows.'
      )
  grows, split_is_given = name == FEATURES, test is not None
  if test is None and grows:
    places = [str(place) for place in range(len(features))]
    test = splits.hold_out_named(places, _TEST_FRACTION, _SPLIT_SEED, 'rows')
  elif test is None:
    rows = np.arange(len(features))
    test = splits.hold_out_cases(rows, label, _TEST_FRACTION, _SPLIT_SEED, 'rows')
  test = test.astype(bool)
  known = features[~test].astype(np.float64)
  if not len(known) or len(known) == len(features):
    raise ValueError(
      f'{name} has {len(known)} training rows of {len(features)}; both splits need '
      'some.'
    )
  if columns is None:
    columns = list(map(str, range(features.shape[1])))
  scaled, used = column_scaling.scale(name, features, known, columns, scaling)
  if grows:
    report = (_ranges(columns, features, bool(label_names)), *report)
  return array_tasks.split_task(
    name,
    label_names,
    array_tasks.numbered({FEATURES: scaled}, label),
    test,
    report=report,
    scaling=used,
    measured=(column_scaling.MEASURED,) if scaling is None else (),
    digests=_digests(features) if grows else (),
    grows=grows,
    split_by_name=grows and not split_is_given,
  )


def _ranges(columns: Sequence[str], features: np.ndarray, has_label: bool) -> str:
  """Returns the line that says which columns are features, with their numbers."""
  ends = zip(columns, features.min(axis=0), features.max(axis=0), strict=True)
  shown = [f'{name} ({low:.4g} to {high:.4g})' for name, low, high in ends]
  none = '' if has_label else '; no column is the label'
  count = intake.many(len(shown), 'column')
  return f'features: {count}: {intake.some(shown, intake.COLUMNS_SHOWN)}{none}'


def _digests(features: np.ndarray) -> tuple[str, ...]:
  """Returns a digest of each row as it is in the file, before it is standardised."""
  rows = np.ascontiguousarray(features, np.float64)
  return tuple(hashlib.blake2b(row.data, digest_size=8).hexdigest() for row in rows)


def _read_npz(path: pathlib.Path, scaling: str | None) -> task_types.Task:
  with _npz(path) as arrays:
    # Compressed ones may be larger than any file. They are also needed as float64, and
    # standardised.
    needed = sum(
      header.num_bytes + _COPIES * math.prod(header.shape)
      for header in arrays.headers.values()
    )
    memory.check(needed, str(path))
    held = {name: arrays.read(name) for name in arrays.headers}
  label = held.get(_LABEL, np.full(np.shape(held[FEATURES])[:1], -1))
  if label.dtype.kind not in 'iu':
    raise ValueError(f'The label of {path} is {label.dtype}; it must be integers.')
  classes, places = np.unique(label, return_inverse=True)
  if classes.size and not -1 <= classes[0] <= classes[-1] < 2**31:
    raise ValueError(
      f'The label of {path} ranges from {classes[0]} to {classes[-1]}; it must be at '
      'least 0 (or -1 for no label) and below 2^31.'
    )
  # Each number that there is, as 7 and 40, is a class; -1 is none.
  bare = int(-1 in classes)
  names, label = [*map(str, classes[bare:])], places.reshape(label.shape) - bare
  count = int(np.sum(label < 0)) if _LABEL in held else 0
  said = (f'{count:,} rows have the label -1, which is none',) * bool(count)
  test = held.get(_TEST)
  if test is not None and not (
    test.dtype.kind in 'biuf' and np.all(np.isin(test, (0, 1)))
  ):
    raise ValueError(
      f'The {_TEST} of {path} is {test.dtype} and has '
      f'{intake.some(np.unique(test).tolist())}; it must be bool, or 0 and 1.'
    )
  return build(FEATURES, held[FEATURES], label, names, test, said, scaling=scaling)


def _read_csv(path: pathlib.Path) -> tuple[dict[str, list[Any]], Sequence[int]]:
  """Returns the cells by column, and the number of each row's line."""
  columns, rows = csv_rows.read(str(path), memory.read_csv(path))
  if not rows:
    raise ValueError(f'{path} has 0 rows; it must have a header and rows.')
  cells = {name: [row.cells[name] for row in rows] for name in columns}
  return cells, [row.line for row in rows]


def _of_columns(
  path: pathlib.Path,
  columns: Mapping[str, Sequence[Any]],
  lines: Sequence[int],
  own: Mapping[str, str] | None,
  scaling: str | None,
) -> task_types.Task:
  """Makes a task of columns by name.

  Args:
    path: The file that they are from.
    columns: Cells of features are numbers or their text.
    lines: The number of each row, for errors.
    own: See `load_file`.
    scaling: See `load_file`.
  """
  known = column_names.match(str(path), [*columns], own, _KNOWN).named
  count = len(lines)
  unused = column_names.several(own, column_names.UNUSED)
  others = [name for name in columns if name not in {*known.values(), *unused}]
  indices = [name for name in others if _INDEX.fullmatch(name)]
  cells = {name: columns[name] for name in others if name not in indices}
  numbers = {n: np.array([*map(csv_rows.number, own)]) for n, own in cells.items()}
  labels = columns[known[_LABEL]] if _LABEL in known else ()
  column_kinds.check(str(path), cells, numbers, {*known, *(own or {})}, own, labels)
  for name, its in numbers.items():
    _check_finite(path, name, cells[name], its, lines)
  features = np.stack([*numbers.values()], axis=1) if numbers else np.zeros([count, 0])
  findings: list[intake.Finding] = []
  if left := [*unused, *map(repr, indices)]:
    findings.append(intake.finding('unused columns', left, 'not used as features'))
  label, names, test = np.full(count, -1), list[str](), None
  if _LABEL in known:
    written = _texts(columns[known[_LABEL]])
    classes, said = manifest.spelled(str(path), _LABEL, written)
    findings += said
    names = sorted({name for name in classes if name})
    number_of = {name: number for number, name in enumerate(names)} | {'': -1}
    label = np.array([number_of[name] for name in classes])
    if count > _MANY and 2 * len(names) > count:
      warning = (
        f'warning: {len(names):,} labels in {count:,} rows, each of them a class'
      )
      findings.append(intake.finding('labels', names, warning, costs=True))
  if _SPLIT in known:
    test, said = _splits(path, known[_SPLIT], _texts(columns[known[_SPLIT]]))
    findings += said
  report = tuple(finding.sentence for finding in findings)
  return build(FEATURES, features, label, names, test, report, [*numbers], scaling)


def _check_finite(
  path: pathlib.Path,
  name: str,
  cells: Sequence[Any],
  numbers: np.ndarray,
  lines: Sequence[int],
) -> None:
  """Raises ValueError if a cell of a column of features is no finite number."""
  for place in np.flatnonzero(~np.isfinite(numbers))[:1]:
    point = ' with a decimal point' * csv_rows.has_decimal_comma(cells[place])
    flag = column_names.flag([(column_names.UNUSED, name)])
    raise ValueError(
      f'Line {lines[place]} of {path} has {reprlib.repr(cells[place])} in the column '
      f'{name!r}; it must be a finite number{point}: only {_LABEL!r} and {_SPLIT!r} '
      f'may be texts; {flag} leaves the column out.'
    )


def _texts(cells: Sequence[Any]) -> list[str]:
  return ['' if cell is None else str(cell) for cell in cells]


def _splits(
  path: pathlib.Path, name: str, cells: Sequence[str]
) -> tuple[np.ndarray, list[intake.Finding]]:
  """Returns which rows are the test split, bool [n], and what must be said of it."""
  split_of, findings = column_kinds.splits(name, cells)
  wrong = {c for c in cells if split_of.get(c) not in (layouts.TRAIN, layouts.TEST)}
  if wrong:
    raise ValueError(
      f'The column {name!r} of {path} has {intake.some(map(repr, sorted(wrong)))}; '
      'it must have train and test.'
    )
  return np.array([split_of[cell] == layouts.TEST for cell in cells]), findings
