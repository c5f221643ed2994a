"""The rows of a CSV file with a header, each with a cell for each column.

Cells are separated by commas, or by the semicolons or tabs of spreadsheets. Line ends
are those of any system.
"""

from collections.abc import Iterator
import csv
import io
import itertools
import re
from typing import NamedTuple

from tff_ssl.runtime import memory

_SEPARATORS = (',', ';', '\t')
_NO_TEXT = ',;" \t'
# The first line that Excel reads and writes where a separator is not the usual one.
_SEP = re.compile(r'"?sep=([,;\t])"?[,;\t]*(\r\n|\r|\n|$)', re.IGNORECASE)
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
      columns have the same name, or a row does not have as many cells as the header,
      apart from empty ones at its end.
  """
  memory.check_csv(name, content)
  found = _lines(name, content)
  columns = _columns(name, found)
  rows = []
  for line, cells in found:
    if len(cells) < len(columns) or any(cells[len(columns) :]):
      raise ValueError(
        f'{name}, line {line}, has {len(cells)} cells; the header has '
        f'{len(columns)}: {", ".join(columns)}.'
      )
    rows.append(Row(line, dict(zip(columns, cells, strict=False))))
  return columns, rows


def header(name: str, content: bytes) -> list[str]:
  """Returns the columns of a CSV file; the arguments are those of `read`.

  Raises:
    ValueError: The first row is no CSV, or two columns have the same name.
  """
  return _columns(name, _lines(name, content))


def _lines(name: str, content: bytes) -> Iterator[tuple[int, list[str]]]:
  """Yields the number and the cells of each line that has any text."""
  text = _text(name, content)
  stated = _SEP.match(text)
  first = 0
  if stated:
    first, text = 1, text[stated.end() :]
  separator = stated.group(1) if stated else _separator(text)
  reader = csv.reader(io.StringIO(text, newline=''), delimiter=separator)
  while True:
    try:
      cells = next(reader, None)
    except csv.Error as error:
      line = max(first + reader.line_num, 1)
      raise ValueError(f'{name}, line {line}: {error}.') from error
    if cells is None:
      return
    cells = [cell.strip() for cell in cells]
    if any(cells):
      yield first + reader.line_num, cells


def _columns(name: str, lines: Iterator[tuple[int, list[str]]]) -> list[str]:
  _, columns = next(lines, (0, []))
  # Spreadsheets leave empty columns at the right.
  while columns and not columns[-1]:
    columns.pop()
  for column in columns:
    if column and columns.count(column) > 1:
      raise ValueError(
        f'{name} has the column {column!r} twice; each column must have its own name.'
      )
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
