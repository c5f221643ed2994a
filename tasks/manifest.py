"""The manifest of a folder of images: its clients, cases, labels and splits."""

import collections
from collections.abc import Iterable
import dataclasses
import posixpath

from tasks import rows as rows_lib

SPLITS = ('train', 'validation', 'test')
# What is classified: each image by itself, or the images of a case together.
IMAGE, CASE = 'image', 'case'
CLASSIFIED = (IMAGE, CASE)
_HOLDERS = ('client_id', 'case_id')
_SHOWN = 3


@dataclasses.dataclass(frozen=True)
class Row:
  """One image.

  Attributes:
    image: Name of the image's file in its source.
    case_id: The case that the image belongs to (patient, lesion). It may be classified
      as one, and is a client if no client is named. Empty if the manifest has no cases;
      then each image is its own case.
    client_id: The holder of the image (patient, hospital), empty if none is named.
    label: Name of its class, empty if it is unlabelled.
    split: One of `SPLITS`, or empty if the manifest gives no splits.
    mask: Name of the file of its mask, empty if it has none.
  """

  image: str
  case_id: str = ''
  label: str = ''
  split: str = ''
  client_id: str = ''
  mask: str = ''

  @property
  def holder(self) -> str:
    """The holder of the image: its client, or its case; empty if it has neither."""
    return self.client_id or self.case_id


def some(names: Iterable[str]) -> str:
  """The first few of many names, and how many more there are."""
  listed = list(names)
  more = f' and {len(listed) - _SHOWN} more' if len(listed) > _SHOWN else ''
  return ', '.join(listed[:_SHOWN]) + more


def read_table(
  name: str,
  content: bytes,
  required: tuple[str, ...],
  either: tuple[str, ...] = (),
) -> list[dict[str, str]]:
  """Reads a CSV file with a header.

  Args:
    name: What to call the file in errors.
    content: The file, UTF-8 with or without a byte order mark.
    required: Columns that must be there, with a value in every row.
    either: Columns of which one must be there; each present one has a value in every
      row.

  Returns:
    The rows, values by column, without surrounding blanks.

  Raises:
    ValueError: The file is not such a CSV (see `rows.read`), a column or a value is
      missing, or there are no rows.
  """
  header, rows = rows_lib.read(name, content)
  missing = [column for column in required if column not in header]
  chosen = [column for column in either if column in header]
  if either and not chosen:
    missing.append(' or '.join(either))
  if missing:
    raise ValueError(
      f'{name} lacks the column {", ".join(missing)}; it has '
      f'{", ".join(header) or "none"}.'
    )
  for row in rows:
    empty = [column for column in (*required, *chosen) if not row.cells[column]]
    if empty:
      raise ValueError(f'{name}, line {row.line}, has no value for {", ".join(empty)}.')
  if not rows:
    raise ValueError(f'{name} lists 0 images; it must list some.')
  return [row.cells for row in rows]


def parse(name: str, content: bytes, folder: str = '') -> list[Row]:
  """Reads a manifest: image, client_id or case_id[, label][, split][, mask].

  Args:
    name: What to call the manifest in errors.
    content: The file.
    folder: Folder that names of images and masks are relative to.

  Returns:
    The rows.

  Raises:
    ValueError: The file is not such a manifest.
  """

  def place(cell: str) -> str:
    return cell and posixpath.normpath(posixpath.join(folder, cell))

  rows = []
  for cells in read_table(name, content, ('image',), _HOLDERS):
    row = Row(
      image=place(cells['image']),
      case_id=cells.get('case_id', ''),
      client_id=cells.get('client_id', ''),
      label=cells.get('label', ''),
      split=cells.get('split', ''),
      mask=place(cells.get('mask', '')),
    )
    if row.split not in SPLITS and 'split' in cells:
      raise ValueError(
        f'{name} gives image {cells["image"]} the split {row.split!r}; allowed are '
        f'{", ".join(SPLITS)}.'
      )
    rows.append(row)
  return rows


def what_is_classified(name: str, rows: list[Row], wanted: str | None) -> str:
  """Returns whether images are classified or cases, one of `CLASSIFIED`.

  Args:
    name: What to call the manifest in errors.
    rows: The rows.
    wanted: What was asked for; None: cases if the manifest has them.

  Raises:
    ValueError: Cases are asked for and there are none, or `wanted` is neither.
  """
  has_cases = bool(rows[0].case_id)
  if wanted is None:
    return CASE if has_cases else IMAGE
  if wanted not in CLASSIFIED:
    raise ValueError(f'classify is {wanted!r}; allowed are {", ".join(CLASSIFIED)}.')
  if wanted == CASE and not has_cases:
    raise ValueError(
      f'classify is {CASE!r}, but {name} has no column case_id; only {IMAGE!r} is '
      'allowed.'
    )
  return wanted


def check(
  name: str, rows: list[Row], files: Iterable[str], classify: str = CASE
) -> None:
  """Checks the rows against each other and against the existing files.

  Args:
    name: What to call the manifest in errors.
    rows: The rows.
    files: Names of all files.
    classify: What is classified, one of `CLASSIFIED`.

  Raises:
    ValueError: An image, a case or a client is in two splits, a case has two clients
      or, if cases are classified, two labels, an image is listed twice, or a file is
      unknown.
  """
  for field, what in (('image', 'image'), ('case_id', 'case'), ('client_id', 'client')):
    torn = _torn(rows, field, 'split')
    if torn:
      raise ValueError(
        f'{name} has {_count([*torn], what)} in two splits: {some(torn)}.'
      )
  _check_one(name, rows, 'client_id', 'client')
  if classify == CASE:
    _check_one(name, rows, 'label', 'label')
  listed = collections.Counter(row.image for row in rows)
  twice = [image for image, count in listed.items() if count > 1]
  if twice:
    raise ValueError(f'{name} lists {_count(twice, "image")} twice: {some(twice)}.')
  known = set(files)
  masks = dict.fromkeys(row.mask for row in rows if row.mask)
  unknown = [file for file in (*listed, *masks) if file not in known]
  if unknown:
    raise ValueError(
      f'{name} lists {_count(unknown, "file")} that cannot be found: '
      f'{some(unknown)}; only regular files of the folder, and links to them, can be.'
    )


def _torn(rows: list[Row], field: str, other: str) -> dict[str, list[str]]:
  """Returns the values of `field` with several values of `other`, and the latter.

  An empty text is no value.
  """
  found = collections.defaultdict(set)
  for row in rows:
    key, value = getattr(row, field), getattr(row, other)
    if key and value:
      found[key].add(value)
  return {key: sorted(values) for key, values in found.items() if len(values) > 1}


def _check_one(name: str, rows: list[Row], field: str, what: str) -> None:
  """Checks that all images of a case that have a label (or client) have the same."""
  torn = _torn(rows, 'case_id', field)
  if torn:
    shown = [f'{case} ({some(found)})' for case, found in torn.items()]
    advice = '; images can be classified one by one' if what == 'label' else ''
    raise ValueError(
      f'{name} has {_count(shown, "case")} with more than one {what}, but each must '
      f'have exactly one: {some(shown)}{advice}.'
    )


def _count(names: list[str], what: str) -> str:
  return f'{len(names):,} {what}{"s" * (len(names) != 1)}'
