"""The rows of a CSV file with a header, each with a cell for each column.

Cells are separated by commas, or by the semicolons or tabs of spreadsheets. Line ends
are those of any system.
"""

import collections
from collections.abc import Iterator, Sequence
import csv
import io
import itertools
import math
import re
from typing import Any, NamedTuple

from tasks import intake
from tff_ssl.storage import memory

_SEPARATORS = (',', ';', '\t')
_NO_TEXT = ',;" \t'
# The first line that Excel reads and writes where a separator is not the usual one.
_SEP = re.compile(r'"?sep=([,;\t])"?[,;\t]*(\r\n|\r|\n|$)', re.IGNORECASE)
_BREAK = re.compile('\r\n|\r|\n')
_DECIMAL_COMMA = re.compile(r'[+-]?[\d.]*,\d+')
# With as many numbers that rise in a header, such as wavelengths, they are names.
_MANY = 10
_MARKS = {b'\xff\xfe': 'utf-16', b'\xfe\xff': 'utf-16', b'\xef\xbb\xbf': 'utf-8-sig'}


class Row(NamedTuple):
  """One row.

  Attributes:
    line: Number of its last line in the file, from 1.
    cells: Text by column, without surrounding blanks.
  """

  line: int
  cells: dict[str, str]


def read(name: str, content: bytes) -> tuple[list[str], list[Row]]:
  """Reads a CSV file.

  Args:
    name: What to call the file in errors.
    content: The file, UTF-8, or UTF-16 with a byte order mark.

  Returns:
    The columns, and the rows; lines without any text are skipped.

  Raises:
    ValueError: The file does not fit into memory, is no such text or no CSV, two
      columns have the same name, a cell holds rows, or a row does not have as many
      cells as the header, apart from empty ones at its end.
  """
  memory.check_csv(name, content)
  lines = _lines(name, content)
  columns = _columns(name, lines)
  rows = []
  for line, cells in lines:
    if len(cells) < len(columns) or any(cells[len(columns) :]):
      raise ValueError(
        f'{name}, line {line}, has {len(cells)} cells; the header has '
        f'{len(columns)}: {intake.some(columns, intake.COLUMNS_SHOWN)}.'
      )
    rows.append(Row(line, dict(zip(columns, cells, strict=False))))
  return columns, rows


def header(name: str, content: bytes) -> list[str]:
  """Returns the columns of a CSV file; the arguments are those of `read`.

  Raises:
    ValueError: The first row is no CSV, or two columns have the same name.
  """
  return _columns(name, _lines(name, content))


def check_names(name: str, columns: Sequence[str]) -> None:
  """Refuses columns of the same name, and a row of numbers in place of a header.

  Numbers in steps of one, and many that rise, are names. Several may have no name.

  Args:
    name: What to call the table in errors.
    columns: Its columns.

  Raises:
    ValueError: Two have the same name, or most are numbers that are no names.
  """
  numbers = [own for own in map(number, columns) if math.isfinite(own)]
  steps = [after - before for before, after in itertools.pairwise(numbers)]
  are_names = len(numbers) > 2 and {*steps} == {1}
  are_names |= len(numbers) >= _MANY and min(steps, default=0) > 0
  if 2 * len(numbers) > len([*filter(None, columns)]) and not are_names:
    raise ValueError(
      f'{name} has numbers in its first line: {intake.some(columns)}; the first line '
      'must be the names of columns: add it, or put a letter in front of each number '
      'if they are names.'
    )
  for column, count in collections.Counter(columns).items():
    if column and count > 1:
      raise ValueError(
        f'{name} has the column {column!r} twice; each column must have its own name.'
      )


def number(cell: Any) -> float:
  """Returns the number that a cell is, or that its text is; NaN if it is none.

  Python takes digits in groups, too, but 2021_03 is a text, not 202103.
  """
  try:
    return math.nan if isinstance(cell, str) and '_' in cell else float(cell)
  except (TypeError, ValueError):
    return math.nan


def has_decimal_comma(cell: Any) -> bool:
  """Returns whether a cell is the text of a number with a decimal comma."""
  return bool(_DECIMAL_COMMA.fullmatch(str(cell)))


def _lines(name: str, content: bytes) -> Iterator[tuple[int, list[str]]]:
  """Yields the number and the cells of each line that has any text."""
  text = _text(name, content)
  stated = _SEP.match(text)
  first = 0
  if stated:
    first, text = 1, text[stated.end() :]
  separator = stated.group(1) if stated else _separator(text)
  reader = csv.reader(io.StringIO(text, newline=''), delimiter=separator)
  most: int | None = None
  while True:
    start = first + reader.line_num + 1
    try:
      cells = next(reader, None)
    except csv.Error as error:
      line = max(first + reader.line_num, 1)
      raise ValueError(f'{name}, line {line}: {error}.') from error
    if cells is None:
      return
    line = first + reader.line_num
    own = [cell.strip() for cell in cells]
    if any(own):
      # The header comes first; empty columns at its right are none.
      if most is None:
        most = max(place for place, cell in enumerate(own) if cell)
      if any(
        _holds_rows(cell, separator, place, most) for place, cell in enumerate(cells)
      ):
        raise ValueError(
          f'{name}, lines {start} to {line}, has rows within one cell; is a quotation '
          'mark not closed?'
        )
      yield line, own


def _holds_rows(cell: str, separator: str, place: int, most: int) -> bool:
  """Returns whether a cell looks as if a quotation mark had swallowed rows.

  Then its first line ends a row, its last line begins one, and those between are whole
  rows, by their separators. A text of several lines may have a few.

  Args:
    cell: The cell as it was read.
    separator: What separates cells.
    place: How many separators are before the cell in its row.
    most: How many separators the header has; with none nothing can be told.
  """
  if not most or not _BREAK.search(cell):
    return False
  lines = [line for line in _BREAK.split(cell) if line.strip(_NO_TEXT)]
  counts = [line.count(separator) for line in lines]
  if len(counts) < 2:
    return False
  is_torn = counts[0] >= most - place and counts[-1] >= place
  return is_torn or max(counts[1:]) >= most


def _columns(name: str, lines: Iterator[tuple[int, list[str]]]) -> list[str]:
  _, columns = next(lines, (0, []))
  # Spreadsheets leave empty columns at the right.
  while columns and not columns[-1]:
    columns.pop()
  check_names(name, columns)
  return columns


def _separator(text: str) -> str:
  """Returns what separates most cells of the header, or else of the row after it."""

  def counts(separator: str) -> tuple[int, ...]:
    lines = csv.reader(io.StringIO(text, newline=''), delimiter=separator)
    own = (len(cells) for cells in lines if ''.join(cells).strip(_NO_TEXT))
    try:
      return tuple(itertools.islice(own, 2))
    except csv.Error:
      return ()

  return max(_SEPARATORS, key=counts)


def _text(name: str, content: bytes) -> str:
  advice = 'save it as "CSV UTF-8"'
  try:
    text = content.decode(_MARKS.get(content[:2]) or _MARKS.get(content[:3]) or 'utf-8')
  except UnicodeDecodeError as error:
    place = content[: error.start].count(b'\n') + 1
    raise ValueError(
      f'{name} is not a UTF-8 text file: {error.reason} at line {place}; {advice}.'
    ) from error
  if '\0' in text:
    raise ValueError(f'{name} is not a text file, it has NUL characters; {advice}.')
  return text
