import errno
import hashlib
import math
import os

import numpy as np
import pytest

from tff_ssl.runs import round_table


def test_rows_and_late_columns(tmp_path):
  rows = round_table.Table(tmp_path / 't.csv')
  rows.append(1, {'loss': 0.1, 'n': 3})
  rows.append(2, {'loss': 1e-30, 'n': 4})
  rows.append(3, {'loss': 2.0, 'n': 5, 'linear/accuracy': 0.5})
  rows.append(4, {'n': 6})
  assert (tmp_path / 't.csv').read_text() == (
    'round,loss,n,linear/accuracy\n1,0.1,3,\n2,1e-30,4,\n3,2.0,5,0.5\n4,,6,\n'
  )


def test_several_rows_a_round_of_numbers_text_and_blanks(tmp_path):
  path = tmp_path / 't.csv'
  for round in (1, 2):
    cells = [
      {'client': 'a, b', 'x': 0.5 if round > 1 else None},
      {'client': '7', 'x': None},
    ]
    round_table.Table(path).extend(round, cells)
  assert path.read_text() == 'round,client,x\n1,"a, b",\n1,7,\n2,"a, b",0.5\n2,7,\n'
  rows = round_table.Table(path)
  assert rows.rows()[0] == {'round': '1', 'client': 'a, b'}
  rows.keep_until(1)
  rows.extend(2, cells)
  assert path.read_text() == 'round,client,x\n1,"a, b",\n1,7,\n2,"a, b",0.5\n2,7,\n'
  rows.extend(3, [])
  assert path.read_text().endswith('2,7,\n')


def test_a_round_is_replaced_with_all_after_it(tmp_path):
  path = tmp_path / 't.csv'
  rows = round_table.Table(path)
  for round in (1, 2, 3):
    rows.extend(round, [{'client': name, 'x': round} for name in 'ab'])
  rows.replace(2, [{'client': 'a', 'x': 7, 'y': 0.5}])
  assert path.read_text() == 'round,client,x,y\n1,a,1,\n1,b,1,\n2,a,7,0.5\n'
  rows.append(3, {'client': 'b'})
  assert path.read_text().endswith('\n3,b,,\n')


def test_two_tables_of_a_file_know_each_other_s_columns(tmp_path):
  """As of `clients.csv`: what clients tell, and how their encoders are evaluated."""
  path = tmp_path / 't.csv'
  first, second = round_table.Table(path), round_table.Table(path)
  first.extend(1, [{'client': 'a', 'mu': 0.5, 'late': None}])
  second.replace(1, [{'client': 'a', 'mu': 0.5, 'knn': 0.25}])
  first.extend(2, [{'client': 'b', 'mu': 1.0}])
  assert path.read_text() == 'round,client,mu,knn\n1,a,0.5,0.25\n2,b,1.0,\n'
  first.extend(3, [{'client': 'a', 'mu': None, 'late': 3}])
  assert path.read_text().endswith('mu,knn,late\n1,a,0.5,0.25,\n2,b,1.0,,\n3,a,,,3\n')


def test_floats_read_back_exactly(tmp_path):
  values = [0.1, 1 / 3, float(np.float32(0.1)), -1e300, 5e-324, math.inf]
  rows = round_table.Table(tmp_path / 't.csv')
  for round, value in enumerate(values):
    rows.append(round, {'x': value})
  assert [float(row['x']) for row in rows.rows()] == values


# Some of them end within a character.
@pytest.mark.parametrize('cut', range(1, 12))
@pytest.mark.parametrize('values', [{'loss': 0.25, 'n': 7}, {'client': 'é😀'}])
def test_an_incomplete_last_line_is_dropped(tmp_path, values, cut):
  path = tmp_path / 't.csv'
  rows = round_table.Table(path)
  for round in (11, 12, 13):
    rows.append(round, values)
  whole = path.read_bytes()
  assert whole.endswith(f'\n13,{",".join(map(str, values.values()))}\n'.encode())
  path.write_bytes(whole[:-cut])
  again = round_table.Table(path)
  kept = [11] if cut == 11 else [11, 12]
  assert [int(row['round']) for row in again.rows()] == kept
  for round in range(kept[-1] + 1, 14):
    again.append(round, values)
  assert path.read_bytes() == whole


def test_columns_are_in_the_order_of_their_first_values_after_a_kill_too(tmp_path):
  path = tmp_path / 't.csv'
  told = [
    [{'client': 'a', 'late': None, 'mu': 0.5}, {'client': 'b', 'late': '', 'mu': 1.0}],
    [{'client': 'b', 'late': 3, 'mu': 1.0}],
  ]
  rows = round_table.Table(path)
  rows.extend(1, told[0])
  rows.extend(2, told[1])
  whole = 'round,client,mu,late\n1,a,0.5,\n1,b,1.0,\n2,b,1.0,3\n'
  assert path.read_text() == whole
  rows.keep_until(1)
  rows.extend(2, told[1])
  assert path.read_text() == whole


def test_later_rows_and_their_columns_are_dropped(tmp_path):
  path = tmp_path / 't.csv'
  rows = round_table.Table(path)
  rows.append(1, {'loss': 0.5})
  before = path.read_bytes()
  rows.append(2, {'loss': 0.5, 'late': 1})
  rows.keep_until(1)
  assert path.read_bytes() == before
  rows.append(2, {'other': 1})
  assert path.read_text() == 'round,loss,other\n1,0.5,\n2,,1\n'
  rows.keep_until(0)
  assert not path.exists()
  rows.append(1, {'x': 1})
  assert path.read_text() == 'round,x\n1,1\n'


def test_a_metric_cannot_be_named_round(tmp_path):
  with pytest.raises(ValueError, match="named 'round'"):
    round_table.Table(tmp_path / 't.csv').append(1, {'round': 2})


def disk_that_takes(monkeypatch, *sizes):
  """Lets writes to files take so many bytes each, then none: the disk is full."""
  left = list(sizes)
  original = round_table.pathlib.Path.open

  class Full:
    def __init__(self, file):
      self._file = file

    def __enter__(self):
      return self

    def __exit__(self, *_):
      self._file.close()

    def __getattr__(self, name):
      return getattr(self._file, name)

    def write(self, content):
      if not left:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
      return self._file.write(bytes(content)[: left.pop(0)])

  def opened(path, mode='r', *arguments, **named):
    file = original(path, mode, *arguments, **named)
    return Full(file) if mode == 'ab' else file

  monkeypatch.setattr(round_table.pathlib.Path, 'open', opened)


def test_a_write_that_is_cut_short_is_continued(tmp_path, monkeypatch):
  rows = round_table.Table(tmp_path / 't.csv')
  rows.append(1, {'loss': 0.5})
  disk_that_takes(monkeypatch, 2, 1, 100)
  rows.append(2, {'loss': 0.25})
  assert (tmp_path / 't.csv').read_text() == 'round,loss\n1,0.5\n2,0.25\n'


@pytest.mark.parametrize('sizes', [(), (3,), (7, 2)])
def test_rows_that_a_full_disk_does_not_take_are_not_there(
  tmp_path, monkeypatch, sizes
):
  path = tmp_path / 't.csv'
  rows = round_table.Table(path)
  rows.append(1, {'loss': 0.5})
  with monkeypatch.context() as patch:
    disk_that_takes(patch, *sizes)
    with pytest.raises(OSError, match='No space left on device') as full:
      rows.extend(2, [{'loss': 0.25}, {'loss': 0.75}])
  assert full.value.filename == str(path)
  assert path.read_text() == 'round,loss\n1,0.5\n'
  # The disk was full for a moment.
  rows.append(2, {'loss': 0.125})
  assert path.read_text() == 'round,loss\n1,0.5\n2,0.125\n'


@pytest.mark.parametrize(
  'damage',
  ['2', '2,0.5,1', ',0.5', 'x,0.5', 'inf,0.5', '2,0.53,0.1', '']
  + ['1000000000000000000,0.5'],
)
def test_a_damaged_row_is_refused(tmp_path, damage):
  path = tmp_path / 't.csv'
  path.write_text(f'round,loss\n1,0.5\n{damage}\n3,0.5\n')
  rows = round_table.Table(path)
  with pytest.raises(ValueError, match=r't\.csv is damaged: row 2 is .* 2 cells'):
    rows.keep_until(1)


@pytest.mark.parametrize(
  ('rounds', 'message'),
  [
    ([1, 2], 'row 3 is missing'),
    ([1, 3], 'row 2 is of round 3'),
    ([1, 2, 2, 3], 'row 3 is of round 2'),
    ([2, 1, 3], 'row 1 is of round 2'),
    ([], 'row 1 is missing'),
    ([1, 2, 3, 4], 'row 4 is of round 4'),
  ],
)
def test_rounds_that_are_not_there_exactly_once_are_refused(tmp_path, rounds, message):
  rows = round_table.Table(tmp_path / 't.csv')
  for round in rounds:
    rows.append(round, {'loss': 0.5})
  with pytest.raises(ValueError, match=f'{message} in .*; .*1 to 3, each once'):
    rows.check_rounds(3)


@pytest.mark.parametrize(
  ('content', 'message'),
  [
    (b'loss,n\n0.5,1\n', "its columns are 'loss,n'; they must be 'round' and others"),
    (b'n,round\n1,1\n', "its columns are 'n,round'; they must be"),
    (b'round,n,n\n1,1,2\n', "its columns are 'round,n,n'; they must be"),
    (b'round,n\n1,\xff\n', r"is damaged: 'utf-8' codec"),
    (b'round,n\n1,"' + b'x' * 200_000 + b'"\n', 'is damaged: field larger'),
  ],
)
def test_files_that_are_no_tables_are_named(tmp_path, content, message):
  path = tmp_path / 't.csv'
  path.write_bytes(content)
  with pytest.raises(ValueError, match=rf't\.csv .*{message}|t\.csv {message}'):
    round_table.Table(path).rows()


def _whole(path, last, columns):
  """All rows up to a round, read at once; of the last round's some columns count."""
  found = hashlib.blake2b(digest_size=8)
  for row in round_table.Table(path).rows():
    if int(row['round']) < last:
      found.update(repr(sorted(row.items())).encode())
    elif int(row['round']) == last:
      cells = {name: cell for name, cell in row.items() if name in columns}
      found.update(repr(sorted(cells.items())).encode())
  return found.hexdigest()


def test_growing_digest_equals_one_hash_of_all_rows(tmp_path):
  path = tmp_path / 't.csv'
  generator = np.random.default_rng(0)
  written, grown = round_table.Table(path), round_table.TableDigest(path)
  columns = ['round', 'client', 'a', 'b']
  for round in range(1, 40):
    names = ['client', 'a', 'b', *(['c'] if round in (9, 30) else [])]
    rows = [
      {name: float(generator.normal()) for name in names}
      for _ in range(int(generator.integers(1, 4)))
    ]
    # A new column, in round 9, writes the file anew.
    written.extend(round, rows)
    if round == 20:
      # As an evaluation completes the last round.
      written.replace(round, [{**row, 'd': 1} for row in rows])
    if round % 3:
      continue
    for last in (round, round - 1, round):
      found = grown.until(last, grown.rows_of(last), columns)
      assert found == _whole(path, last, columns)
  before = grown.until(39, grown.rows_of(39), columns)
  path.write_text(path.read_text().replace('0.', '1.', 1))
  changed = round_table.TableDigest(path)
  assert changed.until(39, changed.rows_of(39), columns) != before
  path.unlink()
  assert grown.rows_of(39) == []
