"""Columns of Parquet files."""

import datetime
import decimal

import pyarrow as pa
from pyarrow import parquet
import pytest

from tasks import parquet_rows
from tasks import tables
from tests.worlds import allocations
from tff_ssl.storage import memory


def _file(path, columns):
  parquet.write_table(
    columns if isinstance(columns, pa.Table) else pa.table(columns), path
  )
  return path


def test_cells_are_as_they_were_written(tmp_path):
  columns = {
    'number': [1.5, None, 3.0],
    'whole': [1, 2, None],
    'exact': [decimal.Decimal('1.25'), None, decimal.Decimal('0.50')],
    'yes': [True, None, False],
    'none': [None, None, None],
    'day': [datetime.date(2020, 3, 1), None, datetime.date(2021, 3, 1)],
    'a.b': ['x', None, 'x'],
    'large': pa.array(['x', 'y', None], pa.large_string()),
    'class': pa.array(['u', None, 'v']).dictionary_encode(),
    'group': pa.array([7, None, 8]).dictionary_encode(),
    'unsaid': pa.array(['é'.encode(), None, b'x']),
  }
  path = _file(tmp_path / 't.parquet', columns)
  found, lines = parquet_rows.read(path)
  read = {'large': ['x', 'y', None], 'class': ['u', None, 'v'], 'group': [7, None, 8]}
  assert found == {**columns, **read, 'unsaid': ['é', None, 'x']}
  assert list(lines) == [1, 2, 3]
  assert parquet_rows.header(path) == list(columns)


def test_bytes_that_are_no_text_or_no_parquet_and_no_rows_are_refused(tmp_path):
  path = _file(tmp_path / 't.parquet', {'a': [b'x', b'\xff\xfe']})
  with pytest.raises(ValueError, match=r't\.parquet cannot be read as Parquet: .*UTF8'):
    parquet_rows.read(path)
  path.write_text('width,height')
  with pytest.raises(ValueError, match=r't\.parquet cannot be read as Parquet'):
    parquet_rows.read(path)
  _file(path, {'a': [], 'label': []})
  with pytest.raises(ValueError, match='has 0 rows; it must have columns and rows'):
    parquet_rows.read(path)


def test_cells_of_several_groups_of_rows_follow_each_other(tmp_path):
  texts = [f't{k // 3}' for k in range(30)]
  parquet.write_table(pa.table({'a': texts}), tmp_path / 't.parquet', row_group_size=7)
  assert parquet_rows.read(tmp_path / 't.parquet')[0] == {'a': texts}


def test_the_folder_of_a_file_is_no_column(tmp_path):
  """Of `year=2020/t.parquet` pyarrow makes a column `year`."""
  folder = tmp_path / 'year=2020'
  folder.mkdir()
  path = _file(folder / 't.parquet', {'a': [k + 0.5 for k in range(30)]})
  assert list(parquet_rows.read(path)[0]) == ['a']
  assert tables.load_file(path).shapes == {'features': (1,)}


def test_a_text_that_all_rows_share_takes_its_memory_once(tmp_path, monkeypatch):
  """As texts of their own, 500 of 50 kB take 25 MB, in a file of some kB."""
  texts = pa.array(['x' * 50_000] * 500)
  path = _file(tmp_path / 't.parquet', {'a': range(500), 'label': texts})
  assert path.stat().st_size < 2**16
  monkeypatch.setattr(memory, 'free', lambda: 2**22)
  with allocations.traced(below=2**22):
    found = parquet_rows.read(path)[0]['label']
  assert len(found) == 500
  # What is read is measured, too: here more than the file says.
  monkeypatch.setattr(memory, 'free', iter([2**30, 2**10]).__next__)
  with pytest.raises(ValueError, match=r't\.parquet takes up to .* of memory'):
    parquet_rows.read(path)


def test_one_column_is_in_memory_at_a_time(tmp_path, monkeypatch):
  path = _file(tmp_path / 't.parquet', {f'c{k}': ['x' * 2**20] for k in range(40)})
  held = []
  monkeypatch.setattr(
    memory, 'check', lambda *_: held.append(pa.total_allocated_bytes())
  )
  parquet_rows.read(path)
  assert len(held) == 1 + 40
  assert max(held) - min(held) < 5 * 2**20


@pytest.mark.parametrize(
  ('times', 'message'),
  [
    (pa.array([2**60], pa.timestamp('s')), 'that cannot be read: .*; it must be'),
    (pa.array([0], pa.timestamp('s', 'Nowhere/None')), "that cannot be read: 'Nowhere"),
  ],
)
def test_times_that_python_does_not_know_are_named(tmp_path, times, message):
  path = _file(tmp_path / 't.parquet', {'seen': times})
  with pytest.raises(ValueError, match=rf"has a time in the column 'seen' {message}"):
    parquet_rows.read(path)


@pytest.mark.parametrize(
  ('columns', 'message'),
  [
    ({'a': [[1], [2]]}, r"has list<\w+: int64> in the column 'a'; it must be numbers"),
    ({'a': [{'x': 1}]}, "has struct<x: int64> in the column 'a'; it must be numbers"),
    ({'a': pa.array([b'ab'], pa.binary(2))}, r'has fixed_size_binary\[2\] in the col'),
    (
      pa.Table.from_arrays([pa.array([1]), pa.array([2])], ['a', 'a']),
      "has the column 'a' twice; each column must have its own name",
    ),
    (
      pa.Table.from_arrays([pa.array([1]), pa.array([2])], ['', '']),
      'has 2 columns without a name; one may have none',
    ),
  ],
)
def test_columns_that_are_no_cells_are_named(tmp_path, columns, message):
  path = _file(tmp_path / 't.parquet', columns)
  for read in (parquet_rows.header, parquet_rows.read):
    with pytest.raises(ValueError, match=rf't\.parquet {message}'):
      read(path)
