"""Folders of masks, in the layouts that there are."""

import numpy as np
from PIL import Image
import pytest

from tasks import cases
from tasks import digits
from tasks import ham10000
from tasks import image_folders
from tasks import image_opening
from tasks import masks
from tests.worlds import data_sets

_WIDTH, _HEIGHT = 20, 16


def _mask(number, size=(_WIDTH, _HEIGHT)):
  """A mask of columns 4 to 4 + 2 * number of the image, all rows."""
  values = np.zeros([size[1], size[0]], np.uint8)
  values[:, 4 : 6 + 2 * number] = 255
  return values


def _write(path, values):
  path.parent.mkdir(parents=True, exist_ok=True)
  Image.fromarray(values).save(path)


def _check(task, found, numbers=range(8)):
  """Each image has the mask of its number, cropped as images are, at half the size."""
  seen = []
  for examples in (task.train, task.test):
    positions, pixels = found.of(examples)
    for position, mask in zip(positions, pixels, strict=True):
      number = int(examples.example_id[position])
      # The central square begins at column 2: columns 4 to 6 + 2 * number are left.
      expected = np.zeros([8, 8], bool)
      expected[:, 1 : 2 + number] = True
      np.testing.assert_array_equal(mask, expected)
      seen.append(number)
  assert sorted(seen) == list(numbers)


@pytest.mark.parametrize(
  'suffix', ['_segmentation.png', '_Segmentation.PNG', '.png', '.bmp']
)
def test_folder_of_masks(tmp_path, suffix):
  task = ham10000.load(data_sets.ham_folder(tmp_path / 'ham'), image_size=8)
  for k in range(8):
    _write(tmp_path / 'masks' / f'I{k:02d}{suffix}', _mask(k))
  found = masks.load(task, tmp_path / 'masks')
  _check(task, found)
  train, test = len(task.train), len(task.test)
  assert found.report == (
    f'masks: train {train} of {train} images, test {test} of {test} images',
  )


def test_an_image_is_not_its_own_mask(tmp_path):
  task = ham10000.load(data_sets.ham_folder(tmp_path / 'ham'), image_size=8)
  for where in (tmp_path, tmp_path / 'ham'):
    with pytest.raises(ValueError, match='holds no mask of an image of'):
      masks.load(task, where)
  for k in range(8):
    _write(tmp_path / 'masks' / f'I{k:02d}.png', _mask(k))
  # The folder that holds both, where each image is found beside its mask.
  _check(task, masks.load(task, tmp_path))
  for k in range(8):
    _write(tmp_path / 'ham' / 'masks' / f'I{k:02d}_segmentation.png', _mask(k))
  _check(task, masks.load(task, tmp_path / 'ham'))


def test_second_load_decodes_nothing(tmp_path, monkeypatch):
  task = ham10000.load(data_sets.ham_folder(tmp_path / 'ham'), image_size=8)
  for k in range(8):
    _write(tmp_path / 'masks' / f'I{k:02d}.png', _mask(k))
  masks.load(task, tmp_path / 'masks')
  monkeypatch.setattr('tasks.masks.decode', None)
  _check(task, masks.load(task, tmp_path / 'masks'))
  # One that has changed is read again.
  _write(tmp_path / 'masks' / 'I03.png', _mask(4))
  with pytest.raises(ValueError, match='no mask of a train image'):
    masks.load(task, tmp_path / 'masks')


def test_column_of_a_manifest(tmp_path):
  rows = []
  data_sets.fill(tmp_path, [f'{k}.jpg' for k in range(8)])
  for k in range(8):
    _write(tmp_path / 'm' / f'of_{k}.png', _mask(k))
    mask = f'm/of_{k}.png' if k != 5 else ''
    rows.append(f'{k}.jpg,p{k // 2},{mask}')
  data_sets.write_csv(tmp_path / 'manifest.csv', 'image,client_id,mask', rows)
  task = cases.load(tmp_path, image_size=8)
  # The one mask that the manifest does not list is an image file like any other.
  assert task.report == (
    '17 files: 8 images read, 1 manifest, 7 masks, 1 not listed',
    'left out 1 image file that the manifest does not list: m/of_5.png',
  )
  _check(task, masks.load(task), [0, 1, 2, 3, 4, 6, 7])
  rows[0] = '0.jpg,p0,m/none.png'
  data_sets.write_csv(tmp_path / 'manifest.csv', 'image,client_id,mask', rows)
  with pytest.raises(ValueError, match=r'1 file that cannot be found: m/none\.png'):
    cases.load(tmp_path, image_size=8)


def test_images_of_one_name_in_several_folders(tmp_path):
  names = [f'c{k // 2}/{k % 2}.jpg' for k in range(8)]
  data_sets.fill(tmp_path / 'images', names)
  for k in range(8):
    _write(tmp_path / 'masks' / f'c{k // 2}' / f'{k % 2}.png', _mask(k))
  task = image_folders.load(tmp_path / 'images', image_size=8)
  _check(task, masks.load(task, tmp_path / 'masks'))
  # Anywhere else their name does not say whose they are.
  (tmp_path / 'masks').rename(tmp_path / 'all')
  with pytest.raises(ValueError, match="holds no mask of an image of 'folder'"):
    masks.load(task, tmp_path)


def test_wrong_masks(tmp_path):
  task = ham10000.load(data_sets.ham_folder(tmp_path / 'ham'), image_size=8)
  place = tmp_path / 'masks'
  for k in range(8):
    _write(place / f'I{k:02d}.png', _mask(k))
  (place / 'I02.png').write_bytes(b'no image')
  found = masks.load(task, place)
  _check(task, found, [0, 1, 3, 4, 5, 6, 7])
  assert found.report[1] == 'left out 1 masks that cannot be read:'
  assert found.report[2].startswith('  I02.png (UnidentifiedImageError')
  _write(place / 'I02_segmentation.png', _mask(2))
  with pytest.raises(ValueError, match=r'2 masks of .*I02\.jpg: I02\.png, I02_segm'):
    masks.load(task, place)
  (place / 'I02_segmentation.png').unlink()
  _write(place / 'I02.png', _mask(2, size=(_HEIGHT, _WIDTH)))
  with pytest.raises(ValueError, match=r'I02\.png is 16 x 20 and its image .* 20 x 16'):
    masks.load(task, place)
  # Half the size is as good.
  _write(place / 'I02.png', _mask(2)[::2, ::2])
  _check(task, masks.load(task, place))
  with pytest.raises(ValueError, match="images of the task 'digits' are not files"):
    masks.load(digits.load(), place)


def _of_manifest(folder, masks_of):
  """Writes eight images of a client each, and the masks that are named."""
  data_sets.fill(folder, [f'{k}.jpg' for k in range(len(masks_of))])
  for k, name in enumerate(masks_of):
    _write(folder / name, _mask(k))
  rows = [f'{k}.jpg,p{k},{name}' for k, name in enumerate(masks_of)]
  data_sets.write_csv(folder / 'manifest.csv', 'image,client_id,mask', rows)


def test_a_mask_that_there_is_no_memory_for_is_tried_again(tmp_path, monkeypatch):
  _of_manifest(tmp_path, [f'm{k}.png' for k in range(8)])
  Image.new('L', (200, 160)).save(tmp_path / 'm0.png')
  task = cases.load(tmp_path, image_size=8)
  with monkeypatch.context() as patched:
    patched.setattr(image_opening, 'room', lambda: image_opening.Room(50_000))
    for _ in range(2):
      report = masks.load(task).report
      assert report[1] == 'left out 1 masks that cannot be read:'
  assert len(masks.load(task).pixels) == 8


def test_empty_and_full_masks_are_counted(tmp_path):
  _of_manifest(tmp_path, [f'm{k}.png' for k in range(8)])
  for name, number in (('m1.png', 0), ('m2.png', 0), ('m5.png', 255)):
    _write(tmp_path / name, np.full([_HEIGHT, _WIDTH], number, np.uint8))
  found = masks.load(cases.load(tmp_path, image_size=8))
  assert found.report[1:] == (
    'warning: 2 of 8 masks are empty: m1.png, m2.png',
    'warning: 1 of 8 masks cover all of the image: m5.png',
  )
