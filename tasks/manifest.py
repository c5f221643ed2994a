"""The manifest of a folder of images: its clients, cases, labels and splits."""

import collections
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import NamedTuple

from tasks import column_kinds
from tasks import column_names
from tasks import csv_rows
from tasks import intake
from tasks import layouts
from tasks import matching
from tasks import sources
from tasks import spellings
from tff_ssl.computing import checks

SPLITS = layouts.SPLITS
# What is classified: each image by itself, or the images of a case together.
IMAGE, CASE = 'image', 'case'
CLASSIFIED = (IMAGE, CASE)
_HOLDERS = ('client_id', 'case_id')
# A holder of this name would hold all that have none.
_NO_VALUE = spellings.MISSING
# Labels that may be no class, as of `column_names.folded`: '' is that of a '?'.
_NO_LABEL = ('', 'unlabeled', 'unlabelled', 'nolabel', 'unknown', 'undefined', 'none')


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


class Manifest(NamedTuple):
  """What a manifest says.

  Attributes:
    rows: Its rows; images and masks are named as in the manifest.
    findings: What must be said of it.
  """

  rows: list[Row]
  findings: list[intake.Finding]


def read_table(
  name: str, content: bytes, required: tuple[str, ...]
) -> list[dict[str, str]]:
  """Reads a CSV file with a header.

  Args:
    name: What to call the file in errors.
    content: The file.
    required: Columns that must be there, with a value in every row.

  Returns:
    The rows, values by column, without surrounding blanks.

  Raises:
    ValueError: The file is not such a CSV (see `csv_rows.read`), a column or a value is
      missing, or there are no rows.
  """
  header, rows = csv_rows.read(name, content)
  require(name, header, {column: column for column in header}, required)
  _require_values(name, rows, {column: column for column in required})
  return [row.cells for row in rows]


def read(name: str, content: bytes, own: Mapping[str, str] | None = None) -> Manifest:
  """Reads a manifest: image, client_id or case_id[, label][, split][, mask].

  Ids and labels are in one of the forms that look the same (`spellings.clean`), a
  missing label is '', and two spellings that are certainly one thing become one.

  Args:
    name: What to call the manifest in errors.
    content: The file.
    own: The manifest's names of columns; see `column_names.parse`.

  Raises:
    ValueError: The file is not such a manifest.
  """
  header, lines = csv_rows.read(name, content)
  matched = column_names.match(name, header, own)
  column_kinds.check_list(name, header, lines, matched, own or {})
  holders = {c: matched.named[c] for c in _HOLDERS if c in matched.named}
  _require_values(name, lines, {'image': matched.named['image'], **holders})
  cells = {c: [row.cells[their] for row in lines] for c, their in matched.named.items()}
  findings: list[intake.Finding] = []
  if matched.unused:
    count = intake.many(len(matched.unused), 'column')
    what = f'not used of {name}: {count}'
    findings.append(intake.finding('unused columns', matched.unused, what))
  for column in (*_HOLDERS, 'label'):
    if column in cells:
      cells[column], said = spelled(name, column, cells[column])
      findings += said
  if 'split' in cells:
    said_by = matched.named['split']
    cells['split'], said = _splits(name, said_by, cells['split'], cells['image'])
    findings += said
  if 'mask' in cells:
    cells['mask'] = ['' if c in spellings.MISSING else c for c in cells['mask']]
  rows = [
    Row(**dict(zip(cells, values, strict=True)))
    for values in zip(*cells.values(), strict=True)
  ]
  return Manifest(rows, findings)


def require(
  name: str,
  header: Sequence[str],
  named: Mapping[str, str],
  required: Sequence[str],
) -> None:
  """Checks that a table has its columns.

  Args:
    name: What to call the table in errors.
    header: Its columns.
    named: The table's own name of each known column that it has.
    required: Columns that it must have.

  Raises:
    ValueError: A column is missing.
  """
  missing = [column for column in required if column not in named]
  if missing:
    raise ValueError(
      f'{name} lacks the column {", ".join(missing)}; it has '
      f'{intake.some(header, intake.COLUMNS_SHOWN) or "none"}.'
    )


def _require_values(
  name: str, rows: Sequence[csv_rows.Row], named: Mapping[str, str]
) -> None:
  """Raises ValueError if there are no rows, or one lacks the value of a column."""
  for row in rows:
    for column, own in named.items():
      if spellings.clean(cell := row.cells[own]) in _NO_VALUE:
        written = f' but {cell!r}, which stands for none' if cell else ''
        raise ValueError(
          f'{name}, line {row.line}, has no value for {column}{written}.'
        )
  if not rows:
    raise ValueError(f'{name} lists 0 images; it must list some.')


def spelled(
  name: str, column: str, cells: Sequence[str]
) -> tuple[list[str], list[intake.Finding]]:
  """Returns ids or labels, each thing in one spelling, and what to say of them.

  Args:
    name: What to call the table.
    column: Name of the column.
    cells: Its cells.

  Returns:
    The spelling that stands for each cell, '' for no value; and findings.

  Raises:
    ValueError: Two of them would be written alike; see `sources.texts`.
  """
  values = spellings.merged(cells)
  sources.texts(name, f'{column}s', values.values())
  lists: list[str] = []
  if column == column_names.LABEL:
    values, lists = spellings.as_sets(values)
  findings = of_values(column, values)
  if lists:
    said = 'warning: labels look like lists, of which each set is a class of its own'
    findings.append(intake.finding('lists', lists, said, costs=True))
  missing = sorted({cell for cell in cells if cell and cell not in values})
  if missing:
    count = sum(cell in missing for cell in cells)
    findings.append(
      intake.finding(
        'missing labels', missing, f'{count:,} rows of {name} have no {column} but'
      )
    )
  return [values.get(cell, '') for cell in cells], findings


def _perhaps_none(labels: Iterable[str]) -> list[str]:
  """Returns labels that may mean no label: such words, or -1 beside whole numbers."""
  whole = {label.removesuffix('.0') for label in labels}
  none = {label for label in whole if column_names.folded(label) in _NO_LABEL}
  is_number = '-1' in whole and all(map(str.isdecimal, whole - none - {'-1'}))
  return sorted({*none, '-1'} if is_number else none)


def of_values(column: str, values: Mapping[str, str]) -> list[intake.Finding]:
  """Says which values of a column are one, and which may be.

  Args:
    column: Name of the column.
    values: The spelling that stands for each value; see `spellings.merged`.
  """
  findings = []
  if column in (column_names.LABEL, 'class') and (
    none := _perhaps_none(values.values())
  ):
    said = 'taken as a class (a row without one has an empty label)'
    findings.append(intake.finding('missing labels', none, said))
  spelled = collections.defaultdict(list)
  for value, own in values.items():
    spelled[own].append(value)
  twice = sorted(sorted(group) for group in spelled.values() if len(group) > 1)
  one = [' = '.join(map(_visible, group)) for group in twice]
  if one:
    said = f'taken as one {column} each'
    findings.append(intake.finding('spellings', one, said))
  by_difference = collections.defaultdict(list)
  for group, difference in spellings.alike(spelled).items():
    by_difference[difference].append(' and '.join(map(_visible, group)))
  for difference, groups in by_difference.items():
    said = f'warning: differ by {difference} alone, and are each a {column}'
    findings.append(intake.finding('spellings', groups, said, costs=True))
  return findings


def _visible(value: str) -> str:
  """Returns a value with escapes for what may look the same."""
  return value if value.isascii() else ascii(value)[1:-1]


def _splits(
  name: str, column: str, cells: Sequence[str], of: Sequence[str]
) -> tuple[list[str], list[intake.Finding]]:
  """Returns the split that each cell says, one of `SPLITS`, and what to say."""
  split_of, findings = column_kinds.splits(column, cells)
  for cell, image in zip(cells, of, strict=True):
    if cell not in split_of:
      raise ValueError(
        f'{name} gives image {image} the split {cell!r}; it must be one of '
        f'{", ".join(SPLITS)}, and --columns=split= says that no column is the split.'
      )
  return [split_of[cell] for cell in cells], findings


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
  checks.one_of(CLASSIFIED, classify=wanted)
  if wanted == CASE and not has_cases:
    raise ValueError(
      f'classify is {CASE!r}, but {name} has no column case_id; only {IMAGE!r} is '
      'allowed.'
    )
  return wanted


def check(
  name: str,
  rows: list[Row],
  files: Iterable[str],
  classify: str = CASE,
  aside: Mapping[str, Sequence[str]] | None = None,
) -> None:
  """Checks the rows against each other and against the existing files.

  Args:
    name: What to call the manifest in errors.
    rows: The rows.
    files: Names of all files.
    classify: What is classified, one of `CLASSIFIED`.
    aside: Files that are not read, by why; see `sources.Source`.

  Raises:
    ValueError: An image, a case or a client is in two splits, a case has two clients
      or, if cases are classified, two labels, an image is listed twice or is its own
      mask, or a file is unknown.
  """
  for field, what in (('image', 'image'), ('case_id', 'case'), ('client_id', 'client')):
    torn = _torn(rows, field, 'split')
    if torn:
      raise ValueError(
        f'{name} has {intake.many(len(torn), what)} in two splits: {intake.some(torn)}.'
      )
  _check_one(name, rows, 'client_id', 'client')
  if classify == CASE:
    _check_one(name, rows, 'label', 'label')
  listed = collections.Counter(row.image for row in rows)
  twice = [image for image, count in listed.items() if count > 1]
  if twice:
    raise ValueError(
      f'{name} lists {intake.many(len(twice), "image")} twice: {intake.some(twice)}.'
    )
  own = [row.image for row in rows if row.image == row.mask]
  if own:
    count = intake.many(len(own), 'image')
    raise ValueError(
      f'{name} gives {count} as its own mask: {intake.some(own)}; a mask must be '
      'another file.'
    )
  known = set(files)
  masks = dict.fromkeys(row.mask for row in rows if row.mask)
  unknown = [file for file in (*listed, *masks) if file not in known]
  if unknown:
    why = {file: kind for kind, names in (aside or {}).items() for file in names}
    shown = [f'{file} ({why[file]})' if file in why else file for file in unknown]
    raise ValueError(
      f'{name} lists {intake.many(len(unknown), "file")} that cannot be found: '
      f'{intake.some(shown)}{matching.advice(unknown, known)}; only regular files of '
      'the folder, and links to them, can be, and with --data=follow_links=true what '
      'other links lead to.'
    )


def _torn(rows: list[Row], field: str, other: str) -> dict[str, list[str]]:
  """Returns the values of `field` with several values of `other`, and the latter.

  An empty text is no value.
  """
  by_key = collections.defaultdict(set)
  for row in rows:
    key, value = getattr(row, field), getattr(row, other)
    if key and value:
      by_key[key].add(value)
  return {key: sorted(values) for key, values in by_key.items() if len(values) > 1}


def _check_one(name: str, rows: list[Row], field: str, what: str) -> None:
  """Checks that all images of a case that have a label (or client) have the same."""
  torn = _torn(rows, 'case_id', field)
  if torn:
    shown = [f'{case} ({intake.some(values)})' for case, values in torn.items()]
    advice = '; images can be classified one by one' if what == 'label' else ''
    raise ValueError(
      f'{name} has {intake.many(len(shown), "case")} with more than one {what}, but '
      f'each must have exactly one: {intake.some(shown)}{advice}.'
    )
