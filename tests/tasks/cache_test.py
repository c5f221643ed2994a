"""Entries are made once, atomically, and made again when damaged or a stranger's."""

import functools
import os
import shutil

import numpy as np
import pytest

from tasks import cache
from tff_ssl.storage import user_key

_ARRAY = np.arange(1000, dtype=np.int32)
pytestmark = pytest.mark.usefixtures('users_cache')


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


_DAMAGES = {
  'short array': lambda entry: _truncate(entry / 'numbers.npy'),
  'empty array': lambda entry: os.truncate(entry / 'numbers.npy', 0),
  'short list': lambda entry: _truncate(entry / 'entry.json'),
  'header': lambda entry: _open_bracket(entry / 'numbers.npy'),
  'wrong list': lambda entry: (entry / 'entry.json').write_text('[]'),
  'deep list': lambda entry: (entry / 'entry.json').write_text('[' * 10**5),
  'no array': lambda entry: (entry / 'numbers.npy').unlink(),
  'long code': lambda entry: (entry / 'entry.mac').write_text('0' * 10**6),
  'other array': lambda entry: np.save(entry / 'numbers.npy', _ARRAY[1:]),
}


@pytest.mark.parametrize('damage', _DAMAGES)
def test_a_damaged_entry_is_made_again(tmp_path, damage):
  build = _Builder()
  cache.fetch(tmp_path, 'entry', build)
  _DAMAGES[damage](tmp_path / 'entry')
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


def test_leftovers_of_killed_processes_are_removed_after_a_day(tmp_path):
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
  (tmp_path / 'link').symlink_to(tmp_path)
  own = [cache.root_for(tmp_path / name) for name in ('', 'link', 'a.tar', 'b/a.tar')]
  assert {str(each.parent) for each in own} == {'/home/user/cache/tff_ssl'}
  assert own[0] == own[1]
  assert len({*own}) == 3


def test_names_that_are_not_utf_8(tmp_path):
  build = _Builder()
  for _ in range(2):
    cache.fetch(tmp_path, 'M\udcfcller', build)
  assert build.calls == 1


def test_a_folder_that_is_not_the_users_is_no_cache(tmp_path, users_cache, monkeypatch):
  """A link may lead anywhere, and a folder of somebody else may change at any time."""
  home, near = users_cache / 'tff_ssl', tmp_path / '.tff_ssl_cache'
  near.mkdir()
  assert cache.root_for(tmp_path) == near
  owner = os.geteuid()
  monkeypatch.setattr(os, 'geteuid', lambda: owner + 1)
  assert cache.root_for(tmp_path).parent == home
  monkeypatch.undo()
  monkeypatch.setenv('XDG_CACHE_HOME', str(users_cache))
  near.rename(tmp_path / 'target')
  for target in ('target', 'nowhere'):
    near.symlink_to(tmp_path / target)
    assert cache.root_for(tmp_path).parent == home
    near.unlink()
  near.write_text('a file')
  assert cache.root_for(tmp_path).parent == home


def _link(entry, elsewhere, name):
  """Puts a link to an equal file elsewhere in the place of a file of the entry."""
  shutil.copytree(entry, elsewhere)
  (entry / name).unlink()
  (entry / name).symlink_to(elsewhere / name)


def _link_folder(entry, elsewhere):
  shutil.copytree(entry, elsewhere)
  shutil.rmtree(entry)
  entry.symlink_to(elsewhere)


def _pipe(entry, _):
  (entry / 'numbers.npy').unlink()
  os.mkfifo(entry / 'numbers.npy')


_OF_STRANGERS = {
  # As another user would have made it, with another key.
  'copy': lambda entry, _: (entry / 'entry.mac').write_text('0' * 64),
  # An entry of the user in the place of another.
  'other name': lambda entry, _: shutil.copytree(
    entry.with_name('other'), entry, dirs_exist_ok=True
  ),
  **{
    f'linked {name}': functools.partial(_link, name=name)
    for name in ('entry.json', 'entry.mac', 'numbers.npy')
  },
  'linked folder': _link_folder,
  'pipe': _pipe,
}


@pytest.mark.parametrize('change', _OF_STRANGERS)
def test_an_entry_that_the_user_did_not_make_is_made_again(tmp_path, change):
  root, elsewhere = tmp_path / 'cache', tmp_path / 'elsewhere'
  cache.fetch(root, 'other', _Builder())
  build = _Builder()
  cache.fetch(root, 'entry', build)
  _OF_STRANGERS[change](root / 'entry', elsewhere)
  kept = sorted(elsewhere.rglob('*'))
  opened = cache.fetch(root, 'entry', build)
  assert build.calls == 2
  np.testing.assert_array_equal(opened.arrays['numbers'], _ARRAY)
  assert not (root / 'entry').is_symlink()
  assert sorted(elsewhere.rglob('*')) == kept


def test_only_what_a_cache_writes_is_deleted(tmp_path):
  """What lies where entries are made, and is not of their kind, stays."""
  root = tmp_path / 'cache'
  thesis = root / 'thesis.partial-2024'
  thesis.mkdir(parents=True)
  (thesis / 'chapter.tex').write_text('x')
  (tmp_path / 'victim').mkdir()
  (tmp_path / 'victim' / 'a.npy').write_text('x')
  (root / 'link.partial-x').symlink_to(tmp_path / 'victim')
  (root / 'note.partial-x').write_text('x')
  (root / 'entry' / 'mine').mkdir(parents=True)
  (root / 'entry' / 'mine' / 'a.npy').write_text('x')
  for path in (*root.iterdir(), tmp_path / 'victim'):
    os.utime(path, (0, 0), follow_symlinks=False)
  before = {path for path in tmp_path.rglob('*') if not path.is_symlink()}
  with pytest.raises(ValueError, match='entry cannot be written or read; remove it'):
    cache.fetch(root, 'entry', _Builder())
  assert {path for path in tmp_path.rglob('*') if not path.is_symlink()} == before


def test_the_key_is_the_users_alone(tmp_path, users_cache):
  cache.fetch(tmp_path / 'cache', 'entry', _Builder())
  home = users_cache / 'tff_ssl'
  assert (home / 'key').stat().st_mode & 0o777 == 0o600
  assert [path.name for path in home.iterdir()] == ['key']


def test_without_a_place_for_the_key_a_process_still_has_a_cache(tmp_path, monkeypatch):
  (tmp_path / 'file').write_text('')
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'file'))
  build = _Builder()
  for _ in range(2):
    cache.fetch(tmp_path / 'cache', 'entry', build)
  assert build.calls == 1
  monkeypatch.setattr(user_key, '_KEY_OF_PROCESS', bytes(32))
  cache.fetch(tmp_path / 'cache', 'entry', build)
  assert build.calls == 2
