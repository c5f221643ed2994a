"""Tests of the store of client states: rounds, pruning, broken files, and bytes."""

import collections
import pathlib
import shutil
import sqlite3
import struct
import tracemalloc

import numpy as np
import pytest

from tff_ssl.runs import state_store


def _state(number):
  return collections.OrderedDict(
    kept=collections.OrderedDict(
      matrix=np.full([2, 3], number, np.float32), flag=np.bool_(number)
    ),
    last_round=np.int32(number),
  )


_BLANK = _state(0)


@pytest.fixture(name='path')
def _path(tmp_path):
  return tmp_path / state_store.NAME


def _open(path, round=0, blank=_BLANK, run='this'):
  store = state_store.ClientStates(path, blank)
  store.resume(round, run)
  return store


def _numbers(store, *client_ids):
  return [int(state['last_round']) for state in store.load(client_ids).values()]


def _filled(path, rounds=5):
  """Client 'a' is in every round, 'b' in the first, 'c' in the second."""
  store = _open(path)
  for round in range(1, rounds + 1):
    names = ['a', *{1: 'b', 2: 'c'}.get(round, '')]
    store.save(round, {name: _state(round) for name in names})
  return store


def _rows(path):
  connection = sqlite3.connect(path)
  rows = connection.execute('SELECT client, round FROM states ORDER BY client, round')
  found = rows.fetchall()
  connection.close()
  return found


def test_a_client_finds_what_it_was_left_with(path):
  store = _filled(path)
  store.close()
  store = _open(path, 5)
  states = store.load(['c', 'nobody', 'a'])
  assert list(states) == ['c', 'nobody', 'a']
  for name, number in (('c', 2), ('nobody', 0), ('a', 5)):
    state = states[name]
    np.testing.assert_array_equal(state['kept']['matrix'], np.full([2, 3], number))
    assert state['kept']['matrix'].dtype == np.float32
    assert bool(state['kept']['flag']) == bool(number)
    assert state['last_round'] == number


def test_the_first_clients_by_id_that_have_a_state(path):
  store = _open(path)
  assert store.first_ids(2) == []
  for round, names in ((1, 'ca'), (2, ['c', 'B', 'ä'])):
    store.save(round, {name: _state(round) for name in names})
  assert store.first_ids(9) == ['B', 'a', 'c', 'ä']
  assert store.first_ids(2) == ['B', 'a']


def test_a_resumed_run_finds_the_states_of_its_round(path):
  _filled(path).close()
  store = _open(path, 3)
  assert _numbers(store, 'a', 'b', 'c') == [3, 1, 2]
  store.save(4, {'b': _state(4)})
  assert _numbers(store, 'a', 'b', 'c') == [3, 4, 2]
  store.close()
  assert _numbers(_open(path, 1), 'a', 'b', 'c') == [1, 1, 0]
  assert _numbers(_open(path, 0), 'a', 'b', 'c') == [0, 0, 0]


def test_pruning_leaves_what_either_checkpoint_needs(path):
  store = _filled(path)
  store.prune(0)
  assert len(_rows(path)) == 7
  store.prune(2)
  assert _rows(path) == [('a', 2), ('a', 3), ('a', 4), ('a', 5), ('b', 1), ('c', 2)]
  store.prune(4)
  assert _rows(path) == [('a', 4), ('a', 5), ('b', 1), ('c', 2)]
  store.close()
  assert _numbers(_open(path, 4), 'a', 'b', 'c') == [4, 1, 2]


def test_the_file_does_not_grow(path):
  blank = collections.OrderedDict(x=np.zeros([25_000], np.float32))
  store = _open(path, blank=blank)
  for round in range(1, 61):
    store.save(round, dict.fromkeys('abc', blank))
    store.prune(round - 2)
  # Three rounds of three states of 100 KB, and the one that pruning comes after.
  assert path.stat().st_size < 13 * 100_000 + 100_000
  store.close()
  assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_round_that_changes_nobody(path):
  store = _open(path)
  store.save(1, {})
  store.close()
  assert _numbers(_open(path, 1), 'a') == [0]


def test_all_of_a_round_is_saved_or_nothing(path):
  store = _filled(path, 2)
  bad = collections.OrderedDict(kept=_BLANK['kept'], last_round=np.int64(3))
  with pytest.raises(ValueError, match="last_round' is int64 \\[\\] there and int32"):
    store.save(3, {'a': _state(3), 'b': bad})
  assert _numbers(store, 'a', 'b') == [2, 1]
  store.save(3, {'a': _state(3)})
  assert _numbers(store, 'a', 'b') == [3, 1]


def _execute(path, statement):
  connection = sqlite3.connect(path)
  with connection:
    connection.execute(statement)
  connection.close()


def _cut(path):
  data = path.read_bytes()
  path.write_bytes(data[: len(data) * 2 // 3])


def _overwrite_state(path):
  data = path.read_bytes()
  # A number in the middle of a state; pages and records stay sound.
  old = np.full([6], 5, np.float32).tobytes()
  assert data.count(old) == 1
  path.write_bytes(data.replace(old, np.full([6], 6, np.float32).tobytes()))


def _another_database(path):
  path.unlink()
  _execute(path, 'CREATE TABLE states (client TEXT)')


@pytest.mark.parametrize(
  ('damage', 'message'),
  [
    (lambda path: path.unlink(), 'is missing or empty'),
    (lambda path: path.write_bytes(b''), 'is missing or empty'),
    (lambda path: path.write_bytes(b'no database' * 1000), 'not a database'),
    (_cut, 'malformed'),
    (_another_database, 'is not a database of client states'),
    (_overwrite_state, "the state of client 'a' after round 5 is not what was"),
  ],
)
def test_damaged_file_is_refused_in_one_sentence(path, damage, message):
  _filled(path).close()
  damage(path)
  with pytest.raises(ValueError, match=message) as error:
    _open(path, 5).load(['a'])
  assert str(path) in str(error.value)
  assert '\n' not in str(error.value)


@pytest.mark.parametrize('cell', ['5', "''", 'CAST(zeroblob(29) AS TEXT)'])
def test_a_state_of_another_type_is_not_what_was_written(path, cell):
  _filled(path).close()
  _execute(path, f"UPDATE states SET state = {cell} WHERE client = 'b'")
  with pytest.raises(ValueError, match="client 'b' after round 1 is not what was"):
    _open(path, 5).load(['a', 'b'])


def test_damage_is_seen_when_a_new_run_begins_too(path):
  path.write_bytes(b'no database' * 1000)
  with pytest.raises(ValueError, match='not a database'):
    _open(path)
  assert path.read_bytes() == b'no database' * 1000


def test_states_of_another_algorithm_are_refused(path):
  _filled(path).close()
  # What differs and how: checkpoints_test.
  message = "does not fit the algorithm: 'state/x' is absent there and float32 \\[\\]"
  with pytest.raises(ValueError, match=message):
    _open(path, 5, {**_BLANK, 'x': np.float32(0)})


def test_states_of_another_round_are_refused(path):
  store = _filled(path)
  store.prune(3)
  store.close()
  for round in (2, 6):
    with pytest.raises(ValueError, match=f'rounds 3 to 5: .* is of round {round}'):
      _open(path, round)


@pytest.mark.parametrize(
  ('statement', 'message'),
  [
    (
      "DELETE FROM states WHERE client = 'b'",
      'has 6 rows of .* not the 7 rows that',
    ),
    ('DELETE FROM states', 'has 0 rows of client .* not the 7 rows that'),
    ("UPDATE states SET round = 4 WHERE client = 'c'", 'not the 7 rows that were'),
    ("UPDATE states SET client = 'd' WHERE client = 'c'", 'not the 7 rows that were'),
    ('UPDATE states SET checksum = 5 WHERE round = 3', 'not the 7 rows that were'),
    ("UPDATE states SET round = 'x' WHERE round = 3", 'not the 7 rows that were'),
    ("UPDATE states SET round = x'03' WHERE round = 3", 'not the 7 rows that were'),
    ("UPDATE states SET checksum = x'05' WHERE round = 3", 'not the 7 rows that were'),
    (
      """UPDATE meta SET value = '{"state/x": 5}' WHERE name = 'layout'""",
      "'state/x' is 5 there and absent here",
    ),
    ("DELETE FROM meta WHERE name = 'format'", 'has format absent: it must be 2'),
    ("DELETE FROM meta WHERE name = 'round'", "its 'round' is 'absent'; it must be a"),
    ("UPDATE meta SET value = '[' WHERE name = 'rows'", "its 'rows' is '\\['; it must"),
    ('DROP TABLE meta', 'it has other tables than those'),
  ],
)
def test_rows_that_are_missing_or_changed_are_noticed(path, statement, message):
  _filled(path).close()
  _execute(path, statement)
  with pytest.raises(ValueError, match=message) as error:
    _open(path, 5)
  assert str(path) in str(error.value)


_TRIGGER = 'CREATE TRIGGER t AFTER INSERT ON states BEGIN DELETE FROM states; END'
_VIEW = """
CREATE VIEW endless AS WITH RECURSIVE n(x) AS (
  SELECT 1 UNION ALL SELECT x + 1 FROM n
) SELECT x FROM n
"""


@pytest.mark.parametrize(
  'statements',
  [
    (_TRIGGER,),
    (_VIEW,),
    ('CREATE TABLE other (a)',),
    ('ALTER TABLE states RENAME TO others', 'CREATE VIEW states AS SELECT 1'),
    ('DROP INDEX by_round',),
  ],
)
def test_tables_that_are_not_ours_are_refused(path, statements):
  """What a stranger has put into the schema would run with our statements."""
  _filled(path).close()
  for statement in statements:
    _execute(path, statement)
  with pytest.raises(ValueError, match='it has other tables than those of client'):
    _open(path, 5)


@pytest.mark.parametrize(
  'statement',
  [
    'UPDATE states SET state = zeroblob(100000000) WHERE client = "b"',
    'UPDATE states SET client = hex(zeroblob(50000000)) WHERE client = "b"',
    'INSERT INTO meta VALUES ("x", hex(zeroblob(50000000)))',
  ],
)
def test_a_value_that_is_larger_than_any_of_ours_takes_no_memory(path, statement):
  _filled(path).close()
  _execute(path, statement)
  tracemalloc.start()
  with pytest.raises(ValueError, match=r'string or blob too big|not the 7 rows'):
    _numbers(_open(path, 5), 'b')
  _, most = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  assert most < 2**24


def _journal(path, victim):
  """Leaves a transaction as a kill does, with a journal that names a file."""
  copy = path.with_name('copy')
  connection = sqlite3.connect(path, isolation_level=None)
  connection.execute('PRAGMA cache_size = 1')
  connection.execute('BEGIN')
  connection.execute('INSERT INTO states VALUES ("x", 9, 0, zeroblob(1000000))')
  journal = pathlib.Path(f'{path}-journal')
  shutil.copy(path, copy)
  content = journal.read_bytes()
  connection.execute('ROLLBACK')
  connection.close()
  copy.replace(path)
  name = str(victim).encode()
  # https://www.sqlite.org/fileformat.html and `readSuperJournal` in pager.c: a page
  # that does not exist, the name, its length, the sum of its bytes, and the mark.
  end = struct.pack('>I', 2**30 // 16384 + 1) + name
  end += struct.pack('>II', len(name), sum(name))
  journal.write_bytes(content + end + bytes.fromhex('d9d505f920a163d7'))


def test_a_journal_deletes_no_file_that_it_names(path, tmp_path):
  victim = tmp_path / 'thesis.tex'
  _filled(path).close()
  before = path.read_bytes()
  _journal(path, victim)
  victim.write_text('x')
  with pytest.raises(ValueError, match='journal is damaged: it names another file'):
    _open(path, 5)
  assert victim.exists()
  # SQLite itself does, or the test would show nothing; it also undoes the transaction.
  connection = sqlite3.connect(path)
  connection.execute('SELECT count(*) FROM states').fetchall()
  connection.close()
  assert not victim.exists()
  assert path.read_bytes() == before


def test_rows_are_counted_over_pruning_and_resuming(path):
  store = _filled(path)
  store.prune(2)
  store.close()
  store = _open(path, 4)
  store.save(5, {'b': _state(5)})
  store.prune(4)
  store.close()
  assert _rows(path) == [('a', 4), ('b', 1), ('b', 5), ('c', 2)]
  assert _numbers(_open(path, 5), 'a', 'b', 'c') == [4, 5, 2]


def test_states_of_another_run_are_refused(path):
  _filled(path).close()
  for round in (0, 5):
    with pytest.raises(ValueError, match='holds the client states of another run'):
      _open(path, round, run='other')


def test_rounds_come_one_after_another(path):
  store = _filled(path, 2)
  for round in (2, 4):
    with pytest.raises(ValueError, match=f'round is {round}: .* needs round 3 next'):
      store.save(round, {})


def test_store_must_be_open(path):
  store = state_store.ClientStates(path, _BLANK)
  store.close()
  with pytest.raises(RuntimeError, match='is not open'):
    store.load(['a'])


def test_states_that_sqlite_cannot_take(path, monkeypatch):
  monkeypatch.setattr(state_store, '_MAX_STATE_BYTES', 28)
  with pytest.raises(ValueError, match='takes 29 bytes'):
    state_store.ClientStates(path, _BLANK)
