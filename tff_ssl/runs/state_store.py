"""The states that clients keep between rounds, on disk, by client id.

One SQLite file. A row is one client's state after one round; the newest row is the
client's state. When a run resumes, rows of rounds after its checkpoint are dropped.
Rows that neither kept checkpoint can still need are pruned. Rows are never overwritten,
so that a run can be killed between any two writes.

SQLite instead of a file per client: a round is one transaction, whatever it changes;
100,000 clients are one file; space that pruning frees is reused, so the file holds a
state for each client that has taken part, and the rounds since the older checkpoint.
The rollback journal instead of the write-ahead log: nobody reads while a round is
written, each byte is written only once, and between rounds there is one file to copy.

A row holds only the bytes of a state, and the file their layout
(`checkpoints.StateLayout`).

The file also holds the number of its rows, sums over them, and its run's identity: a
client without its row would silently begin again. Of a stranger's file, other tables,
views, triggers, larger values and journals that name another file are not opened.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import errno
import functools
import json
import os
import pathlib
import sqlite3
from typing import Any
import weakref
import zlib

from tff_ssl.runs import checkpoints
from tff_ssl.storage import files

NAME = 'client_states.sqlite'
# 'tffs', in SQLite's header: distinguishes the file from other databases.
_APPLICATION_ID = 0x74666673
_FORMAT = 2
# SQLite's own limit for one value.
_MAX_STATE_BYTES = 10**9
# A state of megabytes is a chain of pages: this is a third faster than pages of 4 KiB.
_PAGE_BYTES = 16384

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE states (
  client TEXT NOT NULL, round INTEGER NOT NULL, checksum INTEGER NOT NULL,
  state BLOB NOT NULL, PRIMARY KEY (client, round)
);
CREATE INDEX by_round ON states (round, checksum);
"""
_NEWEST = """
SELECT round, checksum, state FROM states WHERE client = ?
ORDER BY round DESC LIMIT 1
"""
# In a damaged file any cell may be of any type; then a sum differs.
_ROUND = 'coalesce(CAST(round AS INTEGER), 0)'
_CHECKSUM = 'coalesce(CAST(checksum AS INTEGER), 0)'
_FIRST = 'SELECT DISTINCT client FROM states ORDER BY client LIMIT ?'
# Rows with a newer row of the same client whose round was not looked at before.
_SUPERSEDED = f"""
DELETE FROM states WHERE rowid IN (
  SELECT old.rowid FROM states AS new CROSS JOIN states AS old
  ON old.client = new.client AND old.round < new.round
  WHERE new.round > ? AND new.round <= ?
) RETURNING client, {_ROUND}, {_CHECKSUM}
"""
_LATER = f'DELETE FROM states WHERE round > ? RETURNING client, {_ROUND}, {_CHECKSUM}'
# Each query reads only one index, by which rows are found later.
_KEYS = f'SELECT client, {_ROUND} FROM states INDEXED BY sqlite_autoindex_states_1'
_BY_ROUND = """
SELECT count(*), coalesce(sum(round), 0), coalesce(sum(checksum), 0)
FROM states INDEXED BY by_round
"""
_TABLES = (
  'SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name'
)
# Bytes of the largest value that is no state: the layout, a name.
_MOST_BESIDE = 2**24
# The end of a journal that names a super-journal, which SQLite deletes. It is for
# transactions over several databases: ours have none.
_OF_SUPER_JOURNAL = bytes.fromhex('d9d505f920a163d7')
# Errors of the disk, not of the file.
_DISK = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_IOERR: errno.EIO}
# What `meta` holds, besides the format.
_META = {'layout': dict, 'round': int, 'oldest': int, 'rows': list, 'run': str}
# `_summed` of no row.
_NO_ROW = (0, 0, 0, 0)


class ClientStates:
  """The states of one run's clients; only requested states are in memory.

  `resume` opens it.
  """

  def __init__(self, path: str | os.PathLike[str], blank: Any):
    """Initializes the store; `resume` opens the file.

    Args:
      path: The file.
      blank: The state of a client that has not taken part: a nest of arrays. Every
        state has its structure, shapes and types.

    Raises:
      ValueError: If a state takes more than a GB.
    """
    self._path = pathlib.Path(path)
    self._blank = blank
    self._layout = checkpoints.StateLayout(blank)
    if self._layout.num_bytes > _MAX_STATE_BYTES:
      raise ValueError(
        f"a client's state takes {self._layout.num_bytes} bytes: the store takes at "
        f'most {_MAX_STATE_BYTES}'
      )
    self._connection: sqlite3.Connection | None = None

  def resume(self, round: int, run: str = '') -> None:
    """Opens the file and takes it back to what it held after a round.

    Args:
      round: The round of the checkpoint from which a run resumes; at 0 the file is made
        if there is none.
      run: Identity of the run to which the file belongs.

    Raises:
      ValueError: If the file is missing or empty (after round 0), is damaged, is of
        another kind, belongs to another run, has another layout of states, lacks rows,
        or holds no states of that round.
    """
    self.close()
    if round and not (self._path.is_file() and self._path.stat().st_size):
      raise ValueError(
        f'{self._path} is missing or empty: it must hold the states that the clients '
        f'had after round {round}, from which this run resumes'
      )
    _check_journal(self._path)
    with self._errors():
      # Any thread may drop this object, and so close the file.
      connection = sqlite3.connect(
        self._path, isolation_level=None, check_same_thread=False
      )
      try:
        connection.execute('PRAGMA trusted_schema = OFF')
        connection.setlimit(
          sqlite3.SQLITE_LIMIT_LENGTH, self._layout.num_bytes + _MOST_BESIDE
        )
        self._check_kind(connection)
        connection.execute(f'PRAGMA page_size = {_PAGE_BYTES}')
        with _transaction(connection):
          self._create_if_new(connection, run)
          self._check(connection, round, run)
          _drop(connection, _LATER, (round,))
          _set(connection, round=round)
      except BaseException:
        connection.close()
        raise
    self._connection = connection
    # Python's connections lie in cycles: dropping this object closes none.
    weakref.finalize(self, connection.close).atexit = False

  def load(self, client_ids: Iterable[str]) -> collections.OrderedDict[str, Any]:
    """Returns the states of some clients; the blank state where there is none.

    Args:
      client_ids: Ids of any clients.

    Raises:
      ValueError: If the file is damaged.
    """
    states = collections.OrderedDict()
    with self._errors():
      for client_id in client_ids:
        row = self._open.execute(_NEWEST, (client_id,)).fetchone()
        states[client_id] = self._blank if row is None else self._decode(client_id, row)
    return states

  def first_ids(self, most: int) -> list[str]:
    """Returns the first clients that have a state, sorted by id.

    Args:
      most: How many at most.
    """
    with self._errors():
      return [name for (name,) in self._open.execute(_FIRST, (most,))]

  def save(self, round: int, states: Mapping[str, Any]) -> None:
    """Adds the states after a round: all of them or, if killed, none.

    Args:
      round: The round after the last one that was saved or resumed from.
      states: States that the round has changed, by client id; may be empty.

    Raises:
      ValueError: If it is another round, or a state is not like the blank one.
    """
    with self._errors(), _transaction(self._open) as connection:
      meta = _get(connection)
      last, rows = meta['round'], meta['rows']
      if round != last + 1:
        raise ValueError(f'round is {round}: {self._path} needs round {last + 1} next')
      for client_id, state in states.items():
        blob = self._layout.encode(state)
        checksum = _checksum(client_id, round, blob)
        row = client_id, round, checksum, blob
        connection.execute('INSERT INTO states VALUES (?, ?, ?, ?)', row)
        rows = _summed(rows, 1, [row[:3]])
      _set(connection, round=round, rows=rows)

  def prune(self, oldest: int) -> None:
    """Drops the rows that are not needed to resume from a round or a later one.

    Args:
      oldest: The round of the oldest kept checkpoint.
    """
    with self._errors(), _transaction(self._open) as connection:
      pruned = _get(connection)['oldest']
      if oldest > pruned:
        _drop(connection, _SUPERSEDED, (pruned, oldest))
        _set(connection, oldest=oldest)

  def close(self) -> None:
    """Closes the file; idempotent."""
    if self._connection is not None:
      self._connection.close()
      self._connection = None

  @property
  def _open(self) -> sqlite3.Connection:
    if self._connection is None:
      raise RuntimeError(f'{self._path} is not open: `resume` opens it')
    return self._connection

  def _check_kind(self, connection: sqlite3.Connection) -> None:
    kind = connection.execute('PRAGMA application_id').fetchone()[0]
    is_new = not connection.execute('PRAGMA page_count').fetchone()[0]
    if kind != _APPLICATION_ID and not is_new:
      raise ValueError(f'{self._path} is not a database of client states')
    if not is_new and _tables(connection) != _own_tables():
      raise ValueError(
        f'{self._path} is damaged: it has other tables than those of client states'
      )

  def _create_if_new(self, connection: sqlite3.Connection, run: str) -> None:
    if connection.execute('SELECT count(*) FROM sqlite_master').fetchone()[0]:
      return
    _create_tables(connection)
    connection.execute(f'PRAGMA application_id = {_APPLICATION_ID}')
    _set(connection, format=_FORMAT, layout=self._layout.spec, round=0, oldest=0)
    _set(connection, rows=_NO_ROW, run=run)

  def _check(self, connection: sqlite3.Connection, round: int, run: str) -> None:
    """Checks that the file is this run's, lacks no row, and has a round's states."""
    meta = _get(connection)
    if meta.get('format') != _FORMAT:
      raise ValueError(
        f'{self._path} has format {meta.get("format", "absent")}: it must be {_FORMAT}'
      )
    for name, kind in _META.items():
      if not isinstance(meta.get(name), kind):
        raise ValueError(
          f"{self._path} is damaged: its '{name}' is {meta.get(name, 'absent')!r}; it "
          f'must be a JSON value of type {kind.__name__}'
        )
    if difference := self._layout.difference(meta['layout']):
      raise ValueError(f'{self._path} does not fit the algorithm: {difference}')
    if not meta['oldest'] <= round <= meta['round']:
      raise ValueError(
        f'{self._path} holds the states after rounds {meta["oldest"]} to '
        f'{meta["round"]}: the checkpoint that this run resumes from is of round '
        f'{round}'
      )
    if meta['run'] != run:
      raise ValueError(f'{self._path} holds the client states of another run')
    count, rounds, _, keys = _summed(
      _NO_ROW, 1, ((*key, 0) for key in connection.execute(_KEYS))
    )
    by_round = connection.execute(_BY_ROUND).fetchone()
    if by_round[:2] != (count, rounds) or [*by_round, keys] != meta['rows']:
      raise ValueError(
        f'{self._path} has {count} rows of client states, which are not the '
        f'{(meta["rows"] or [0])[0]} rows that were written: a client without its '
        'row would start afresh'
      )

  def _decode(self, client_id: str, row: tuple[int, int, bytes]) -> Any:
    round, checksum, blob = row
    whole = isinstance(blob, bytes) and len(blob) == self._layout.num_bytes
    if not whole or _checksum(client_id, round, blob) != checksum:
      raise ValueError(
        f"{self._path} is damaged: the state of client '{client_id}' after round "
        f'{round} is not what was written'
      )
    return self._layout.decode(blob)

  @contextlib.contextmanager
  def _errors(self) -> Iterator[None]:
    try:
      yield
    except sqlite3.Error as error:
      # The last byte of an extended code is the kind.
      code = getattr(error, 'sqlite_errorcode', 0) & 0xFF
      if code in _DISK:
        number = _DISK[code]
        raise OSError(number, os.strerror(number), str(self._path)) from error
      raise ValueError(f'cannot use the client states {self._path}: {error}') from error


def _check_journal(path: pathlib.Path) -> None:
  """Refuses a journal that names a file: SQLite would delete that, wherever it is.

  Args:
    path: The database.
  """
  journal = path.with_name(f'{path.name}-journal')
  if not journal.exists():
    return
  with journal.open('rb') as file:
    file.seek(-min(len(_OF_SUPER_JOURNAL), journal.stat().st_size), os.SEEK_END)
    if file.read() == _OF_SUPER_JOURNAL:
      raise ValueError(f'{journal} is damaged: it names another file')


def _create_tables(connection: sqlite3.Connection) -> None:
  for statement in _SCHEMA.split(';'):
    connection.execute(statement)


def _tables(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
  """Returns what a database has, with the statements that made it."""
  rows = connection.execute(_TABLES)
  return [(kind, name, ' '.join(sql.split())) for kind, name, sql in rows]


@functools.cache
def _own_tables() -> list[tuple[str, ...]]:
  with contextlib.closing(sqlite3.connect(':memory:')) as connection:
    _create_tables(connection)
    return _tables(connection)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
  """A transaction: everything written inside is kept, durably, or nothing."""
  # Leaving it commits; an exception rolls back.
  with connection:
    connection.execute('BEGIN IMMEDIATE')
    yield connection


def _get(connection: sqlite3.Connection) -> dict[str, Any]:
  rows = connection.execute('SELECT name, value FROM meta')
  return {name: _json(value) for name, value in rows}


def _json(text: Any) -> Any:
  """Returns the JSON value of a text; if it is not JSON, the text."""
  try:
    return files.parse_json(text.encode(), 'a value')
  except (AttributeError, ValueError):
    return str(text)[:60]


def _set(connection: sqlite3.Connection, **values: Any) -> None:
  for name, value in values.items():
    row = name, json.dumps(value)
    connection.execute('INSERT OR REPLACE INTO meta VALUES (?, ?)', row)


def _drop(
  connection: sqlite3.Connection, statement: str, arguments: tuple[int, ...]
) -> None:
  """Drops rows by a statement that returns them, and subtracts them from the sums."""
  dropped = connection.execute(statement, arguments).fetchall()
  _set(connection, rows=_summed(_get(connection)['rows'], -1, dropped))


def _summed(
  sums: Sequence[int], sign: int, rows: Iterable[tuple[str, int, int]]
) -> list[int]:
  """Adds rows to sums: their number, rounds, checksums, and digests of their keys.

  Args:
    sums: The sums before.
    sign: 1 to add the rows, -1 to subtract them.
    rows: Client, round and checksum of each.
  """
  count, rounds, checksums, keys = sums
  for client, round, checksum in rows:
    count, rounds = count + sign, rounds + sign * round
    checksums += sign * checksum
    keys += sign * zlib.crc32(f'{round} {client}'.encode())
  return [count, rounds, checksums, keys]


def _checksum(client_id: str, round: int, blob: bytes) -> int:
  return zlib.crc32(blob, zlib.crc32(f'{round} {client_id}'.encode()))
