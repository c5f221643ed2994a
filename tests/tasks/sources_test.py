"""The files of folders and archives: which are read, and why others are not."""

import io
import os
import tarfile

import pytest

from tasks import ignored_files
from tasks import sources
from tests.worlds import data_sets


def _write(folder, *names):
  for name in names:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(name)
  return folder


def _counts(source):
  return {why: len(names) for why, names in source.aside.items() if names}


def test_debris_is_set_aside_wherever_it_is(tmp_path):
  debris = (
    ('__MACOSX/a/._1.jpg', '__MACOSX/x.jpg', 'a/@eaDir/1.jpg/SYNOPHOTO_THUMB_M.jpg')
    + ('a/._1.jpg', 'a/Thumbs.db', 'b/.DS_Store', 'desktop.ini', '.git/objects/1.jpg')
    + ('a/.ipynb_checkpoints/2.jpg', '#recycle/3.jpg', '~$book.xlsx', '.nfs0001')
  )
  # Names that look like it.
  own = ('a/1.jpg', 'a/.hidden.jpg', 'eaDir/1.jpg', 'a/_1.jpg', 'a/~1.jpg')
  folder = _write(tmp_path / 'data', *debris, *own)
  archive = data_sets.tar_of(folder, tmp_path / 'data.tar')
  for path in (folder, archive):
    source = sources.open_source(path)
    assert sorted(source.names) == sorted(own)
    assert {*source.aside[ignored_files.DEBRIS]} == {*debris}
    assert _counts(source) == {ignored_files.DEBRIS: len(debris)}


def test_links_are_followed_once_and_only_where_asked(tmp_path):
  """Two ways into one folder, a way back, and one to the folder around all."""
  folder = _write(tmp_path / 'data', 'a/1', 'a/2')
  outside = _write(tmp_path / 'outside', 'x/3', 'x/y/4', '5')
  (folder / 'a/file').symlink_to(outside / '5')
  (folder / 'b').symlink_to(outside / 'x')
  (folder / 'c').symlink_to(outside / 'x')
  (folder / 'd').symlink_to(folder / 'a')
  (outside / 'x/back').symlink_to(folder)
  (outside / 'x/y/up').symlink_to(outside)
  (outside / 'x/y/self').symlink_to('self')

  closed = sources.open_source(folder)
  assert closed.names == ('a/1', 'a/2')
  assert _counts(closed) == {ignored_files.LINKED: 3, ignored_files.AGAIN: 1}

  source = sources.open_source(folder, follow_links=True)
  assert source.names[:5] == ('a/1', 'a/2', 'a/file', 'b/3', 'b/y/4')
  assert source.names[5:] == ('b/y/up/5',)
  assert source.read('b/y/up/5') == b'5'
  # c, d, back, and x from the folder around it.
  assert _counts(source) == {ignored_files.AGAIN: 4, ignored_files.BROKEN: 1}
  before = source.stamp(source.names)
  (outside / '5').write_text('changed')
  assert source.stamp(source.names) != before


def test_an_archive_holds_what_it_holds_unpacked(tmp_path):
  """With hard links, and links within it and out of it."""
  folder = _write(tmp_path / 'data', 'a/1', 'a/b/2', 'c/3')
  os.link(folder / 'a/1', folder / 'a/hard')
  os.link(folder / 'c/3', folder / 'a/b/hard')
  links = {
    'a/soft': '1',
    'a/b/soft': '../../c/3',
    'c/chain': '../a/soft',
    'c/out': '/etc/passwd',
    'c/folder': '../a',
    'c/self': 'self',
  }
  for name, target in links.items():
    (folder / name).symlink_to(target)
  (folder / 'empty/inner').mkdir(parents=True)
  (folder / 'gone').mkdir()
  os.mkfifo(folder / 'pipe')
  unpacked = sources.open_source(folder)
  packed = sources.open_source(data_sets.tar_of(folder, tmp_path / 'data.tar'))
  assert {*packed.names} == {*unpacked.names}
  assert len(packed.names) == 8
  for name in unpacked.names:
    assert packed.read(name) == unpacked.read(name)
  assert sorted(packed.empty) == sorted(unpacked.empty) == ['empty/inner', 'gone']
  # Out of the folder there is something; out of the archive there is nothing.
  counts = {ignored_files.AGAIN: 1, ignored_files.SPECIAL: 1}
  of_links = {ignored_files.BROKEN: 1, ignored_files.LINKED: 1}
  assert _counts(unpacked) == {**counts, **of_links}
  assert _counts(packed) == {**counts, ignored_files.BROKEN: 2}


def _tar(path, *members):
  """An archive of members: each a name, a content, and a type of tarfile."""
  with tarfile.open(path, 'w') as tar:
    for name, content, kind in members:
      member = tarfile.TarInfo(name)
      member.type = kind
      if kind in (tarfile.LNKTYPE, tarfile.SYMTYPE):
        member.linkname = content.decode()
      else:
        member.size = len(content)
      tar.addfile(member, io.BytesIO(content))
  return path


def test_names_of_an_archive_are_paths_within_it(tmp_path):
  """Those that lead out are set aside, and those of one path are one file."""
  names = ('/c1/abs', './c1/dot', 'c1/../c2/x', 'c1//./two', '//c3/y')
  out = ('../c1/up', 'c1/../../up', '/../up', '..')
  files = [(name, name.encode(), tarfile.REGTYPE) for name in (*names, *out)]
  links = [('/c4/hard', b'/c1/abs', tarfile.LNKTYPE)]
  again = [('c1/abs', b'later', tarfile.REGTYPE)]
  source = sources.open_source(
    _tar(tmp_path / 'data.tar', *files, *links, ('../e', b'', tarfile.DIRTYPE), *again)
  )
  contents = {name: source.read(name).decode() for name in source.names}
  assert contents == {
    'c1/abs': 'later',
    'c1/dot': './c1/dot',
    'c2/x': 'c1/../c2/x',
    'c1/two': 'c1//./two',
    'c3/y': '//c3/y',
    'c4/hard': '/c1/abs',
  }
  assert source.aside[ignored_files.OUTSIDE] == [*out]
  assert _counts(source) == {ignored_files.OUTSIDE: len(out), ignored_files.REPLACED: 1}
  assert list(source.empty) == []


@pytest.mark.parametrize(
  ('name', 'advice'),
  [
    ('pictures.TAR.GZ', 'unpack the archive'),
    ('book.ods', 'save the spreadsheet as'),
  ],
)
def test_files_that_are_no_archive_come_with_advice(tmp_path, name, advice):
  path = tmp_path / name
  path.write_bytes(b'PK')
  with pytest.raises(ValueError, match=f'{name} is a file; .*: {advice}'):
    sources.open_source(path)


def test_the_shallowest_file_is_taken_whatever_its_case(tmp_path):
  folder = _write(tmp_path, 'a/manifest.csv', 'b/c/manifest.csv')
  names = ('manifest.csv', 'manifest.tsv')
  assert sources.shallowest(sources.open_source(folder), names) == 'a/manifest.csv'
  _write(folder, 'b/Manifest.TSV', 'b/MANIFEST.csv', 'z.csv')
  assert sources.shallowest(sources.open_source(folder), names) == 'a/manifest.csv'
  _write(folder, 'Manifest.tsv')
  assert sources.shallowest(sources.open_source(folder), names) == 'Manifest.tsv'
  _write(folder, 'Manifest.csv')
  assert sources.shallowest(sources.open_source(folder), names) == 'Manifest.csv'
