"""A CSV file that gets one row per round.

`tff.program.CSVFileReleaseManager` is not used. When it appends, a SIGKILL can leave
half a row, which it later reads as a complete row (round 12 becomes round 1). When it
rewrites, each round costs as much as all before it.
"""

import collections
from collections.abc import Collection, Iterable, Iterator, Mapping
import csv
import errno
import hashlib
import io
import os
import pathlib
from typing import TextIO

from tff_ssl.computing import inert
from tff_ssl.storage import files
from tff_ssl.storage import memory

# The table of numbers by client, and its second column.
CLIENTS, CLIENT = 'clients.csv', 'client'
ROUND = 'round'
# How much of the end of what a digest has read is compared before reading on.
_COMPARED = 256
# Digits of a round, so that 64 bits hold it.
_MOST_DIGITS = 18
# None is a blank cell.
Cell = int | float | str | None


class Table:
  """Rows of numbers, or of text, keyed by `round`, the first column.

  The columns are the names in the order of their first values; a row without a value
  for a name has a blank there. Two equal sequences of rows give equal files, byte
  for byte: floats are written so that they are read back exactly. Names and text may
  come from strangers: they are lines (`inert.line`), and in the file they are cells
  that no spreadsheet evaluates (`inert.cell`).
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Opens or starts a table; an incomplete last line is dropped.

    Args:
      path: The file; it appears with the first row.

    Raises:
      ValueError: If a line before an incomplete one is damaged (see `rows`), or the
        rows do not fit into memory.
    """
    self._path = pathlib.Path(path)
    if self._path.exists():
      # It may come from a stranger, and be larger than the memory.
      memory.read_csv(self._path)
      content = self._path.read_bytes()
      if not content.endswith(b'\n'):
        whole = _decode(self._path, _complete(content))
        self._rewrite(_parse(self._path, whole)[1])

  def rows(self) -> list[dict[str, str]]:
    """Returns all rows as written: name -> text, blanks left out.

    Raises:
      ValueError: If a row's cells do not match the header's columns, or it has no
        round.
    """
    return _parse(self._path, self._text())[1] if self._path.exists() else []

  def keep_until(self, round: int) -> None:
    """Drops the rows of later rounds.

    Args:
      round: The last round to keep.
    """
    rows = self.rows()
    earlier = [row for row in rows if int(row[ROUND]) <= round]
    if len(earlier) < len(rows):
      self._rewrite(earlier)

  def check_rounds(self, last: int) -> None:
    """Checks that the rows are those of rounds 1 to `last`, one each and in order.

    Args:
      last: The last round; 0: there is no row.

    Raises:
      ValueError: If a row is missing, doubled, out of order or damaged.
    """
    rounds = [int(row[ROUND]) for row in self.rows()]
    if rounds == list(range(1, last + 1)):
      return
    wrong = (n for n, round in enumerate(rounds, start=1) if n != round or n > last)
    where = next(wrong, len(rounds) + 1)
    there = f'of round {rounds[where - 1]}' if where <= len(rounds) else 'missing'
    raise ValueError(
      f'row {where} is {there} in {self._path}; rows must be those of rounds 1 to '
      f'{last}, each once and in order'
    )

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
      OSError: If they cannot be written; then none of them is written.
    """
    added = [self._row(round, cells) for cells in values]
    if not added:
      return
    columns = self._header()
    if any(name not in columns for row in added for name in row):
      self._rewrite([*self.rows(), *added])
      return
    _append(self._path, _lines(columns, added).encode())

  def replace(self, round: int, values: Iterable[Mapping[str, Cell]]) -> None:
    """Replaces the rows of a round, and of later rounds, by new rows of the round.

    Args:
      round: The rows' round.
      values: For each row, cells by column.

    Raises:
      ValueError: If a value is named `round`.
    """
    added = [self._row(round, cells) for cells in values]
    earlier = [row for row in self.rows() if int(row[ROUND]) < round]
    self._rewrite([*earlier, *added])

  def _row(self, round: int, values: Mapping[str, Cell]) -> dict[str, str]:
    if ROUND in values:
      raise ValueError(f"a metric is named '{ROUND}': that is the key of the rows")
    cells = {inert.line(name): cell_text(cell) for name, cell in values.items()}
    # A blank begins no column, because rows that are read back have none.
    return {ROUND: str(round), **{name: text for name, text in cells.items() if text}}

  def _text(self) -> str:
    return _decode(self._path, self._path.read_bytes())

  def _header(self) -> list[str]:
    """Returns the columns, read again because another `Table` may have added some."""
    if not self._path.exists():
      return []
    with self._path.open(newline='') as file:
      return next(_cells(file), [])

  def _rewrite(self, rows: list[dict[str, str]]) -> None:
    if not rows:
      self._path.unlink(missing_ok=True)
      return
    columns = _columns(rows)
    header = dict(zip(columns, columns, strict=True))
    files.write(self._path, _lines(columns, [header, *rows]))


class TableDigest:
  """A digest of the rows of one file, which `Table` writes, that grows with the table.

  A checkpoint holds digests of the rows until its round. If each digest read the whole
  table, a run that saves after every round would take quadratic time. So rows of
  earlier rounds stay in the hash, and only what was appended since is read.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Begins with no row.

    Args:
      path: The file, which may not exist yet.
    """
    self._path = pathlib.Path(path)
    self._first: int
    self._hash: hashlib.blake2b
    self._rows: list[dict[str, str]]
    self._forget()

  def rows_of(self, round: int) -> list[dict[str, str]]:
    """Returns the rows of a round, as `Table.rows` does.

    Args:
      round: The rows' round. It is quick if no later one was asked for before.

    Raises:
      ValueError: If a row is damaged.
    """
    if round < self._first:
      self._forget()
    self._read()
    before = [row for row in self._rows if int(row[ROUND]) < round]
    self._rows = [row for row in self._rows if int(row[ROUND]) >= round]
    _update(self._hash, before)
    self._first = round
    return [row for row in self._rows if int(row[ROUND]) == round]

  def until(
    self,
    round: int,
    rows: Iterable[Mapping[str, str]],
    columns: Collection[str],
  ) -> str:
    """Returns the digest of all rows of earlier rounds, and some of one round.

    Args:
      round: The last round.
      rows: Those of its rows that count.
      columns: Columns that count in them, because an evaluation may add others later.
    """
    self.rows_of(round)
    digest = self._hash.copy()
    _update(
      digest, ({name: row[name] for name in row if name in columns} for row in rows)
    )
    return digest.hexdigest()

  def _forget(self) -> None:
    # What was read ends here, in a file with this number and header.
    self._end, self._inode, self._header, self._tail = 0, -1, b'', b''
    # The hash has the rows before this round; the others wait.
    self._first, self._rows = 0, []
    self._hash = hashlib.blake2b(digest_size=8)

  def _read(self) -> None:
    """Reads what was appended, or everything if the file was written anew."""
    if not self._path.exists():
      self._forget()
      return
    with self._path.open('rb') as file:
      inode, header = os.fstat(file.fileno()).st_ino, file.readline()
      file.seek(self._end - len(self._tail))
      if (inode, header) != (self._inode, self._header) or file.read(
        len(self._tail)
      ) != self._tail:
        self._forget()
        self._inode, self._header, self._end = inode, header, len(header)
        self._tail = header[-_COMPARED:]
      file.seek(self._end)
      added = file.read()
    self._rows += _parse(self._path, _decode(self._path, self._header + added))[1]
    self._end += len(added)
    self._tail = (self._tail + added)[-_COMPARED:]


def row_of(rows: Iterable[Mapping[str, str]], round: int) -> dict[str, str]:
  """Returns the cells of a round, without its number; none if it has no row."""
  rows_of_round = [row for row in rows if row[ROUND] == str(round)]
  return {k: v for row in rows_of_round for k, v in row.items() if k != ROUND}


def _update(digest: hashlib.blake2b, rows: Iterable[Mapping[str, str]]) -> None:
  for row in rows:
    digest.update(repr(sorted(row.items())).encode())


def _complete(content: bytes) -> bytes:
  """Returns the complete lines; what follows may end within a character."""
  return content[: content.rfind(b'\n') + 1]


def _decode(path: pathlib.Path, content: bytes) -> str:
  """Returns the content of a file, or a part of it, as text."""
  try:
    return content.decode()
  except UnicodeDecodeError as error:
    raise ValueError(f'{path} is damaged: {error}') from error


def read(
  path: str | os.PathLike[str],
) -> tuple[list[str], list[dict[str, str]]]:
  """Reads the complete lines of a table, to which a run may be writing.

  Args:
    path: The file, which may come from a stranger.

  Returns:
    The columns, and the rows as `Table.rows` returns them.

  Raises:
    ValueError: If it cannot be read, does not fit into memory or is damaged; the
      message names it.
  """
  path = pathlib.Path(path)
  try:
    content = memory.read_csv(path)
  except OSError as error:
    raise ValueError(f'{path} cannot be read: {error}.') from error
  text = _decode(path, _complete(content))
  if not text:
    raise ValueError(f'{path} has no header; its first column must be {ROUND}.')
  return _parse(path, text)


def _parse(path: pathlib.Path, text: str) -> tuple[list[str], list[dict[str, str]]]:
  """Returns columns and rows, each in the columns' order, blanks left out."""
  try:
    columns, *lines = _cells(io.StringIO(text)) if text else [[ROUND]]
  except (csv.Error, ValueError) as error:
    raise ValueError(f'{path} is damaged: {error}') from error
  if columns[:1] != [ROUND] or len(set(columns)) < len(columns):
    raise ValueError(
      f'{path} is damaged: its columns are {",".join(columns)[:60]!r}; they '
      f'must be {ROUND!r} and others, each once'
    )
  rows = []
  for number, cells in enumerate(lines, start=1):
    row = dict(zip(columns, cells, strict=False))
    round = row.get(ROUND, '')
    fits = round.isdecimal() and len(round) <= _MOST_DIGITS
    if len(cells) != len(columns) or not fits:
      raise ValueError(
        f'{path} is damaged: row {number} is {",".join(cells)[:60]!r}; it must '
        f'have a round of at most {_MOST_DIGITS} digits, and {len(columns)} cells in '
        'all'
      )
    rows.append({name: value for name, value in row.items() if value})
  return columns, rows


def _columns(rows: Iterable[Mapping[str, str]]) -> list[str]:
  names = (name for row in rows for name in row)
  return list(collections.OrderedDict.fromkeys(names))


def _append(path: pathlib.Path, content: bytes) -> None:
  """Adds all of `content` to a file, or nothing of it.

  `content` is complete lines. After a kill some of them may be missing, and at most one
  line, at the end, is incomplete.

  Raises:
    OSError: If it cannot be written, such as when the disk is full.
  """
  with path.open('ab', buffering=0) as file:
    length = os.fstat(file.fileno()).st_size
    rest = memoryview(content)
    try:
      while rest:
        # A disk that becomes full takes only the first part.
        written = file.write(rest)
        if not written:
          raise OSError(errno.EIO, 'nothing could be written')
        rest = rest[written:]
    except BaseException as error:
      file.truncate(length)
      if isinstance(error, OSError):
        raise OSError(error.errno, error.strerror, str(path)) from error
      raise


def _lines(columns: list[str], rows: Iterable[Mapping[str, str]]) -> str:
  buffer = io.StringIO()
  writer = csv.writer(buffer, lineterminator='\n')
  for row in rows:
    writer.writerow([inert.cell(row.get(name, '')) for name in columns])
  return buffer.getvalue()


def _cells(file: TextIO) -> Iterator[list[str]]:
  return ([inert.of_cell(cell) for cell in line] for line in csv.reader(file))


def cell_text(value: Cell) -> str:
  """Returns a cell as it is written."""
  if value is None:
    return ''
  if isinstance(value, str):
    return inert.line(value)
  return str(value) if isinstance(value, int) else repr(float(value))
