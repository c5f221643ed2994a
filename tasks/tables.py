"""Tabular data: examples with a vector of `features`, from a file or scikit-learn.

A .npz file holds `features` (numbers [n, d]), `label` (integers [n] from 0, -1: none)
and, where the split is given, `test` (bool [n]). A .csv file has a header; its column
`label` holds the class (empty: none), the column `split`, if it has one, `train` or
`test`, and all other columns are features. Without a split a fifth of every class is
the test split, the same in each run.

Features are standardised by mean and deviation of the training examples; one that is
constant there becomes 0.
"""

import csv
import os
import pathlib
import zipfile

import numpy as np

from tasks import splits
from tasks import task as task_lib

FEATURES = 'features'
BUNDLED = ('wine', 'breast_cancer')
_TEST_FRACTION = 0.2
_SPLIT_SEED = 0
_LABEL, _SPLIT = 'label', 'split'


def load_bundled(name: str) -> task_lib.Task:
  """Loads one of scikit-learn's bundled tables, without a download.

  Args:
    name: One of `BUNDLED`: 178 wines of 3 growers with 13 measurements, or 569 tumours,
      benign or malignant, with 30.
  """
  # Imported here, as it takes seconds that the other tasks need not wait for.
  from sklearn import datasets

  table = {
    'wine': datasets.load_wine,
    'breast_cancer': datasets.load_breast_cancer,
  }[name]()
  return build(name, table.data, table.target, [str(n) for n in table.target_names])


def load_file(path: str | os.PathLike[str] | None) -> task_lib.Task:
  """Loads a table of one's own.

  Args:
    path: A .npz or .csv file (see the module).

  Raises:
    ValueError: There is no such file, or what it holds is not as it must be.
  """
  if path is None:
    raise ValueError('data_dir is not given; the task features needs a .npz or .csv.')
  path = pathlib.Path(path).expanduser()
  if path.suffix not in ('.npz', '.csv') or not path.is_file():
    raise ValueError(f'data_dir is {str(path)!r}; it must be a .npz or .csv file.')
  try:
    return _read_npz(path) if path.suffix == '.npz' else _read_csv(path)
  except ValueError as error:
    if str(path) in str(error):
      raise
    raise ValueError(f'{path}: {error}') from error


def build(
  name: str,
  features: np.ndarray,
  label: np.ndarray,
  label_names: list[str],
  test: np.ndarray | None = None,
) -> task_lib.Task:
  """Makes a task of a table.

  Args:
    name: Of the task.
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
      f'The label of {name} is from {np.min(label)} to {np.max(label)}; it must be '
      f'from 0, or -1 for none, to below the number of rows, {len(label)}.'
    )
  ids = np.arange(len(features), dtype=np.int64)
  label = label.astype(np.int32)
  if test is None:
    test = splits.hold_out_cases(ids, label, _TEST_FRACTION, _SPLIT_SEED)
  test = test.astype(bool)
  known = features[~test].astype(np.float64)
  if not len(known) or len(known) == len(features):
    raise ValueError(
      f'{name} has {len(known)} training rows of {len(features)}; both splits need '
      'some.'
    )
  mean, deviation = known.mean(axis=0), known.std(axis=0)
  divisor = np.where(deviation > 0, deviation, np.inf)
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
  try:
    with np.load(path, allow_pickle=False) as arrays:
      held = {name: arrays[name] for name in arrays.files}
  except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
    raise ValueError(f'{path} cannot be read: {error}') from error
  for name in (FEATURES, _LABEL):
    if name not in held:
      raise ValueError(
        f'{path} holds {", ".join(held) or "nothing"}; it must hold {name!r}.'
      )
  label = held[_LABEL]
  # What is no label is refused below; of a number that is none there are no classes.
  most = int(np.max(label, initial=-1)) if label.dtype.kind in 'iu' else -1
  classes = range(min(most + 1, len(label)))
  return build(FEATURES, held[FEATURES], label, [*map(str, classes)], held.get('test'))


def _read_csv(path: pathlib.Path) -> task_lib.Task:
  try:
    with path.open(newline='', encoding='utf-8') as file:
      rows = list(csv.DictReader(file))
  except (UnicodeDecodeError, csv.Error) as error:
    raise ValueError(f'{path} cannot be read as CSV: {error}') from error
  if not rows or _LABEL not in rows[0]:
    raise ValueError(f'{path} must have rows, and a header with a column {_LABEL!r}.')
  columns = [name for name in rows[0] if name not in (_LABEL, _SPLIT)]
  features = np.zeros([len(rows), len(columns)])
  for place, row in enumerate(rows):
    try:
      features[place] = [float(row[name]) for name in columns]
    except (TypeError, ValueError):
      raise ValueError(
        f'Line {place + 2} of {path} has a cell that is not a number; only {_LABEL!r} '
        f'and {_SPLIT!r} may.'
      ) from None
  names = sorted({row[_LABEL] for row in rows if row[_LABEL]})
  label = np.array([names.index(r[_LABEL]) if r[_LABEL] else -1 for r in rows])
  test = None
  if _SPLIT in rows[0]:
    found = {row[_SPLIT] for row in rows}
    if not found <= {'train', 'test'}:
      raise ValueError(
        f'The column {_SPLIT!r} of {path} has {sorted(map(str, found))}; allowed are '
        'train and test.'
      )
    test = np.array([row[_SPLIT] == 'test' for row in rows])
  return build(FEATURES, features, label, names, test)
