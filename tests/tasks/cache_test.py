"""Entries are made once, atomically, and made again when damaged."""

import os

import numpy as np
import pytest

from tasks import cache

_ARRAY = np.arange(1000, dtype=np.int32)


class _Builder:
  """Counts how often an entry is made."""

  def __init__(self):
    self.calls = 0

  def __call__(self, folder):
    self.calls += 1
    np.save(folder / 'numbers.npy', _ARRAY)
    return {'calls': self.calls}


def test_a_hit_gives_the_same_arrays_without_building(tmp_path):
  build = _Builder()
  first = cache.fetch(tmp_path / 'cache', 'entry', build)
  second = cache.fetch(tmp_path / 'cache', 'entry', build)
  assert build.calls == 1
  np.testing.assert_array_equal(first.arrays['numbers'], _ARRAY)
  np.testing.assert_array_equal(second.arrays['numbers'], _ARRAY)
  assert second.info == {'calls': 1}
  assert not second.arrays['numbers'].flags.writeable


def _truncate(path):
  os.truncate(path, path.stat().st_size // 2)


def _open_bracket(path):
  """Damages NumPy's header so that its parser finds no end."""
  path.write_bytes(path.read_bytes().replace(b'(1000,)', b'(1000,('))


@pytest.mark.parametrize(
  'damage',
  [
    lambda entry: _truncate(entry / 'numbers.npy'),
    lambda entry: os.truncate(entry / 'numbers.npy', 0),
    lambda entry: _truncate(entry / 'entry.json'),
    lambda entry: _open_bracket(entry / 'numbers.npy'),
    lambda entry: (entry / 'entry.json').write_text('[]'),
    lambda entry: (entry / 'entry.json').write_text('[' * 10**5),
    lambda entry: (entry / 'numbers.npy').unlink(),
    lambda entry: np.save(entry / 'numbers.npy', _ARRAY[1:]),
  ],
  ids=[
    'short array',
    'empty array',
    'short list',
    'header',
    'wrong list',
    'deep list',
    'no array',
    'other array',
  ],
)
def test_a_damaged_entry_is_made_again(tmp_path, damage):
  build = _Builder()
  cache.fetch(tmp_path, 'entry', build)
  damage(tmp_path / 'entry')
  repaired = cache.fetch(tmp_path, 'entry', build)
  assert build.calls == 2
  np.testing.assert_array_equal(repaired.arrays['numbers'], _ARRAY)


def test_a_failed_build_leaves_nothing(tmp_path):
  def build(folder):
    np.save(folder / 'numbers.npy', _ARRAY)
    raise RuntimeError('interrupted')

  with pytest.raises(RuntimeError, match='interrupted'):
    cache.fetch(tmp_path, 'entry', build)
  assert not list(tmp_path.iterdir())


def test_a_faster_process_wins(tmp_path):
  other = _Builder()

  def build(folder):
    cache.fetch(tmp_path, 'entry', other)
    return _Builder()(folder)

  entry = cache.fetch(tmp_path, 'entry', build)
  np.testing.assert_array_equal(entry.arrays['numbers'], _ARRAY)
  assert [path.name for path in tmp_path.iterdir()] == ['entry']


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path):
  for name, age in (('old', 2 * 24 * 3600), ('new', 0)):
    folder = tmp_path / f'{name}.partial-x'
    folder.mkdir()
    time = folder.stat().st_mtime - age
    os.utime(folder, (time, time))
  cache.fetch(tmp_path, 'entry', _Builder())
  assert {path.name for path in tmp_path.iterdir()} == {'entry', 'new.partial-x'}


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(ValueError, match='cannot be written'):
    cache.fetch(tmp_path / 'file', 'entry', _Builder())


def test_the_cache_lies_next_to_the_data_or_with_the_user(tmp_path, monkeypatch):
  assert cache.root_for(tmp_path / 'a.tar') == tmp_path / '.tff_ssl_cache'
  monkeypatch.setattr(os, 'access', lambda *_: False)
  monkeypatch.setenv('XDG_CACHE_HOME', '/home/user/cache')
  assert str(cache.root_for(tmp_path)) == '/home/user/cache/tff_ssl'
