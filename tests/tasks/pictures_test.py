import os

import numpy as np
from PIL import Image
import pytest

from tasks import pictures


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
  """The user's cache folder."""
  path = tmp_path_factory.mktemp('home')
  monkeypatch.setenv('XDG_CACHE_HOME', str(path))
  return path


def test_nothing_is_written_into_the_folder_of_the_pictures(tmp_path, home):
  Image.new('RGB', (6, 6)).save(tmp_path / 'a.png')
  pictures.load(tmp_path, (6, 6, 3))
  assert [path.name for path in tmp_path.iterdir()] == ['a.png']
  assert len([*home.glob('tff_ssl/*/*/image.npy')]) == 1


def test_folders_of_one_name_share_no_pictures(tmp_path):
  # Same names, sizes and times, as of a scanner on a disc.
  for folder, level in (('a', 10), ('b', 200)):
    file = tmp_path / folder / 'scans' / '1.bmp'
    file.parent.mkdir(parents=True)
    Image.new('L', (6, 6), level).save(file)
    os.utime(file, (315532800, 315532800))
  for path in ('scans', 'scans/1.bmp'):
    for folder, level in (('a', 10), ('b', 200)):
      loaded = pictures.load(tmp_path / folder / path, (6, 6, 3))
      np.testing.assert_array_equal(loaded.images, level)


def test_colours_become_the_brightness_that_pillow_has(tmp_path):
  colours = np.random.default_rng(0).integers(0, 256, (6, 6, 3)).astype(np.uint8)
  picture = Image.fromarray(colours)
  picture.save(tmp_path / 'a.png')
  loaded = pictures.load(tmp_path, (6, 6, 1))
  assert loaded.names == ('a.png',)
  grey = np.asarray(picture.convert('L'), int)
  assert np.max(np.abs(loaded.images[0, ..., 0] - grey)) <= 1
  np.testing.assert_array_equal(pictures.load(tmp_path, (6, 6, 3)).images[0], colours)


def test_names_that_are_not_utf_8_can_be_written(tmp_path):
  Image.new('RGB', (6, 6)).save(tmp_path / 'a.png')
  (tmp_path / 'a.png').rename(tmp_path / '\udce4.png')
  (tmp_path / '\udcff.png').write_text('no image')
  loaded = pictures.load(tmp_path, (6, 6, 3))
  assert loaded.names == (r'\udce4.png',)
  found = [f for f in loaded.intake.findings if f.kind == 'unreadable']
  assert [f.names for f in found] == [(r'\udcff.png',)]


def test_images_that_cannot_be_embedded_are_refused(tmp_path):
  with pytest.raises(ValueError, match='square images with 1 or 3 channels'):
    pictures.load(tmp_path, (6, 8, 3))
  (tmp_path / 'a.png').write_text('no image')
  with pytest.raises(ValueError, match=r'No image of .* can be read; a\.png: '):
    pictures.load(tmp_path, (6, 6, 3))
