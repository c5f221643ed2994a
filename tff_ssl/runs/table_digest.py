"""A digest of a table's rows that grows with the table.

A checkpoint holds digests of the rows until its round. If each digest read the whole
table, a run that saves after every round would take quadratic time. So rows of earlier
rounds stay in the hash, and only what was appended since is read.
"""

from collections.abc import Collection, Iterable, Mapping
import hashlib
import os
import pathlib

from tff_ssl.runs import round_table

# How much of the end of what was read is compared before reading on.
_COMPARED = 256


class Digest:
  """Digests of the rows of one file, which `round_table.Table` writes."""

  def __init__(self, path: str | os.PathLike[str]):
    """Reads nothing yet.

    Args:
      path: The file, which may not exist yet.
    """
    self._path = pathlib.Path(path)
    self._first: int
    self._hash: hashlib.blake2b
    self._rows: list[dict[str, str]]
    self._forget()

  def rows_of(self, round: int) -> list[dict[str, str]]:
    """Returns the rows of a round, as `round_table.Table.rows` does.

    Args:
      round: Of the rows. It is quick if no later one was asked for before.

    Raises:
      ValueError: If a row is damaged.
    """
    if round < self._first:
      self._forget()
    self._read()
    before = [row for row in self._rows if int(row[round_table.ROUND]) < round]
    self._rows = [row for row in self._rows if int(row[round_table.ROUND]) >= round]
    _update(self._hash, before)
    self._first = round
    return [row for row in self._rows if int(row[round_table.ROUND]) == round]

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
    found = self._hash.copy()
    _update(
      found, ({name: row[name] for name in row if name in columns} for row in rows)
    )
    return found.hexdigest()

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
    self._rows += round_table.parse(
      self._path, round_table.decode(self._path, self._header + added)
    )
    self._end += len(added)
    self._tail = (self._tail + added)[-_COMPARED:]


def _update(digest: hashlib.blake2b, rows: Iterable[Mapping[str, str]]) -> None:
  for row in rows:
    digest.update(repr(sorted(row.items())).encode())
