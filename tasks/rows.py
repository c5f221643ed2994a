"""The rows of a CSV file with a header, each with a cell for each column."""

import csv
import io
from typing import NamedTuple

from tff_ssl.runtime import memory


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
    content: The file, UTF-8 with or without a byte order mark.

  Returns:
    The columns, and the rows; lines without any text are skipped.

  Raises:
    ValueError: The file does not fit into memory, is not UTF-8 or no CSV, two columns
      have the same name, or a row does not have as many cells as the header, apart from
      empty ones at its end.
  """
  memory.check_csv(name, content)
  columns = header(name, content)
  reader = csv.reader(io.StringIO(_text(name, content), newline=''))
  rows = []
  try:
    next(reader, None)
    for found in reader:
      cells = [cell.strip() for cell in found]
      if cells in ([], ['']):
        continue
      if len(cells) < len(columns) or any(cells[len(columns) :]):
        raise ValueError(
          f'{name}, line {reader.line_num}, has {len(cells)} cells; the header has '
          f'{len(columns)}: {", ".join(columns)}.'
        )
      rows.append(Row(reader.line_num, dict(zip(columns, cells, strict=False))))
  except csv.Error as error:
    raise ValueError(f'{name}, line {reader.line_num}: {error}.') from error
  return columns, rows


def header(name: str, content: bytes) -> list[str]:
  """Returns the columns of a CSV file; the arguments are those of `read`.

  Raises:
    ValueError: The first row is no CSV, or two columns have the same name.
  """
  reader = csv.reader(io.StringIO(_text(name, content), newline=''))
  try:
    columns = [column.strip() for column in next(reader, [])]
  except csv.Error as error:
    raise ValueError(f'{name}, line 1: {error}.') from error
  for column in columns:
    if column and columns.count(column) > 1:
      raise ValueError(
        f'{name} has the column {column!r} twice; each column must have its own name.'
      )
  return columns


def _text(name: str, content: bytes) -> str:
  try:
    return content.decode('utf-8-sig')
  except UnicodeDecodeError as error:
    raise ValueError(f'{name} is not a UTF-8 text file: {error}.') from error
