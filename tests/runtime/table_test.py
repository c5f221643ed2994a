import math

import numpy as np
import pytest

from tff_ssl.runtime import table


def test_rows_and_late_columns(tmp_path):
  rows = table.Table(tmp_path / 't.csv')
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
    table.Table(path).extend(round, cells)
  assert path.read_text() == 'round,client,x\n1,"a, b",\n1,7,\n2,"a, b",0.5\n2,7,\n'
  rows = table.Table(path)
  assert rows.rows()[0] == {'round': '1', 'client': 'a, b'}
  rows.keep_until(1)
  rows.extend(2, cells)
  assert path.read_text() == 'round,client,x\n1,"a, b",\n1,7,\n2,"a, b",0.5\n2,7,\n'
  rows.extend(3, [])
  assert path.read_text().endswith('2,7,\n')


def test_a_round_is_replaced_with_all_after_it(tmp_path):
  path = tmp_path / 't.csv'
  rows = table.Table(path)
  for round in (1, 2, 3):
    rows.extend(round, [{'client': name, 'x': round} for name in 'ab'])
  rows.replace(2, [{'client': 'a', 'x': 7, 'y': 0.5}])
  assert path.read_text() == 'round,client,x,y\n1,a,1,\n1,b,1,\n2,a,7,0.5\n'
  rows.append(3, {'client': 'b'})
  assert path.read_text().endswith('\n3,b,,\n')


def test_two_tables_of_a_file_know_each_other_s_columns(tmp_path):
  """As of `clients.csv`: what clients tell, and how their encoders are evaluated."""
  path = tmp_path / 't.csv'
  first, second = table.Table(path), table.Table(path)
  first.extend(1, [{'client': 'a', 'mu': 0.5, 'late': None}])
  second.replace(1, [{'client': 'a', 'mu': 0.5, 'knn': 0.25}])
  first.extend(2, [{'client': 'b', 'mu': 1.0}])
  assert path.read_text() == 'round,client,mu,knn\n1,a,0.5,0.25\n2,b,1.0,\n'
  first.extend(3, [{'client': 'a', 'mu': None, 'late': 3}])
  assert path.read_text().endswith('mu,knn,late\n1,a,0.5,0.25,\n2,b,1.0,,\n3,a,,,3\n')


def test_floats_read_back_exactly(tmp_path):
  values = [0.1, 1 / 3, float(np.float32(0.1)), -1e300, 5e-324, math.inf]
  rows = table.Table(tmp_path / 't.csv')
  for round, value in enumerate(values):
    rows.append(round, {'x': value})
  assert [float(row['x']) for row in rows.rows()] == values


@pytest.mark.parametrize('cut', range(1, 12))
def test_an_incomplete_last_line_is_dropped(tmp_path, cut):
  path = tmp_path / 't.csv'
  rows = table.Table(path)
  for round in (11, 12, 13):
    rows.append(round, {'loss': 0.25, 'n': 7})
  whole = path.read_bytes()
  assert whole.endswith(b'\n13,0.25,7\n')
  path.write_bytes(whole[:-cut])
  again = table.Table(path)
  kept = [11] if cut == 11 else [11, 12]
  assert [int(row['round']) for row in again.rows()] == kept
  for round in range(kept[-1] + 1, 14):
    again.append(round, {'loss': 0.25, 'n': 7})
  assert path.read_bytes() == whole


def test_later_rows_and_their_columns_are_dropped(tmp_path):
  path = tmp_path / 't.csv'
  rows = table.Table(path)
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
    table.Table(tmp_path / 't.csv').append(1, {'round': 2})
