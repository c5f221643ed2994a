"""Every file of a folder is counted once, and what is odd is said.

Folders are made up by hypothesis, the same ones each time.
"""

import json
import os
import pathlib
import tempfile

import hypothesis
from hypothesis import strategies
import pytest

from tasks import image_folders
from tasks import intake
from tests.worlds import pictures
from tff_ssl.computing import inert

_SETTINGS = hypothesis.settings(
  max_examples=50, derandomize=True, deadline=None, database=None
)
_FOLDERS = strategies.sampled_from(
  ['a', 'A', 'b', 'é', 'e\u0301', 'train', 'Test', 'val', '__MACOSX', '@eaDir', '.git']
  + ['\udce4', 'a\u200b', ' b', '=1+1', '$RECYCLE.BIN', '.tff_ssl_cache']
)
_FILES = strategies.sampled_from(
  ['1.jpg', '2.JPG', '3.gif', '4.jfif', '5.dcm', '6.heic', 'x.txt', 'no_suffix']
  + [
    '.x.jpg',
    '._1.jpg',
    'Thumbs.db',
    '.DS_Store',
    'desktop.ini',
    '1_segmentation.png',
    'a.zip',
  ]
  + ['manifest.csv', 'b.nii.gz', '\udcff.jpg', 'n\xa0b.jpg', '-rf', '{x}.jpg', '%s.jpg']
)
_BYTES = {
  **{
    f'picture {k}': pictures.jpeg(level, (8, 8)) for k, level in enumerate((0, 90, 200))
  },
  'empty': b'',
  'cut off': pictures.truncated_jpeg(),
}
_CONTENTS = strategies.sampled_from(
  [*_BYTES, *_BYTES, 'inside', 'outside', 'nowhere', 'folder', 'linked folder', 'pipe']
)
# Most folders can be loaded: two classes, with splits or without.
_BASES = strategies.sampled_from([[['p'], ['q']], [['train', 'p'], ['TEST', 'q']]])
_STRANGE = strategies.lists(
  strategies.tuples(strategies.lists(_FOLDERS, max_size=2), _FILES, _CONTENTS),
  max_size=14,
)


@strategies.composite
def _trees(draw):
  base = draw(_BASES)
  kept = [(parts, f'{k}.jpg', f'picture {k}') for parts in base for k in range(2)]
  # What is strange is in the folders of what is not, or beside these.
  start = strategies.sampled_from([[], *base])
  strange = [(draw(start) + parts, *file) for parts, *file in draw(_STRANGE)]
  return [*kept, *strange]


def _make(root, tree):
  """Makes a folder, and beside it what its links lead to."""
  elsewhere = root / 'elsewhere'
  elsewhere.mkdir()
  (elsewhere / '1.jpg').write_bytes(_BYTES['picture 2'])
  folder = root / 'data'
  folder.mkdir()
  targets = {
    'inside': folder / '1.jpg',
    'outside': elsewhere / '1.jpg',
    'linked folder': elsewhere,
    'nowhere': folder / 'nothing',
  }
  for parts, name, content in tree:
    path = folder.joinpath(*parts, name)
    if os.path.lexists(path) or any(
      p.is_file() or p.is_symlink() for p in path.parents
    ):
      continue
    path.parent.mkdir(parents=True, exist_ok=True)
    if content == 'folder':
      path.mkdir()
    elif content == 'pipe':
      os.mkfifo(path)
    elif content in _BYTES:
      path.write_bytes(_BYTES[content])
    else:
      path.symlink_to(targets[content])
  return folder


def _entries(folder):
  """All files, links and pipes, without our cache."""
  found = []
  for path, inner, names in os.walk(folder):
    inner[:] = [name for name in inner if name != '.tff_ssl_cache']
    found += [f'{path}/{name}' for name in names if name != '.tff_ssl_cache']
    found += [
      f'{path}/{name}' for name in inner if pathlib.Path(path, name).is_symlink()
    ]
  return found


def _is_sentence(error):
  text = str(error)
  return text.endswith('.') and '\n' not in text and 'Error(' not in text


@_SETTINGS
@hypothesis.given(
  _trees(), strategies.sampled_from(image_folders.MEANINGS), strategies.booleans()
)
def test_every_file_of_a_folder_is_one_thing_or_the_folder_is_refused(
  tree, meaning, follow_links
):
  with tempfile.TemporaryDirectory() as root:
    folder = _make(pathlib.Path(root), tree)
    expected = len(_entries(folder))
    try:
      task = image_folders.load(folder, 8, folders=meaning, follow_links=follow_links)
    except ValueError as error:
      assert _is_sentence(error)
      return
  taken = task.intake
  if not follow_links:
    assert sum(taken.files.values()) == expected
  read = sum(len(examples) for examples in task.splits().values())
  assert taken.files['images read'] == read
  # What is aside is said, with all names, once.
  said = {finding.kind: len(finding.names) for finding in taken.findings}
  unreadable = [len(f.names) for f in taken.findings if f.kind == 'unreadable']
  assert sum(unreadable) == taken.files.get('unreadable', 0)
  for kind, count in taken.files.items():
    if kind not in ('images read', 'unreadable', 'masks', 'in other formats'):
      assert said['no images' if kind == 'of other kinds' else kind] == count
  # It can be written, and fits on a screen.
  assert json.loads(json.dumps(taken.as_json()))['files'] == dict(taken.files)
  lines = taken.lines()
  assert len(lines) < 25
  assert [inert.line(line) for line in lines] == [*lines]
  if meaning != image_folders.NONE:
    names = task.client_names if meaning == image_folders.CLIENT else task.label_names
    assert not {'__MACOSX', '@eaDir', '.git'} & {*names}
    # One folder may have the name of a split, which is said.
    alone = {'train', 'Test', 'TEST', 'val'} & {*names}
    assert len(alone) <= said.get('splits', 0)


def _load(tmp_path, files, **arguments):
  for name, content in files.items():
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
  return image_folders.load(tmp_path, 8, **arguments).intake


def _pictures(*names):
  return {name: pictures.jpeg(7 * k, (8, 8)) for k, name in enumerate(names)}


def _said(taken):
  return {finding.kind: (finding.names, finding.costs) for finding in taken.findings}


def test_the_worst_of_identical_files_is_said(tmp_path):
  """A picture in two splits; one of two classes; one that is there twice."""
  files = _pictures('train/a/1.jpg', 'train/a/2.jpg', 'train/b/3.jpg', 'test/b/4.jpg')
  files['test/a/5.jpg'] = files['train/a/1.jpg']
  files['train/b/6.jpg'] = files['train/a/2.jpg']
  files['train/b/7.jpg'] = files['train/b/3.jpg']
  said = _said(_load(tmp_path, files, folders='class'))
  assert said == {
    'identical files in two splits': (('test/a/5.jpg = train/a/1.jpg',), True),
    'identical files under two labels': (('train/a/2.jpg = train/b/6.jpg',), True),
    'identical files there twice': (('train/b/3.jpg = train/b/7.jpg',), False),
  }


def test_files_of_two_clients_are_said_where_they_are_in_one_split(tmp_path):
  files = _pictures('train/p/1.jpg', 'train/q/2.jpg', 'test/r/3.jpg')
  files['train/q/4.jpg'] = files['train/p/1.jpg']
  said = _said(_load(tmp_path, files, folders='client'))
  kind = 'identical files of two clients'
  assert said == {kind: (('train/p/1.jpg = train/q/4.jpg',), True)}


def test_classes_of_which_too_little_is_there_are_said(tmp_path):
  names = [
    f'{s}/{c}/{k}.jpg' for s in ('train', 'test') for c in 'ab' for k in range(2)
  ]
  files = _pictures(*names, 'train/one/1.jpg', 'test/late/1.jpg', 'test/late/2.jpg')
  files['train/broken/1.jpg'] = b''
  said = _said(_load(tmp_path, files, folders='class'))
  assert said.pop('unreadable') == (('train/broken/1.jpg',), True)
  assert said == {
    'classes without images': (('broken',), True),
    'classes of one image': (('one',), False),
    'classes without test': (('one',), False),
    'classes without train': (('late',), True),
  }


def test_reasons_are_grouped_and_the_commonest_comes_first(tmp_path):
  files = _pictures(*(f'{k}.jpg' for k in range(8)))
  # 0.jpg and 3.jpg are the test split, by their names.
  for k in (1, 2, 4, 6):
    files[f'{k}.jpg'] = pictures.truncated_jpeg()[: 900 - k]
  files['5.jpg'] = b''
  unreadable = [
    finding
    for finding in _load(tmp_path, files).findings
    if finding.kind == 'unreadable'
  ]
  assert [len(finding.names) for finding in unreadable] == [4, 1]
  start = 'left out 4 of 8 images that cannot be read: 1.jpg, 2.jpg, 4.jpg and 1 more ('
  assert unreadable[0].sentence.startswith(start)


def test_other_formats_come_with_advice_and_count_as_a_loss(tmp_path):
  files = _pictures('a/1.jpg', 'a/2.gif', 'b/3.jpg')
  files |= {'a/x.HEIC': b'', 'a/y.heic': b'', 'c/scan.nii.gz': b'', 'c/notes.txt': b''}
  taken = _load(tmp_path, files, folders='class')
  assert dict(taken.files) == {
    'images read': 3, 'in other formats': 3, 'of other kinds': 1
  }  # fmt: skip
  lines = taken.lines()
  assert 'left out 2 .heic files (save it as JPEG or PNG): a/x.HEIC, a/y.heic' in lines
  assert 'warning: 1 folder without an image, no class: c' in lines
  assert 'images read: 2 .jpg, 1 .gif' in lines
  with pytest.raises(ValueError, match=r'strict is given, .* in 4 ways') as refused:
    taken.check()
  assert _is_sentence(refused.value)


def test_a_clean_folder_has_one_line_and_passes_the_check(tmp_path):
  taken = _load(tmp_path, _pictures('a.jpg', 'b.jpg'))
  taken.check()
  assert taken.lines() == ('2 files: 2 images read',)
  assert taken.as_json() == {
    'total': 2, 'files': {'images read': 2}, 'findings': []
  }  # fmt: skip


def test_many_findings_of_a_kind_leave_room_on_the_screen():
  many = [intake.finding('k', [f'{n}'], f'n{n}') for n in range(8)]
  lines = intake.Intake({'images read': 8}, tuple(many)).lines()
  assert len(lines) == 1 + 5 + 1
  assert lines[-1] == "and 3 more lines of the kind 'k' (intake.json of a run has all)"
