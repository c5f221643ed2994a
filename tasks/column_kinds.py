"""What columns without a known name probably are, by their names and their cells.

Nothing is taken for it: tables and lists of images are refused with the `--columns=`
that says so.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tasks import column_names
from tasks import csv_rows
from tasks import images
from tasks import intake
from tasks import layouts
from tasks import spellings

# Words in the name of a column of classes, if it has few values.
_CLASSES = (
  'label class target outcome response y output quality diagnosis species disease '
  'survived survival stroke fraud churn churned exited attrition default event death '
  'died mortality income readmitted subscribed converted purchased spam approved '
  'dropout failure fault defect anomaly attack'
)
_ROWS = 'index idx row rowid rownumber rownum uuid guid'
_SPLITS = 'split splits partition subset fold folds kfold set'
# What may be beside a split in the name of a column: is_test, in_train, test_set.
_BESIDE = 'is in for use image images set data flag sample example row'
_TRUTH = {'1': True, 'true': True, 'yes': True, '0': False, 'false': False, 'no': False}
# As in CelebA's partition.
_NUMBERED = dict(zip('012', layouts.SPLITS, strict=True))
IMAGE, LABEL, SPLIT = column_names.IMAGE, column_names.LABEL, column_names.SPLIT
_HOLDERS = (column_names.CLIENT, column_names.CASE)
# What a column probably is, in words.
_LABEL, _SPLIT, _TEXTS = 'the label', 'a split', 'texts'
# Of a column of classes: the most values, and the fewest rows for each. With fewer rows
# than the last number, cells say nothing.
_MOST, _ROWS_EACH, _FEWEST = 10, 5, 10


def says_split(name: str, cells: Collection[Any]) -> bool:
  """Returns whether a column probably gives the split of each row.

  Args:
    name: Its name.
    cells: Its cells.
  """
  values = {_text(cell) for cell in {*cells}} - {''}
  if not 1 < len(values) <= _MOST:
    return False
  is_flag = _flag(name) is not None and {v.casefold() for v in values} <= _TRUTH.keys()
  is_named = bool({*_words(name)[-1:]} & {*_SPLITS.split()})
  return is_flag or is_named or len({*map(_role, values)} - {None}) > 1


def splits(
  name: str, cells: Collection[Any]
) -> tuple[dict[Any, str], list[intake.Finding]]:
  """Returns the split of each cell that gives one, and what must be said of it.

  A cell is a word for a split or has one, as `PublicTest` has; or 0 or 1 in a column
  such as `is_test`; or the cells of the column are 0, 1 and 2.

  Args:
    name: Name of the column.
    cells: Its cells.
  """
  texts = {cell: _text(cell) for cell in {*cells}}
  flag = _flag(name)
  split_of = {text: _role(text) for text in texts.values()}
  if flag and {text.casefold() for text in split_of} <= _TRUTH.keys():
    other = layouts.TEST if flag == layouts.TRAIN else layouts.TRAIN
    split_of = {t: flag if _TRUTH[t.casefold()] else other for t in split_of}
  elif split_of.keys() == _NUMBERED.keys():
    split_of = {**_NUMBERED}
  # A word for a split is shown as it is written.
  words = {t: t if layouts.role(t) else own for t, own in split_of.items() if own}
  found, findings = layouts.roles(sorted({*words.values()}))
  taken = [f'{t} = {found[own]}' for t, own in sorted(words.items()) if t != own]
  if taken:
    findings = [*findings, intake.finding('splits', taken, 'taken for splits')]
  return {c: found[words[t]] for c, t in texts.items() if t in words}, findings


def _words(name: str) -> list[str]:
  return [word for word in spellings.words(name) if not word.isdecimal()]


def _text(cell: Any) -> str:
  """Returns a cell as text, a whole number without decimals; '' for no value."""
  text = spellings.clean(str(cell).removesuffix('.0'))
  return '' if text in spellings.MISSING else text


def _role(text: str) -> str | None:
  """Returns the split that a text is, or the only one among its words."""
  if whole := layouts.role(text):
    return whole
  roles = {*map(layouts.role, _words(text))} - {None}
  return roles.pop() if len(roles) == 1 else None


def _flag(name: str) -> str | None:
  """Returns the split of the rows that a column such as `is_train` marks."""
  words = [w for w in _words(name) if w not in _BESIDE.split()]
  return layouts.role(words[0].removeprefix('is')) if len(words) == 1 else None


def check(
  path: str,
  columns: Mapping[str, Sequence[Any]],
  numbers: Mapping[str, np.ndarray],
  known: Collection[str],
  own: Mapping[str, str] | None,
  labels: Sequence[Any] = (),
) -> None:
  """Refuses a table of which some features are probably something else.

  Args:
    path: The table.
    columns: The cells of each column that would be a feature, in order.
    numbers: The number that each cell is, NaN for none.
    known: The columns that it has, or that the user says it has not: label, split.
    own: The user's names of columns; see `column_names.parse`.
    labels: The cells of the label, if it has any.

  Raises:
    ValueError: A column is probably the label, a split, an id or a client, or has
      texts; it names all of these.
  """
  kinds = {}
  for name in columns.keys() - {*column_names.several(own, column_names.FEATURE)}:
    kinds[name] = _kind(name, columns[name], numbers[name])
    if _follows(columns[name], labels):
      kinds[name] = 'it follows from the label'
    if kinds[name] == _SPLIT and SPLIT in (own or {}):
      del kinds[name]
  if LABEL not in known:
    perhaps = [name for name in columns if kinds.get(name) in ('', _TEXTS)]
    if label := _label(perhaps, columns, numbers):
      kinds[label] = _LABEL
  asked = [name for name in columns if kinds.get(name)]
  if not asked:
    return
  pairs = []
  for name in asked:
    role = LABEL if kinds[name] == _LABEL else column_names.UNUSED
    if kinds[name] == _SPLIT and SPLIT not in known:
      given = splits(name, columns[name])[0]
      is_whole = given.keys() == {*columns[name]}
      role = SPLIT if is_whole and layouts.VALIDATION not in given.values() else role
    pairs.append((role, name))
  most = intake.COLUMNS_SHOWN
  shown = intake.some((f'{name!r} ({kinds[name]})' for name in asked), most)
  flag = column_names.flag(pairs[:most])
  none = ', label= that none is the label' * (LABEL in dict(pairs))
  raise ValueError(
    f'{path} has columns that are probably no features: {shown}; {flag} says what is '
    f'what; in it feature=NAME says that a column is a feature{none}.'
  )


def check_list(
  name: str,
  header: Sequence[str],
  rows: Sequence[csv_rows.Row],
  matched: column_names.Columns,
  own: Mapping[str, str],
) -> None:
  """Refuses a list of images if known columns are missing that are probably there.

  Args:
    name: The list.
    header: Its columns.
    rows: Its rows.
    matched: The columns that it has.
    own: The user's names of columns; an empty one is none, and is not missing.

  Raises:
    ValueError: Columns are missing, among them the image, or whose it is; it names all
      of these.
  """
  if column_names.FEATURE in own:
    raise ValueError(f'columns has feature with {name}; only a table has features.')
  if any(map(_is_picture, header)):
    raise ValueError(
      f'{name} has an image in its first line, {intake.some(header)}; the first line '
      'must be the names of columns, such as image,client_id,label.'
    )
  named, likely = {*matched.named, *own}, {**matched.likely}
  aside = column_names.several(own, column_names.UNUSED)
  cells = {c: [r.cells[c] for r in rows] for c in matched.unused if c not in aside}
  if IMAGE not in {*matched.named, *likely}:
    of_files = (c for c, its in cells.items() if all(map(_is_picture, its)))
    likely = {IMAGE: next(of_files, 'NAME'), **likely}
  of_splits = [c for c, its in cells.items() if says_split(c, its)]
  if SPLIT not in {*named, *likely} and of_splits:
    likely[SPLIT] = of_splits[0]
  missing, pairs = [*likely], [*likely.items()]
  there = f'it has {intake.some(header, intake.COLUMNS_SHOWN) or "none"}'
  if {*named, *likely}.isdisjoint(_HOLDERS):
    missing.append(' or '.join(_HOLDERS))
    pairs.append((_HOLDERS[0], ''))
  others = {c: its for c, its in cells.items() if c not in likely.values()}
  if LABEL not in {*named, *likely} and (hot := _one_hot(others)):
    missing.append(LABEL)
    pairs.append((LABEL, ''))
    there += f', with 0 or 1 in {intake.some(hot)}: a column {LABEL} must name the one'
  if missing:
    raise ValueError(
      f'{name} has no column {", ".join(missing)}; {there}; {column_names.flag(pairs)} '
      'says what is what, and an empty name, such as label=, that there is none '
      '(without client_id and case_id, each image is by itself).'
    )


def _is_picture(name: str) -> bool:
  return name.lower().endswith(images.SUFFIXES)


def _one_hot(columns: Mapping[str, Sequence[str]]) -> list[str]:
  """Returns the columns of 0 and 1, if each row has one 1 or there are no others."""
  numbers = {name: [*map(csv_rows.number, cells)] for name, cells in columns.items()}
  hot = [name for name, own in numbers.items() if {*own} == {0, 1}]
  one = all(sum(row) == 1 for row in zip(*(numbers[name] for name in hot), strict=True))
  return hot if len(hot) > 1 and (one or len(hot) == len(columns) > 2) else []


def _kind(name: str, cells: Sequence[Any], numbers: np.ndarray) -> str:
  """Returns what a column probably is but the label or a feature; '' for nothing."""
  if any(column_names.probable(column, [name]) for column in _HOLDERS):
    return 'a client or case'
  if column_names.probable(SPLIT, [name]) or says_split(name, cells):
    return _SPLIT
  distinct, folded = _distinct(numbers), column_names.folded(name)
  is_distinct = len(distinct) == len(cells) >= _FEWEST
  is_row = is_distinct and distinct[-1] - distinct[0] == len(distinct) - 1
  is_named = folded in _ROWS.split() or _words(name)[-1:] == ['id']
  if is_row or is_named or (is_distinct and folded.endswith(('id', 'number'))):
    return 'an id'
  texts = [cells[place] for place in np.flatnonzero(np.isnan(numbers))]
  count = sum(bool(_text(t)) and not csv_rows.has_decimal_comma(t) for t in texts)
  return _TEXTS if len(cells) >= _FEWEST and 2 * count > len(cells) else ''


def _follows(cells: Sequence[Any], labels: Sequence[Any]) -> bool:
  """Returns whether a column has one value for each label, and not the same for all."""
  known = {*labels}
  pairs = {*zip(cells, labels, strict=False)}
  is_table = 1 < len(known) <= len(labels) // _ROWS_EACH
  return is_table and len(pairs) == len(known) and len({*cells}) > 1


def _label(
  names: Sequence[str],
  columns: Mapping[str, Sequence[Any]],
  numbers: Mapping[str, np.ndarray],
) -> str:
  """Returns the column that is probably the label, '' for none.

  By its name; or because it is the last or first one and has few values, unlike most
  others. Columns whose names begin alike, such as pixel_1 and pixel_2, are features.

  Args:
    names: The columns of `columns` that may be it.
    columns: See `check`.
    numbers: Likewise.
  """
  words = {name: _words(name) for name in columns}
  few = [name for name in names if _has_few(columns[name], numbers[name])]
  named = [name for name in few if {*words[name]} & {*_CLASSES.split()}]
  if label := column_names.probable(LABEL, names) or ''.join(named[-1:]):
    return label
  if len(columns) < 2 or len(few) > max(1, (len(columns) - 1) // 2):
    return ''
  starts = [own[:1] for own in words.values()]
  ends = [name for name in ([*columns][-1], next(iter(columns))) if name in few]
  return next((name for name in ends if starts.count(words[name][:1]) == 1), '')


def _distinct(numbers: np.ndarray) -> np.ndarray:
  """Returns the different numbers of a column, none if one is not whole."""
  is_whole = np.all(np.isfinite(numbers)) and np.all(numbers == np.floor(numbers))
  return np.unique(numbers) if is_whole else np.zeros(0)


def _has_few(cells: Sequence[Any], numbers: np.ndarray) -> bool:
  """Returns whether a column has few different whole numbers or texts."""
  is_text = len(numbers) and np.all(np.isnan(numbers))
  count = len({*cells}) if is_text else len(_distinct(numbers))
  return 1 < count <= min(_MOST, len(cells) // _ROWS_EACH)
