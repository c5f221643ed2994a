"""Which column of a user's table is which: by name, by a near name, or as given."""

from collections.abc import Iterable, Mapping, Sequence
import difflib
import shlex
from typing import NamedTuple

from tasks import intake
from tff_ssl.computing import inert

IMAGE, CLIENT, CASE = 'image', 'client_id', 'case_id'
LABEL, SPLIT, MASK = 'label', 'split', 'mask'
OF_MANIFEST = (IMAGE, CLIENT, CASE, LABEL, SPLIT, MASK)
# What several columns may be: features of a table, and what is left out.
FEATURE, UNUSED = 'feature', 'unused'
SEVERAL = (FEATURE, UNUSED)
# Other names for a column, as of `folded`. Such a column is not taken for it, which
# would be a guess, nor passed over (see `column_kinds`).
_LIKELY = {
  IMAGE: 'images picture photo file filename filepath path img imageid imagename '
  'imagepath imagefile imgname imgpath imgid fname photoid',
  CLIENT: 'client clients patient patients patientid subject subjectid participant '
  'participantid userid patientno patientnumber',
  CASE: 'caseid',
  LABEL: 'labels class classes classname classid classlabel labelname labelid '
  'diagnosis dx target targets category categories finding findings findinglabels '
  'groundtruth species breed emotion outcome',
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
    likely: The table's own name of what is probably a known column that is not there.
  """

  named: dict[str, str]
  unused: tuple[str, ...]
  likely: dict[str, str]


def parse(pairs: Iterable[str]) -> dict[str, str]:
  """Reads what the user says of columns.

  Args:
    pairs: Such as `image=Photo`, or `label=`: no column is the label. Those of
      `SEVERAL` may be there more than once.

  Returns:
    The table's own name, which may be empty, by the known one; of `SEVERAL` all names,
    separated by commas.

  Raises:
    ValueError: A pair is not of this form, or names an unknown column or one twice.
  """
  own: dict[str, str] = {}
  for pair in pairs:
    known, equals, name = (part.strip() for part in pair.partition('='))
    again = known in own and known in SEVERAL
    may_be = again or (known in (*OF_MANIFEST, *SEVERAL) and known not in own)
    if not equals or not may_be:
      raise ValueError(
        f'columns has {pair!r}; it must be a list such as image=Photo,label=Diagnosis, '
        f'with each of {", ".join(OF_MANIFEST)} at most once; '
        f'{" and ".join(SEVERAL)} may come several times.'
      )
    own[known] = f'{own[known]},{name}' if again else name
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
    ValueError: A column of `own` is missing, or two columns may be the same one.
  """
  own = own or {}
  named = {}
  aside = {each: several(own, each) for each in SEVERAL}
  given = [(column, own[column]) for column in known if own.get(column)]
  for column, its in (*given, *((c, each) for c in SEVERAL for each in aside[c])):
    if its not in header:
      raise ValueError(
        f'columns has {column}={its}, and {name} has no such column; it has '
        f'{intake.some(header, intake.COLUMNS_SHOWN)}.'
      )
  for column in known:
    candidates = [own[column]] if column in own else _matching(column, header)
    if len(candidates) > 1:
      raise ValueError(
        f'{name} has the columns {", ".join(map(repr, candidates))}, of which each may '
        f'be {column}; --columns={column}={candidates[0]} says which one is.'
      )
    if candidates and candidates[0]:
      named[column] = candidates[0]
  unused = tuple(c for c in header if c and c not in named.values())
  missing = [column for column in known if column not in named and column not in own]
  free = [each for each in unused if each not in (*aside[FEATURE], *aside[UNUSED])]
  likely = {c: its for c in missing if (its := probable(c, free))}
  return Columns(named, unused, likely)


def several(own: Mapping[str, str] | None, column: str) -> tuple[str, ...]:
  """Returns the user's names of what several columns may be, one of `SEVERAL`."""
  return tuple(name for name in (own or {}).get(column, '').split(',') if name)


def flag(pairs: Iterable[tuple[str, str]]) -> str:
  """Returns the flag that says what columns are, as it is typed into a shell.

  Args:
    pairs: Known columns and the table's own names.
  """
  shown = ','.join(f'{column}={own}' for column, own in pairs)
  return inert.line(shlex.quote(f'--columns={shown}'))


def _matching(column: str, header: Sequence[str]) -> list[str]:
  if column in header:
    # Exactly; another of nearly this name is an unused column.
    return [column]
  return [each for each in header if folded(each) == folded(column)]


def probable(column: str, unused: Sequence[str]) -> str:
  """Returns the column that is probably the known one; '' if none is.

  Args:
    column: The known one, one of `OF_MANIFEST`.
    unused: Columns of a table.
  """
  likely = _LIKELY[column].split()
  for each in unused:
    own = folded(each)
    near = difflib.get_close_matches(folded(column), [own], 1, _SIMILAR)
    # 'face_id' and 'base_id' are other words.
    if own in likely or (near and column != CASE):
      return each
  return ''


def folded(name: str) -> str:
  """Returns the letters and digits of a name, whatever their case."""
  return ''.join(each for each in name.casefold() if each.isalnum())
