"""What does not fit into memory is refused by arithmetic."""

import pytest

from tasks import csv_rows
from tests.worlds import allocations
from tff_ssl.storage import memory


def test_a_container_has_what_its_limit_leaves(tmp_path, monkeypatch):
  there = memory.free()
  assert memory.total() > there > 0
  limits = tmp_path / 'max', tmp_path / 'missing', tmp_path / 'number'
  limits[0].write_text('max\n')
  limits[2].write_text(f'{2**20}\n')
  monkeypatch.setattr(memory, '_LIMITS', [*map(str, limits)])
  assert memory.free() == memory.total() == 2**20
  with pytest.raises(ValueError, match=r'x takes up to 2.0 GiB .* 0.0 GiB are free'):
    memory.check(2**31, 'x')
  memory.check(2**20, 'x')


@pytest.mark.parametrize(
  'content',
  [
    b'a\n' + b'7\n' * 20_000,
    b','.join(b'%d' % k for k in range(50)) + b'\n' + (b'77,' * 49 + b'7\n') * 500,
    b'a,b\r' + b'7,x\r' * 10_000,
    b'a,b\n' + (b'x' * 500 + b',y\n') * 1000,
    b'a,b\n' + ('\U0001f600' * 200 + ',y\n').encode() * 500,
  ],
  ids=['rows', 'cells', 'carriage returns', 'bytes', 'wide'],
)
def test_rows_take_no_more_than_is_counted(content, monkeypatch):
  """And not so much less that what fits is refused."""
  with allocations.traced() as taken:
    csv_rows.read('t.csv', content)
  monkeypatch.setattr(memory, 'free', lambda: taken.most)
  with pytest.raises(ValueError, match=r't\.csv takes up to'):
    memory.check_csv('t.csv', content)
  monkeypatch.setattr(memory, 'free', lambda: 3 * taken.most)
  memory.check_csv('t.csv', content)


def test_a_file_that_does_not_fit_is_not_read(tmp_path, monkeypatch):
  monkeypatch.setattr(memory, 'free', lambda: 8 * 2**20)
  with (tmp_path / 't.csv').open('wb') as file:
    file.truncate(2**30)
  with pytest.raises(ValueError, match=r'1,073,741,824 bytes: it must have at most'):
    memory.read_csv(tmp_path / 't.csv')
