import io
import os

import numpy as np
from PIL import Image
import pydicom
import pytest

from tasks import image_folders
from tasks import image_opening
from tasks import images
from tasks import pictures
from tests.worlds import pictures as made
from tests.worlds import scans

pytestmark = pytest.mark.usefixtures('users_cache')


def test_nothing_is_written_into_the_folder_of_the_pictures(tmp_path, users_cache):
  Image.new('RGB', (6, 6)).save(tmp_path / 'a.png')
  pictures.load(tmp_path, (6, 6, 3))
  assert [path.name for path in tmp_path.iterdir()] == ['a.png']
  assert len([*users_cache.glob('tff_ssl/*/*/image.npy')]) == 1


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


def _bare(content, is_implicit):
  """A DICOM file without the preamble and the group that it begins with."""
  buffer, data = io.BytesIO(), pydicom.dcmread(io.BytesIO(content))
  plain = pydicom.Dataset({each.tag: each for each in data})
  plain.save_as(buffer, implicit_vr=is_implicit, little_endian=True)
  return buffer.getvalue()


def test_what_a_file_holds_decides_whatever_its_name(tmp_path):
  scan = scans.of(np.full((8, 8), 77, np.uint8))
  picture = Image.new('L', (8, 8), 77)
  contents = {kind: made.of(picture, kind) for kind in image_opening.FORMATS}
  contents |= {'DICOM': scan, 'headless': scan[132:]}
  contents |= {f'bare {kind}': _bare(scan, kind) for kind in (True, False)}
  nameless = ['IM00001', '1.2.840.113619.5', 'MR.1.2-7', 'a.b/IM']
  names = ['X.JPG', 'x.dcm', *(f'x{own[-1]}' for own in image_opening.FORMATS.values())]
  others = {'README': b'BMW', 'Makefile': b'P3 is', 'v.txt': scan, 'DICOMDIR': scan}
  others |= {'raw': bytes([8, 0, 0, 0] * 50), 'x.1': bytes([2, 0]) * 99, 'none': b''}
  expected = []
  for kind, content in contents.items():
    (tmp_path / kind / 'a.b').mkdir(parents=True)
    # BMP and PPM begin with two letters, as texts do.
    seen = names + nameless * (kind not in ('BMP', 'DIB', 'PPM'))
    expected += [f'{kind}/{name}' for name in seen]
    for name, own in {**dict.fromkeys(names + nameless, content), **others}.items():
      (tmp_path / kind / name).write_bytes(own)
  loaded = pictures.load(tmp_path, (8, 8, 3))
  assert sorted(loaded.names) == sorted(expected)
  np.testing.assert_allclose(loaded.images, 77, atol=2)
  known = Image.registered_extensions().items()
  assert {each for each, kind in known if kind in contents} <= {*image_opening.SUFFIXES}


def test_one_thermal_picture_is_read_by_the_range_of_its_run(tmp_path):
  degrees = np.linspace(-3, 35, 12 * 36).reshape(12, 6, 6)
  for k, values in enumerate(degrees.astype(np.float32)):
    Image.fromarray(values).save(tmp_path / f'{k:02}.tif')
  task = image_folders.load(tmp_path, image_size=6)
  reading = images.Reading(of_run=task.files.ranges)
  for split in (task.train, task.test):
    for image, name in zip(split.image, task.names(split), strict=True):
      alone = pictures.load(tmp_path / name, (6, 6, 3), reading)
      np.testing.assert_array_equal(alone.images[0], image)
  assert 'range that the run measured (--data=pixel_range=' in alone.intake.lines()[1]
