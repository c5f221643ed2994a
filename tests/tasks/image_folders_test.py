"""Folders of images without a manifest."""

import pytest

from tasks import image_folders
from tests.worlds import data_sets

_TREE = [f'{folder}/{k}.jpg' for folder in ('C101', 'C7', 'C8') for k in range(4)]

_ASKED = (
  'images of 3 folders are in both splits; where each is one film or patient, '
  '--data=groups=folders holds it together'
)


def _folder(path, names=_TREE):
  data_sets.fill(path, names, 9)
  (path / 'notes.txt').write_text('not an image')
  return path


def test_images_are_examples_and_folders_mean_nothing(tmp_path):
  task = image_folders.load(_folder(tmp_path), image_size=8)
  assert not task.case_level
  assert not task.has_labels
  assert task.train.client is None
  assert task.report == (
    '13 files: 12 images read, 1 of other kinds',
    f'{_ASKED}: C101, C7, C8',
    'not used: 1 other file (1 .txt): notes.txt',
  )
  assert (len(task.train), len(task.test)) == (11, 1)


def test_a_folder_is_a_client(tmp_path):
  task = image_folders.load(_folder(tmp_path), image_size=8, folders='client')
  assert task.holder_names == ('C101', 'C7', 'C8')
  assert not task.has_labels
  # Images are numbered by name: four of each folder, which no split cuts.
  for examples, count in ((task.train, 8), (task.test, 4)):
    assert examples.client.tolist() == (examples.example_id // 4).tolist()
    assert len(examples) == count


@pytest.mark.parametrize(
  ('names', 'folders', 'message'),
  [
    (_TREE[:4], 'class', r'4 images outside folders: C101/0\.jpg'),
    (_TREE, 'case', "folders is 'case'; it must be one of none, class"),
    # They would be written alike.
    (
      [f'{folder}/{k}.jpg' for folder in ('a\x1b', r'a\x1b', 'b') for k in range(2)],
      'class',
      r"has the folders 'a\\x1b' and 'a\\\\x1b', which would be written alike; ren",
    ),
  ],
)
def test_wrong_folders_are_named(tmp_path, names, folders, message):
  for kind in {folders, 'client'} if folders == 'class' else [folders]:
    with pytest.raises(ValueError, match=message):
      image_folders.load(_folder(tmp_path, names), image_size=8, folders=kind)


def test_links_in_place_of_folders_are_named(tmp_path):
  folder = _folder(tmp_path / 'data', _TREE[:4])
  (folder / 'other').symlink_to(_folder(tmp_path / 'elsewhere'))
  message = 'two folders; --data=follow_links=true follows links: other'
  with pytest.raises(ValueError, match=message):
    image_folders.load(folder, 8, folders='client')
  for path in folder.glob('C101/*'):
    path.unlink()
  with pytest.raises(
    ValueError, match='1 links that lead out, 1 other files; --data=follow'
  ):
    image_folders.load(folder, 8, folders='client')
  task = image_folders.load(folder, 8, folders='none', follow_links=True)
  assert len(task.train) + len(task.test) == len(_TREE)
