"""Folders and archives of images with a manifest."""

import os

import numpy as np
import pytest

from tasks import cases
from tasks import registry
from tests.worlds import data_sets
from tests.worlds import pictures


def _folder(path, header='image,case_id,label', rows=(), files=8):
  data_sets.fill(path, [f'a/{k}.jpg' for k in range(files)])
  data_sets.write_csv(path / 'manifest.csv', header, list(rows))
  return path


# Four cases of two images; two labels.
_ROWS = [f'a/{k}.jpg,case{k // 2},{"xy"[k // 4]}' for k in range(8)]


def _ids_by_case(examples):
  return {
    case: examples.example_id[examples.case == case].tolist()
    for case in np.unique(examples.case).tolist()
  }


def _check_images(examples):
  """Each image is where its id says, and in a file that is mapped into memory."""
  for image, example_id in zip(examples.image, examples.example_id, strict=True):
    expected = pictures.decode(pictures.jpeg(20 * int(example_id)), 8)
    np.testing.assert_array_equal(image, expected)
  assert pictures.is_mapped(examples.image)


@pytest.mark.parametrize('rows', [_ROWS, _ROWS[::-1]])
def test_folder_without_splits_in_any_order(tmp_path, rows):
  task = cases.load(_folder(tmp_path, rows=rows), image_size=8)
  assert task.label_names == ('x', 'y')
  assert task.case_level
  assert task.validation is None
  assert task.image_shape == (8, 8, 3)
  assert (len(task.train), len(task.test)) == (4, 4)
  assert task.report == ('9 files: 8 images read, 1 manifest',)
  both = _ids_by_case(task.train) | _ids_by_case(task.test)
  assert both == {0: [0, 1], 1: [2, 3], 2: [4, 5], 3: [6, 7]}
  for examples in (task.train, task.test):
    # A case of each label, and each image where its id says.
    np.testing.assert_array_equal(examples.label, examples.example_id // 4)
    _check_images(examples)


def test_splits_in_turns_with_gaps(tmp_path):
  splits = ['test', 'train', 'validation', 'train'] * 2
  rows = [f'a/{k}.jpg,c{k},{splits[k]}' for k in range(8)]
  folder = _folder(tmp_path, 'image,case_id,split', rows)
  for k in (1, 4):
    (folder / 'a' / f'{k}.jpg').write_bytes(b'')
  task = cases.load(folder, image_size=8)
  expected = {'train': [3, 5, 7], 'validation': [2, 6], 'test': [0]}
  for split, examples in task.splits().items():
    assert examples.example_id.tolist() == expected[split]
    assert examples.case.tolist() == expected[split]
    _check_images(examples)


def test_an_archive_is_indexed_once_until_it_changes(tmp_path, monkeypatch):
  folder = _folder(tmp_path / 'data', rows=_ROWS)
  archive = data_sets.tar_of(folder, tmp_path / 'data.tar')
  (folder / 'manifest.csv').rename(folder / 'other.csv')
  by_csv = cases.load(folder / 'other.csv', image_size=8)
  first = cases.load(archive, image_size=8)
  with monkeypatch.context() as patch:
    patch.setattr('tarfile.open', None)
    patch.setattr('tasks.images.read', None)
    second = cases.load(archive, image_size=8)
  for task in (first, second):
    np.testing.assert_array_equal(task.train.image, by_csv.train.image)
    np.testing.assert_array_equal(task.test.example_id, by_csv.test.example_id)
  _folder(folder, rows=[*_ROWS, 'a/8.jpg,case9,x'], files=9)
  data_sets.tar_of(folder, archive)
  changed = cases.load(archive, image_size=8)
  assert len(changed.train) + len(changed.test) == 9


def test_unreadable_images_are_counted_named_and_left_out(tmp_path):
  folder = _folder(tmp_path, rows=_ROWS)
  (folder / 'a' / '3.jpg').write_bytes(pictures.truncated_jpeg())
  (folder / 'a' / '5.jpg').write_bytes(b'')
  task = cases.load(folder, image_size=8)
  ids = np.sort(np.concatenate([task.train.example_id, task.test.example_id]))
  # The others keep their ids.
  np.testing.assert_array_equal(ids, [0, 1, 2, 4, 6, 7])
  _check_images(task.train)
  _check_images(task.test)
  counted, *reasons = task.report
  assert counted == '9 files: 6 images read, 2 unreadable, 1 manifest'
  start = 'left out 1 of 8 images that cannot be read: '
  assert reasons[0].startswith(f'{start}a/3.jpg (OSError: image file is truncated')
  assert reasons[1].startswith(f'{start}a/5.jpg (UnidentifiedImageError')
  # And from the cache the same.
  assert cases.load(folder, image_size=8).report == task.report
  # A repaired image is there again.
  (folder / 'a' / '3.jpg').write_bytes(pictures.jpeg(60))
  assert '7 images read, 1 unreadable' in cases.load(folder, image_size=8).report[0]


def test_only_regular_files_of_the_folder_are_read(tmp_path):
  folder = _folder(tmp_path / 'data', rows=_ROWS)
  (tmp_path / 'secret.jpg').write_bytes(pictures.jpeg(1))
  os.mkfifo(folder / 'a' / 'pipe.jpg')
  links = {
    'inside': folder / 'a' / '0.jpg',
    'device': '/dev/zero',
    'outside': tmp_path / 'secret.jpg',
    'around': folder / '..' / 'secret.jpg',
    'nowhere': folder / 'a' / 'none.jpg',
    'to_pipe': folder / 'a' / 'pipe.jpg',
    'circle': folder / 'a' / 'circle.jpg',
  }
  for name, target in links.items():
    (folder / 'a' / f'{name}.jpg').symlink_to(target)
  (folder / 'linked').symlink_to(tmp_path)
  task = cases.load(folder, image_size=8)
  assert list(task.intake.files.values()) == [8, 1, 1, 3, 2, 3]
  outside = 'left out 3, links that lead out (--data=follow_links=true follows them)'
  assert task.report[1:] == (
    'left out 1 image file that the manifest does not list: a/inside.jpg',
    f'{outside}: linked, a/around.jpg, a/outside.jpg',
    'left out 2, links to nothing: a/circle.jpg, a/nowhere.jpg',
    'left out 3, pipes and devices: a/device.jpg, a/pipe.jpg, a/to_pipe.jpg',
  )
  refused = ('pipe', 'device', 'outside', 'around', 'nowhere', 'to_pipe', 'circle')
  for name in (*(f'a/{name}.jpg' for name in refused), 'linked/secret.jpg'):
    data_sets.write_csv(folder / 'manifest.csv', 'image,case_id', [f'{name},0'])
    with pytest.raises(
      ValueError, match=rf'cannot be found: {name}( \(.*\))?; only reg'
    ):
      cases.load(folder, image_size=8)


def test_a_manifest_that_links_out_of_the_folder_is_not_read(tmp_path):
  folder = _folder(tmp_path / 'data', rows=_ROWS)
  (folder / 'manifest.csv').rename(tmp_path / 'secret.csv')
  (folder / 'manifest.csv').symlink_to(tmp_path / 'secret.csv')
  for read in (cases.columns, cases.load):
    with pytest.raises(ValueError, match=r'holds no manifest\.csv'):
      read(folder)


def test_files_of_any_size_are_not_read(tmp_path):
  folder = _folder(tmp_path / 'data', rows=_ROWS)
  with (folder / 'a' / '3.jpg').open('r+b') as file:
    file.truncate(2**40)
  report = cases.load(folder, image_size=8).report
  assert 'a/3.jpg (OSError: a/3.jpg has 1,099,511,627,776 bytes; at most' in report[1]


def test_images_that_fit_in_no_memory_are_refused_by_arithmetic(tmp_path):
  folder = _folder(tmp_path, rows=_ROWS)
  with pytest.raises(ValueError, match=r'image_size is 1000000: .* GiB of memory'):
    cases.load(folder, image_size=1_000_000)
  with pytest.raises(ValueError, match='image_size is 100000: 1,797 images of that'):
    registry.load('digits', image_size=100_000)


@pytest.mark.parametrize(
  ('header', 'rows', 'message'),
  [
    ('image,label', ['a/0.jpg,x'], 'no column client_id or case_id; it has image, la'),
    ('image,case_id', [], 'lists 0 images'),
    (
      'image,case_id,split',
      ['a/0.jpg,c,fold'],
      "gives image a/0.jpg the split 'fold'; it must be one of train, v",
    ),
    ('image,case_id', [f'b{k},0' for k in range(5)], '5 files that cannot be found: b'),
    (
      'image,case_id,split',
      ['a/0.jpg,0,train', './a/0.jpg,0,test'],
      '1 image in two splits: a/0.jpg',
    ),
    (
      'image,case_id,split',
      ['a/0.jpg,p7,train', 'a/1.jpg,p7,test'],
      '1 case in two splits: p7',
    ),
    (
      'image,case_id,label',
      ['a/0.jpg,p7,nv', 'a/1.jpg,p7,mel'],
      r'1 case with more than one label, but each must have .* one: p7 \(mel, nv\)',
    ),
    ('image,case_id,split', ['a/0.jpg,0,train'], r'0 readable test .* needs some\.$'),
    ('image,case_id', ['a/0.jpg,0', 'a/1.jpg,0'], '1 cases cannot be split'),
    # Named as the manifest names them.
    (
      'image,client_id,case_id',
      ['a/0.jpg,C101,L1', 'a/1.jpg,C102,L1'],
      r'1 case with more than one client, but each must have .* one: L1 \(C101, C102\)',
    ),
    (
      'image,client_id,case_id,label',
      ['a/0.jpg,C101,L1,x', 'a/1.jpg,C101,L1,y'],
      r'than one label.*: L1 \(x, y\); images can be classified one by one',
    ),
    (
      'image,client_id,label',
      ['a/0.jpg,p,x', 'a/1.jpg,p,y'],
      'The 1 clients cannot be',
    ),
  ],
)
def test_manifest_errors(tmp_path, header, rows, message):
  folder = _folder(tmp_path, header, rows, files=2)
  with pytest.raises(ValueError, match=message):
    cases.load(folder, image_size=4)


@pytest.mark.parametrize(
  ('classify', 'message'),
  [
    ('case', r"manifest\.csv has no column case_id; only 'image' is allowed"),
    ('patient', "classify is 'patient'; it m"),
  ],
)
def test_what_cannot_be_classified_is_refused(tmp_path, classify, message):
  rows = ['a/0.jpg,p', 'a/1.jpg,q']
  folder = _folder(tmp_path, 'image,client_id', rows, files=2)
  with pytest.raises(ValueError, match=message):
    cases.load(folder, image_size=4, classify=classify)


def test_archives_that_cannot_be_read(tmp_path):
  folder = _folder(tmp_path / 'data', rows=_ROWS)
  zipped = data_sets.tar_of(folder, tmp_path / 'data.tar', 'w:gz')
  with pytest.raises(ValueError, match=r'not a readable uncompressed \.tar'):
    cases.load(zipped)


# Of four patients two images each, of both labels; the case of an image is its lesion.
_HELD = [f'a/{k}.jpg,C{k // 2 + 101},L{k // 2},{"xy"[k % 2]}' for k in range(8)]


def _of(task):
  """Example id -> name of who holds it, of each split."""
  return {
    split: {
      int(example): task.holder_names[holder]
      for example, holder in zip(examples.example_id, examples.holder, strict=True)
    }
    for split, examples in task.splits().items()
  }


def test_clients_hold_images_of_several_labels(tmp_path):
  rows = [','.join(np.delete(row.split(','), 2)) for row in _HELD]
  folder = _folder(tmp_path, 'image,client_id,label', rows)
  task = cases.load(folder, image_size=8)
  assert not task.case_level
  held = _of(task)
  expected = {k: f'C{k // 2 + 101}' for k in range(8)}
  assert held['train'] | held['test'] == expected
  # A patient is in one split with all of its images, of which each is a case.
  assert not set(held['train'].values()) & set(held['test'].values())
  assert len(held['test']) == 2
  for examples in (task.train, task.test):
    np.testing.assert_array_equal(examples.case, examples.example_id)
    np.testing.assert_array_equal(examples.label, examples.example_id % 2)


def test_cases_of_clients_are_classified_and_can_be_images(tmp_path):
  header = 'image,client_id,case_id'
  rows = [f'a/{k}.jpg,h{k // 4},c{k // 2}' for k in range(8)]
  folder = _folder(tmp_path, header, rows)
  task = cases.load(folder, image_size=8)
  assert task.case_level
  assert task.holder_names == ('h0', 'h1')
  assert task.case_names == ('c0', 'c1', 'c2', 'c3')
  np.testing.assert_array_equal(task.test.case, task.test.example_id // 2)
  np.testing.assert_array_equal(task.test.client, task.test.example_id // 4)
  images_alone = cases.load(folder, image_size=8, classify='image')
  assert not images_alone.case_level
  assert _of(images_alone) == _of(task)
  # Without clients the cases are these, and keep their split.
  folder = _folder(tmp_path, rows=_ROWS)
  together = cases.load(folder, image_size=8)
  assert together.train.client is None
  alone = cases.load(folder, image_size=8, classify='image')
  assert _of(alone) == _of(together)
  assert alone.holder_names == ('case0', 'case1', 'case2', 'case3')
