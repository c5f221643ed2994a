"""One range for a data set, what is said of its files, and the cache."""

import errno
import io

import numpy as np
from PIL import Image
import pydicom
from pydicom import uid
import pytest

from tasks import cases
from tasks import colour
from tasks import decoding
from tasks import image_folders
from tasks import image_opening
from tasks import images
from tasks import masks
from tasks import sources
from tests.worlds import data_sets
from tests.worlds import pictures
from tests.worlds import scans


def _decode(folder, reading=images.AS_USUAL, size=4):
  source = sources.open_source(folder)
  names = tuple(sorted(name for name in source.names if '/' not in name))
  return names, decoding.decode_all(source, names, size, reading)


def _write(folder, **files):
  for name, values in files.items():
    values = np.asarray(values)
    channels = values if values.ndim == 3 else values[..., np.newaxis]
    (folder / f'{name}.tif').write_bytes(pictures.tiff(channels))


def test_the_same_number_is_as_bright_in_every_file(tmp_path):
  # Alone, the first would be scaled from 8 bits, and the second from 12.
  dark, bright = np.full((4, 4), 200, np.uint16), np.full((4, 4), 60_000, np.uint16)
  middle = np.full((4, 4), 4000, np.uint16)
  _write(tmp_path, a=dark, b=middle, c=bright)
  Image.new('L', (4, 4), 77).save(tmp_path / 'd.png')
  names, decoded = _decode(tmp_path)
  expected = [round(v * 255 / 65535) for v in (200, 4000, 60_000)]
  # A picture of 8 bits stays as it is.
  np.testing.assert_array_equal(decoded.pixels[:, 0, 0, 0], [*expected, 77])
  assert [ends for _, ends in decoded.measured] == [(0, 65535)]
  note = f'{decoding.MEASURED_RANGE} (--data=pixel_range=0/65535)'
  assert decoded.notes[note] == list(names[:3])


def test_hounsfield_units_have_their_own_range_or_a_stated_one(tmp_path):
  values = np.linspace(-1000, 2000, 40_000).astype(np.int16).reshape(200, 200)
  _write(tmp_path, a=values, b=np.maximum(values, -200))
  _, decoded = _decode(tmp_path, size=200)
  ((_, (low, high)),) = decoded.measured
  # A thousandth of the pixels is ignored at each end.
  np.testing.assert_allclose((low, high), (-997, 1997), atol=1)
  expected = np.clip((values - low) / (high - low), 0, 1) * 255
  np.testing.assert_allclose(decoded.pixels[0, ..., 0], expected, atol=0.51)
  stated = images.Reading(pixel_range=(-160.0, 240.0))
  names, decoded = _decode(tmp_path, stated, size=200)
  expected = np.clip((values + 160) / 400, 0, 1) * 255
  np.testing.assert_allclose(decoded.pixels[0, ..., 0], expected, atol=0.51)
  assert decoded.measured == ()
  assert decoded.notes[images.OUTSIDE] == list(names)


def _cannot_be_read(name):
  raise PermissionError(errno.EACCES, 'Permission denied', name)


def _no_decoder(_):
  raise NotImplementedError


@pytest.mark.parametrize(
  ('place', 'fault', 'reason'),
  [
    ('tasks.sources._check_size', lambda name, _: _cannot_be_read(name), 'denied'),
    ('tasks.image_opening.room', lambda: image_opening.Room(1), 'of memory'),
    ('pydicom.pixels.get_decoder', _no_decoder, 'no decoder'),
  ],
)
def test_what_may_pass_is_tried_again(tmp_path, monkeypatch, place, fault, reason):
  for k in range(2):
    content = scans.of(np.full((4, 4), 7 + k, np.uint8))
    data = pydicom.dcmread(io.BytesIO(content))
    data.compress(uid.RLELossless)
    data.save_as(tmp_path / f'{k}.dcm')
  (tmp_path / 'x.dcm').write_bytes(b'no picture')
  tried = []
  own = images.read
  monkeypatch.setattr(images, 'read', lambda *given: tried.append(1) or own(*given))
  with monkeypatch.context() as patched:
    patched.setattr(place, fault)
    for _ in range(2):
      _, decoded = _decode(tmp_path)
      assert reason in decoded.unreadable['0.dcm']
      assert reason in decoded.unreadable['1.dcm']
  _, decoded = _decode(tmp_path)
  assert list(decoded.unreadable) == ['x.dcm']
  np.testing.assert_array_equal(decoded.pixels[:, 0, 0, 0], [7, 8])
  # What is wrong with a file itself stays so.
  tried.clear()
  _decode(tmp_path)
  assert not tried


def test_eight_bits_are_read_once(tmp_path, monkeypatch):
  Image.new('L', (4, 4), 77).save(tmp_path / 'a.png')
  _write(tmp_path, b=np.full((4, 4), 2000, np.uint16))
  read = []
  source = sources.open_source(tmp_path)
  content_of = source.read
  monkeypatch.setattr(
    source, 'read', lambda name: read.append(name) or content_of(name)
  )
  decoding.decode_all(source, ('a.png', 'b.tif'), 4)
  assert sorted(read) == ['a.png', 'b.tif', 'b.tif']


def test_the_cache_knows_how_pictures_were_read(tmp_path):
  values = np.linspace(0, 999, 128, dtype=np.uint16).reshape(8, 16)
  _write(tmp_path, a=values)
  readings = [
    images.Reading(fit, ends)
    for fit in images.FITS
    for ends in (None, (0.0, 999.0), (0.0, 500.0))
  ]
  first = [_decode(tmp_path, each)[1].pixels.copy() for each in readings]
  for k, pixels in enumerate(first):
    assert all(not np.array_equal(pixels, other) for other in first[:k])
  # From the cache it is the same.
  for each, pixels in zip(readings, first, strict=True):
    np.testing.assert_array_equal(_decode(tmp_path, each)[1].pixels, pixels)


def test_messages_about_files(tmp_path):
  draw = np.random.default_rng(0)
  noise = draw.integers(0, 256, (16, 16, 4)).astype(np.uint8)
  Image.fromarray(noise).save(tmp_path / 'alpha.png')
  Image.fromarray(noise[..., :3]).save(tmp_path / 'usual.png')
  Image.fromarray(noise[:4, :, :3]).save(tmp_path / 'wide.png')
  Image.fromarray(noise[:12, :, :3]).save(tmp_path / 'four_to_three.png')
  Image.fromarray(noise[:13, :, :3]).save(tmp_path / 'nearly_square.png')
  Image.new('L', (8, 8)).save(tmp_path / 'black.png')
  # Numbers of classes, or 16 bits that were cut; more steps say nothing.
  for name, most in (('dark', 7), ('dim', 16)):
    shades = np.linspace(0, most, 256).reshape(16, 16)
    Image.fromarray(shades.astype(np.uint8)).save(tmp_path / f'{name}.png')
  _, decoded = _decode(tmp_path)
  assert decoded.notes == {
    colour.TRANSPARENT: ['alpha.png'],
    decoding.PLAIN: ['black.png', 'dark.png'],
    # By hand: the mean of 3/4 and 1/4.
    'lose 50% of their pixels by the crop; --data=fit=pad keeps them': [
      'four_to_three.png',
      'wide.png',
    ],
  }
  _, padded = _decode(tmp_path, images.Reading(images.PAD))
  assert list(padded.notes) == [colour.TRANSPARENT, decoding.PLAIN]


def test_share_lost_by_the_crop_is_of_the_picture_before_a_jpeg_is_reduced(tmp_path):
  # By hand: 1 - 186/248 is a quarter. Of an eighth, 31 x 23.25, Pillow makes 31 x 24,
  # whose crop would lose less.
  # The same noise each time: another may have a note of its own.
  noise = np.random.default_rng(0).normal(128, 50, (186, 248)).clip(0, 255)
  Image.fromarray(noise.astype(np.uint8)).save(tmp_path / 'photograph.jpg')
  _, decoded = _decode(tmp_path, size=8)
  (note,) = decoded.notes
  assert note.startswith('lose 25% of their pixels by the crop')


def test_a_task_says_which_range_was_measured(tmp_path):
  for k in range(6):
    _write(tmp_path, **{f'{k}': np.full((4, 8), 500 * k, np.uint16)})
  task = image_folders.load(tmp_path, image_size=4)
  (measured,) = task.measured
  assert measured.what.endswith('black to white, 0 to 4095')
  assert measured.instead.startswith('--data=pixel_range=')
  assert task.files.fit == images.CROP
  stated = images.Reading(images.PAD, (0.0, 4095.0))
  padded = image_folders.load(tmp_path, image_size=4, reading=stated)
  assert padded.measured == ()
  assert padded.files.fit == images.PAD
  assert task.fingerprint() != padded.fingerprint()


def test_masks_become_squares_as_their_images_do(tmp_path):
  rows = []
  for k in range(5):
    Image.new('L', (32, 16), 50 * k + 10).save(tmp_path / f'{k}.png')
    mask = np.zeros((16, 32), np.uint8)
    mask[:, :8] = 255
    Image.fromarray(mask).save(tmp_path / f'm{k}.png')
    rows.append(f'{k}.png,p{k},m{k}.png')
  data_sets.write_csv(tmp_path / 'manifest.csv', 'image,client_id,mask', rows)
  shares = {}
  for fit in images.FITS:
    task = cases.load(tmp_path, image_size=16, reading=images.Reading(fit))
    shares[fit] = float(np.mean(masks.load(task).pixels))
  # By hand: the crop cuts the object off; bars take half of the square.
  assert shares == {'crop': 0.0, 'pad': 0.125, 'stretch': 0.25}
