"""Folders that can be made, files that are whole, and what strangers put there."""

import os

import pytest

from tff_ssl.storage import files


def test_a_folder_that_can_be_made_is_not_left(tmp_path):
  files.check_folder(tmp_path / 'a' / 'b')
  assert not any(tmp_path.iterdir())
  (tmp_path / 'there').mkdir()
  (tmp_path / 'there' / 'file').touch()
  files.check_folder(tmp_path / 'there')
  assert (tmp_path / 'there' / 'file').exists()


@pytest.mark.parametrize('path', ['file', 'file/run', 'file/a/b'])
def test_a_folder_within_a_file_is_refused(tmp_path, path):
  (tmp_path / 'file').touch()
  with pytest.raises(ValueError, match='/file is a file; it must be a folder'):
    files.check_folder(tmp_path / path)
  assert [each.name for each in tmp_path.iterdir()] == ['file']


def test_a_file_is_read_only_as_far_as_it_may_reach(tmp_path):
  (tmp_path / 'file').write_bytes(b'1234')
  assert files.read_bytes(tmp_path / 'file', 4) == b'1234'
  with pytest.raises(ValueError, match='file has 4 bytes: it must have at most 3'):
    files.read_bytes(tmp_path / 'file', 3)
  # Nobody writes to it: to open it as usual would wait forever.
  os.mkfifo(tmp_path / 'pipe')
  for path in (tmp_path / 'pipe', '/dev/zero', tmp_path):
    with pytest.raises(ValueError, match='is a folder, pipe or device'):
      files.read_bytes(path, 3)


@pytest.mark.parametrize(
  ('content', 'message'),
  [
    (b' ' * (2**24 + 1), '16,777,217 bytes: it must have at most 16,777,216'),
    (b'[' * 10**5, 'is not JSON'),
    (b'\xff', 'is not JSON'),
    (b'1' * 10**4, 'is not JSON'),
    (b'[]', 'holds a list: it must hold an object'),
    (b'[' + b'{},' * 2**20 + b'[]]', '1,048,578 lists and objects: it must have at'),
    (b'[' * 66 + b']' * 66, 'has lists in lists: they must be 64 deep or less'),
    (b'{"a": {"b": 1, "b": 2}}', "'b' is there twice"),
  ],
  ids=['large', 'deep', 'text', 'number', 'list', 'many', 'nested', 'twice'],
)
def test_json_that_is_no_object_of_ours_is_refused(tmp_path, content, message):
  (tmp_path / 'a.json').write_bytes(content)
  with pytest.raises(ValueError, match=rf'a\.json.*{message}'):
    files.read_json(tmp_path / 'a.json')


def _linked(folder, target):
  (folder / 'checkpoints').mkdir()
  (folder / 'checkpoints' / 'link').symlink_to(target)


@pytest.mark.parametrize(
  'make',
  [
    lambda folder: _linked(folder, '../../victim'),
    lambda folder: _linked(folder, folder.with_name('victim')),
    lambda folder: _linked(folder, folder.with_name('run_of_another')),
    lambda folder: _linked(folder, '/'),
    lambda folder: _linked(folder, folder),
    lambda folder: os.mkfifo(folder / 'metrics.csv'),
  ],
)
def test_links_out_of_a_folder_are_refused(tmp_path, make):
  (tmp_path / 'run').mkdir()
  (tmp_path / 'victim').mkdir()
  make(tmp_path / 'run')
  with pytest.raises(ValueError, match=r'is a (link to|pipe or device)'):
    files.check_contained(tmp_path / 'run')


def test_links_within_a_folder_and_to_it_are_taken(tmp_path):
  folder = tmp_path / 'run'
  (folder / 'clients').mkdir(parents=True)
  (folder / 'latest').symlink_to('clients')
  (folder / 'clients' / 'not_yet').symlink_to('../other')
  (folder / 'wandb').mkdir()
  (folder / 'wandb' / 'log').symlink_to('/var/log')
  (tmp_path / 'link').symlink_to(folder)
  files.check_contained(tmp_path / 'link', except_in=('wandb',))
  with pytest.raises(ValueError, match='log is a link to /var/log'):
    files.check_contained(tmp_path / 'link')
