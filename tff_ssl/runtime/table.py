"""A CSV file that gets one row per round.

Not `tff.program.CSVFileReleaseManager`: when it appends, a SIGKILL can leave half a
row, which it takes for a whole one afterwards (round 12 becomes round 1); when it
rewrites, each round costs as much as all before it.
"""

import collections
from collections.abc import Iterable, Mapping
import csv
import io
import os
import pathlib

from tff_ssl.runtime import files

# The table of numbers by client, and its second column.
CLIENTS, CLIENT = 'clients.csv', 'client'
_KEY = 'round'
# A blank where it is None.
Cell = int | float | str | None


class Table:
  """Rows of numbers, or of text, keyed by `round`, the first column.

  The columns are the names in the order of their first appearance; a row without a
  value for a name has a blank there. Two equal sequences of rows make equal files, byte
  for byte: floats are written so that they read back exactly.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Opens or starts a table; an incomplete last line is dropped.

    Args:
      path: The file; it appears with the first row.
    """
    self._path = pathlib.Path(path)
    if self._path.exists():
      text = self._path.read_text()
      if not text.endswith('\n'):
        self._rewrite(_parse(text[: text.rfind('\n') + 1]))

  def rows(self) -> list[dict[str, str]]:
    """Returns all rows as written: name -> text, blanks left out."""
    return _parse(self._path.read_text()) if self._path.exists() else []

  def keep_until(self, round: int) -> None:
    """Drops the rows of later rounds.

    Args:
      round: The last round to keep.
    """
    rows = self.rows()
    kept = [row for row in rows if int(row[_KEY]) <= round]
    if len(kept) < len(rows):
      self._rewrite(kept)

  def append(self, round: int, values: Mapping[str, Cell]) -> None:
    """Adds a row.

    Args:
      round: The row's round.
      values: Cells by column.

    Raises:
      ValueError: If a value is named `round`.
    """
    self.extend(round, [values])

  def extend(self, round: int, values: Iterable[Mapping[str, Cell]]) -> None:
    """Adds rows of one round.

    Args:
      round: The rows' round.
      values: For each row, cells by column.

    Raises:
      ValueError: If a value is named `round`.
    """
    added = [self._row(round, cells) for cells in values]
    if not added:
      return
    columns = self._header()
    if any(name not in columns for row in added for name in row):
      self._rewrite([*self.rows(), *added])
      return
    # One write of whole lines: a kill leaves at most one incomplete line at the end.
    with self._path.open('ab', buffering=0) as file:
      file.write(_lines(columns, added).encode())

  def replace(self, round: int, values: Iterable[Mapping[str, Cell]]) -> None:
    """Adds rows of one round in the place of those of this and of later rounds.

    Args:
      round: The rows' round.
      values: For each row, cells by column.

    Raises:
      ValueError: If a value is named `round`.
    """
    added = [self._row(round, cells) for cells in values]
    kept = [row for row in self.rows() if int(row[_KEY]) < round]
    self._rewrite([*kept, *added])

  def _row(self, round: int, values: Mapping[str, Cell]) -> dict[str, str]:
    if _KEY in values:
      raise ValueError(f"a metric is named '{_KEY}': that is the key of the rows")
    return {_KEY: str(round), **{name: _text(cell) for name, cell in values.items()}}

  def _header(self) -> list[str]:
    """Returns the columns; read anew, for another `Table` may have added some."""
    if not self._path.exists():
      return []
    with self._path.open(newline='') as file:
      return next(csv.reader(file), [])

  def _rewrite(self, rows: list[dict[str, str]]) -> None:
    if not rows:
      self._path.unlink(missing_ok=True)
      return
    columns = _columns(rows)
    header = dict(zip(columns, columns, strict=True))
    with files.atomic(self._path) as aside:
      aside.write_text(_lines(columns, [header, *rows]))


def _columns(rows: Iterable[Mapping[str, str]]) -> list[str]:
  names = (name for row in rows for name in row)
  return list(collections.OrderedDict.fromkeys(names))


def _parse(text: str) -> list[dict[str, str]]:
  """Returns the rows in the columns' order, blanks left out."""
  return [
    {name: value for name, value in row.items() if value}
    for row in csv.DictReader(io.StringIO(text))
  ]


def _lines(columns: list[str], rows: Iterable[Mapping[str, str]]) -> str:
  buffer = io.StringIO()
  csv.DictWriter(buffer, columns, lineterminator='\n').writerows(rows)
  return buffer.getvalue()


def _text(value: Cell) -> str:
  if value is None:
    return ''
  return str(value) if isinstance(value, int | str) else repr(float(value))
