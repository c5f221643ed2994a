"""Which column of a user's table is which: by name, by a near name, or as given."""

from collections.abc import Iterable, Mapping, Sequence
import difflib
from typing import NamedTuple

from tasks import intake

IMAGE, CLIENT, CASE = 'image', 'client_id', 'case_id'
LABEL, SPLIT, MASK = 'label', 'split', 'mask'
OF_MANIFEST = (IMAGE, CLIENT, CASE, LABEL, SPLIT, MASK)
# Other names for a column, as of `_folded`. Such a column is not taken for it, which
# would be a guess, nor passed over.
_LIKELY = {
  IMAGE: 'images picture photo file filename filepath path img imageid imagename',
  CLIENT: 'client clients patient patients patientid subject subjectid participant',
  CASE: 'caseid',
  LABEL: 'labels class classes classname diagnosis dx target category',
  SPLIT: 'splits subset partition',
  MASK: 'masks maskpath segmentation',
}
# Of words as similar as 'lable' and 'label'.
_SIMILAR = 0.8


class Columns(NamedTuple):
  """The columns of a table.

  Attributes:
    named: The table's own name of each known column that it has.
    unused: The others, without those that have no name.
  """

  named: dict[str, str]
  unused: tuple[str, ...]


def parse(pairs: Iterable[str]) -> dict[str, str]:
  """Reads what the user says of columns.

  Args:
    pairs: Such as `image=Photo`, or `label=`: no column is the label.

  Returns:
    The table's own name, which may be empty, by the known one.

  Raises:
    ValueError: A pair is not of this form, or names an unknown column or one twice.
  """
  own: dict[str, str] = {}
  for pair in pairs:
    known, equals, name = (part.strip() for part in pair.partition('='))
    if not equals or known not in OF_MANIFEST or known in own:
      raise ValueError(
        f'columns has {pair!r}; it must be a list such as image=Photo,label=Diagnosis, '
        f'with each of {", ".join(OF_MANIFEST)} at most once.'
      )
    own[known] = name
  return own


def match(
  name: str,
  header: Sequence[str],
  own: Mapping[str, str] | None = None,
  known: Sequence[str] = OF_MANIFEST,
) -> Columns:
  """Finds the known columns of a table, whatever their case, blanks and underscores.

  Args:
    name: What to call the table in errors.
    header: Its columns.
    own: The user's names of columns, as of `parse`.
    known: The columns to find.

  Raises:
    ValueError: A column of `own` is missing, two columns may be the same one, or one
      that is not there may be another that is.
  """
  own = own or {}
  named = {}
  for column in known:
    candidates = [own[column]] if column in own else _matching(column, header)
    if column in own and own[column] and own[column] not in header:
      raise ValueError(
        f'columns has {column}={own[column]}, and {name} has no such column; it has '
        f'{intake.some(header, intake.COLUMNS_SHOWN)}.'
      )
    if len(candidates) > 1:
      raise ValueError(
        f'{name} has the columns {", ".join(map(repr, candidates))}, of which each may '
        f'be {column}; --columns={column}={candidates[0]} says which one is.'
      )
    if candidates and candidates[0]:
      named[column] = candidates[0]
  unused = tuple(c for c in header if c and c not in named.values())
  missing = [column for column in known if column not in named and column not in own]
  likely = {column: probable(column, unused) for column in missing}
  _refuse(name, {column: own for column, own in likely.items() if own})
  return Columns(named, unused)


def _matching(column: str, header: Sequence[str]) -> list[str]:
  if column in header:
    # Exactly; another of nearly this name is an unused column.
    return [column]
  return [each for each in header if _folded(each) == _folded(column)]


def probable(column: str, unused: Sequence[str]) -> str:
  """Returns the column that is probably the known one; '' if none is.

  Args:
    column: The known one, one of `OF_MANIFEST`.
    unused: Columns of a table.
  """
  words = _LIKELY[column].split()
  for each in unused:
    folded = _folded(each)
    near = difflib.SequenceMatcher(None, folded, _folded(column)).ratio() >= _SIMILAR
    # 'face_id' and 'base_id' are other words.
    if folded in words or (near and column != CASE):
      return each
  return ''


def _refuse(name: str, likely: Mapping[str, str]) -> None:
  """Raises ValueError if columns are probably known ones that are missing.

  Args:
    name: What to call the table.
    likely: The table's column for each such known one.
  """
  if not likely:
    return
  pairs = ','.join(f'{column}={own}' for column, own in likely.items())
  these = 'this is it' if len(likely) == 1 else 'these are they'
  # Without images nothing can be done.
  optional = next((column for column in likely if column != IMAGE), None)
  none = '' if optional is None else f', and --columns={optional}= that none is'
  raise ValueError(
    f'{name} has no column {", ".join(likely)}, but '
    f'{", ".join(map(repr, likely.values()))}; --columns={pairs} says that {these}'
    f'{none}.'
  )


def _folded(name: str) -> str:
  return ''.join(each for each in name.casefold() if each.isalnum())
