"""The manifest of a folder of images: which cases, labels and splits there are."""

import collections
from collections.abc import Iterable
import csv
import dataclasses
import io
import posixpath

SPLITS = ('train', 'validation', 'test')
_SHOWN = 3


@dataclasses.dataclass(frozen=True)
class Row:
  """One image.

  Attributes:
    image: Name of the image's file in its source.
    case_id: What the image belongs to (patient, lesion).
    label: Name of its class, empty where it is unlabelled.
    split: One of `SPLITS`, or empty where the manifest gives no splits.
  """

  image: str
  case_id: str
  label: str = ''
  split: str = ''


def some(names: Iterable[str]) -> str:
  """The first few of many names, and how many more there are."""
  listed = list(names)
  more = f' and {len(listed) - _SHOWN} more' if len(listed) > _SHOWN else ''
  return ', '.join(listed[:_SHOWN]) + more


def read_table(
  name: str, content: bytes, required: tuple[str, ...]
) -> list[dict[str, str]]:
  """Reads a CSV file with a header.

  Args:
    name: What to call the file in errors.
    content: The file, UTF-8 with or without a byte order mark.
    required: Columns that must be there, with a value in every row.

  Returns:
    The rows, values by column, without surrounding blanks.

  Raises:
    ValueError: The file is not UTF-8, a column or a value is missing, or there are
      no rows.
  """
  try:
    text = content.decode('utf-8-sig')
  except UnicodeDecodeError as error:
    raise ValueError(f'{name} is not a UTF-8 text file: {error}.') from error
  reader = csv.DictReader(io.StringIO(text, newline=''), restval='')
  try:
    header = [column.strip() for column in reader.fieldnames or ()]
  except csv.Error as error:
    raise ValueError(f'{name}, line 1: {error}.') from error
  reader.fieldnames = header
  missing = [column for column in required if column not in header]
  if missing:
    raise ValueError(
      f'{name} lacks the column {", ".join(missing)}; it has '
      f'{", ".join(header) or "none"}.'
    )
  rows = []
  try:
    for cells in reader:
      # Cells beyond the header stand under None.
      cells.pop(None, None)
      row = {column: value.strip() for column, value in cells.items()}
      empty = [column for column in required if not row[column]]
      if empty:
        raise ValueError(
          f'{name}, line {reader.line_num}, has no value for {", ".join(empty)}.'
        )
      rows.append(row)
  except csv.Error as error:
    raise ValueError(f'{name}, line {reader.line_num}: {error}.') from error
  if not rows:
    raise ValueError(f'{name} lists 0 images; it must list some.')
  return rows


def parse(name: str, content: bytes, folder: str = '') -> list[Row]:
  """Reads a manifest with the columns image, case_id[, label][, split].

  Args:
    name: What to call the manifest in errors.
    content: The file.
    folder: Folder that image names are relative to.

  Returns:
    The rows.

  Raises:
    ValueError: The file is not such a manifest.
  """
  rows = []
  for cells in read_table(name, content, ('image', 'case_id')):
    row = Row(
      image=posixpath.normpath(posixpath.join(folder, cells['image'])),
      case_id=cells['case_id'],
      label=cells.get('label', ''),
      split=cells.get('split', ''),
    )
    if row.split not in SPLITS and 'split' in cells:
      raise ValueError(
        f'{name} gives image {cells["image"]} the split {row.split!r}; allowed are '
        f'{", ".join(SPLITS)}.'
      )
    rows.append(row)
  return rows


def check(name: str, rows: list[Row], files: Iterable[str]) -> None:
  """Checks the rows against each other and against the files that there are.

  Args:
    name: What to call the manifest in errors.
    rows: The rows.
    files: Names of all files.

  Raises:
    ValueError: An image or a case is in two splits, a case has two labels, an image is
      listed twice, or a file is unknown.
  """
  for field, what in (('image', 'image'), ('case_id', 'case')):
    splits = collections.defaultdict(set)
    for row in rows:
      splits[getattr(row, field)].add(row.split)
    torn = [key for key, found in splits.items() if len(found) > 1]
    if torn:
      raise ValueError(f'{name} has {_count(torn, what)} in two splits: {some(torn)}.')
  _check_labels(name, rows)
  listed = collections.Counter(row.image for row in rows)
  twice = [image for image, count in listed.items() if count > 1]
  if twice:
    raise ValueError(f'{name} lists {_count(twice, "image")} twice: {some(twice)}.')
  known = set(files)
  unknown = [image for image in listed if image not in known]
  if unknown:
    raise ValueError(
      f'{name} lists {_count(unknown, "file")} that cannot be found: '
      f'{some(unknown)}; only regular files are, and links to those of the folder.'
    )


def _check_labels(name: str, rows: list[Row]) -> None:
  """Checks that the images of a case that have a label have the same."""
  labels = collections.defaultdict(set)
  for row in rows:
    if row.label:
      labels[row.case_id].add(row.label)
  torn = {case: sorted(found) for case, found in labels.items() if len(found) > 1}
  if torn:
    shown = [f'{case} ({some(found)})' for case, found in torn.items()]
    raise ValueError(
      f'{name} has {_count(shown, "case")} of more than one label, where each '
      f'must have one: {some(shown)}.'
    )


def _count(names: list[str], what: str) -> str:
  return f'{len(names):,} {what}{"s" * (len(names) != 1)}'
