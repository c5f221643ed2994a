"""Decoding to RGB squares."""

import io
import itertools

import numpy as np
from PIL import Image
from PIL import ImageOps
import pytest

from tasks import image_opening
from tasks import images
from tests.worlds import pictures


@pytest.mark.parametrize(
  ('array', 'expected'),
  [
    # By hand: the least usual range that holds the largest number is the file's.
    (np.float32([[0.0, 0.5], [0.25, 1.0]]), [[0, 128], [64, 255]]),
    (np.float32([[0.0, 51.0], [102.0, 255.0]]), [[0, 51], [102, 255]]),
    (np.float32([[0.0, 65535.0], [25700.0, 257.0]]), [[0, 255], [100, 1]]),
    (np.float32([[0.0, 1e6], [5e5, 1e5]]), [[0, 255], [128, 26]]),
    (np.int32([[0, 200], [7, 255]]), [[0, 200], [7, 255]]),
    (np.int32([[0, 4095], [2048, 256]]), [[0, 255], [128, 16]]),
    (np.int32([[0, 2**31 - 1], [2**30, 2**24]]), [[0, 127], [64, 1]]),
    (np.uint16([[0, 4095], [2048, 16]]), [[0, 255], [128, 1]]),
    (np.uint16([[0, 1023], [512, 4]]), [[0, 255], [128, 1]]),
    (np.uint16([[0, 65535], [32768, 255]]), [[0, 255], [128, 1]]),
    (np.uint16([[0, 255], [128, 3]]), [[0, 255], [128, 3]]),
  ],
)
def test_numbers_are_scaled_by_the_file_s_own_range(array, expected):
  decoded = pictures.decode(pictures.of(Image.fromarray(array), 'TIFF'), 2)
  np.testing.assert_array_equal(decoded, np.stack([expected] * 3, axis=-1))


@pytest.mark.parametrize('kind', ['PNG', 'BMP', 'TIFF', 'JPEG', 'WEBP'])
@pytest.mark.parametrize('mode', ['RGB', 'L'])
@pytest.mark.parametrize('size', [(9, 7), (40, 64)])
def test_eight_bits_are_as_pillow_alone_makes_them(kind, mode, size):
  # Documented runs depend on these bytes.
  noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), np.uint8)
  content = pictures.of(Image.fromarray(noise).convert(mode), kind)
  with Image.open(io.BytesIO(content)) as image:
    image.draft('RGB', (16, 16))
    upright = ImageOps.exif_transpose(image)
    expected = ImageOps.fit(upright.convert('RGB'), (8, 8), Image.Resampling.BICUBIC)
  np.testing.assert_array_equal(pictures.decode(content, 8), np.asarray(expected))


def _flat(number, mode):
  """A picture of one brightness between 0 and 1, in a mode of any depth."""
  channels = {'I;16': 1, 'LA;16': 2, 'RGB;16': 3, 'RGBA;16': 4}.get(mode)
  if channels:
    values = np.full((5, 6, channels), round(65535 * number), np.uint16)
    # White in a corner, so that 16 bits are used.
    values[:1, :, :] = 65535
    if channels in (2, 4):
      values[..., -1] = 65535
    return pictures.png(values)
  if mode == 'F':
    values = np.full((5, 6, 1), number, np.float32)
    return pictures.tiff(values)
  level = round(255 * number)
  image = Image.new('RGB', (6, 5), (level, level, level)).convert(mode)
  return pictures.of(image, 'PNG' if mode in ('LA', 'P', 'RGBA') else 'TIFF')


_MODES = ('L', 'LA', 'P', 'RGB', 'RGBA', 'CMYK', 'YCbCr')
_DEEP_MODES = ('I;16', 'LA;16', 'RGB;16', 'RGBA;16', 'F')


@pytest.mark.parametrize(
  ('mode', 'number'),
  [('1', 1.0), *itertools.product((*_MODES, *_DEEP_MODES), (0.2, 0.6, 1.0))],
)
def test_a_grey_is_the_same_grey_in_every_mode_and_depth(mode, number):
  decoded = pictures.decode(_flat(number, mode), 5)
  assert decoded.dtype == np.uint8
  np.testing.assert_allclose(decoded[3, 2].astype(float), 255 * number, atol=1.6)


def _oriented(kind, turn):
  """Three rows of two pixels, of 8 or 16 bits, that are to be turned."""
  values = np.array([[0, 1], [2, 3], [4, 5]]) * (5000 if kind.endswith('16') else 40)
  if kind == 'TIFF 16':
    values = values.astype(np.uint16)[..., np.newaxis]
    return values, pictures.tiff(values, orientation=turn)
  if kind == 'PNG 16':
    image = Image.fromarray(values.astype(np.uint16))
  else:
    image = Image.fromarray(values.astype(np.uint8))
  exif = Image.Exif()
  exif[0x0112] = turn
  return values, pictures.of(image, kind.split()[0], exif=exif)


# What the tag means (TIFF 6.0, Orientation): where row 0 and column 0 are.
_TURNS = {
  1: lambda a: a,
  2: np.fliplr,
  3: lambda a: np.rot90(a, 2),
  4: np.flipud,
  5: np.transpose,
  6: lambda a: np.rot90(a, -1),
  7: lambda a: np.rot90(a, 2).T,
  8: np.rot90,
}


@pytest.mark.parametrize('turn', range(1, 9))
@pytest.mark.parametrize('kind', ['PNG', 'TIFF', 'PNG 16', 'TIFF 16'])
def test_orientation_is_applied(kind, turn):
  values, content = _oriented(kind, turn)
  expected = _TURNS[turn](values.reshape(3, 2))
  ends = (0.0, 25500.0) if kind.endswith('16') else None
  reading = images.Reading(images.PAD, ends)
  decoded = pictures.decode(content, 3, reading)[..., 0]
  scale = 100 if kind.endswith('16') else 1
  # Bars of black are added at the sides.
  height, width = expected.shape
  shown = decoded[:, :2] if width < height else decoded[:2]
  if not np.array_equal(shown, expected // scale):
    shown = decoded[:, 1:] if width < height else decoded[1:]
  np.testing.assert_array_equal(shown, expected // scale)
  assert images.size_of(content) == (width, height)


@pytest.mark.parametrize('shape', [(20, 40), (40, 20)])
def test_fits(shape):
  image = Image.new('RGB', shape[::-1], (200, 100, 50))
  content = pictures.of(image)
  full, black = np.array([200, 100, 50]), np.zeros(3)
  tall = shape[0] > shape[1]
  for fit, corner, lost in (
    ('crop', full, 0.5),
    ('pad', black, 0),
    ('stretch', full, 0),
  ):
    picture = images.read(content, 8, images.Reading(fit), lambda _: None)
    edge = picture.pixels[4, 0] if tall else picture.pixels[0, 4]
    np.testing.assert_array_equal(edge, corner)
    np.testing.assert_array_equal(picture.pixels[4, 4], full)
    assert picture.lost == lost
  with pytest.raises(
    ValueError, match="fit is 'cut'; it must be one of crop, pad, stretch"
  ):
    images.Reading('cut')


@pytest.mark.parametrize('kind', ['L', 'P', 'RGBA', 'I;16', 'RGB;16'])
def test_large_pictures_are_means_of_squares(monkeypatch, kind):
  # As if 2,000 pixels were many, and 500 a band.
  monkeypatch.setattr(image_opening, 'COPIED', 2000)
  monkeypatch.setattr(images, '_BAND', 500)
  noise = np.random.default_rng(0).integers(0, 256, (65, 49, 4)).astype(np.uint8)
  if kind.endswith('16'):
    channels = 1 if kind == 'I;16' else 3
    content = pictures.png(noise[..., :channels].astype(np.uint16) * 257)
  else:
    mode = 'RGBA' if kind == 'RGBA' else 'RGB'
    image = Image.fromarray(noise[..., : len(mode)])
    content = pictures.of(image.quantize(8) if kind == 'P' else image.convert(kind))
  reading = images.Reading(fit=images.STRETCH)
  found = images.read(content, 8, reading, lambda _: (0.0, 65535.0))
  # Squares of 3 x 3 leave 17 x 22 pixels, twice 8 at least.
  monkeypatch.setattr(image_opening, 'COPIED', 2**26)
  full = pictures.decode(content, 65, images.Reading(images.PAD, (0.0, 65535.0)))[
    :, 8:57
  ]
  small = Image.fromarray(full).reduce(3)
  expected = small.resize((8, 8), Image.Resampling.BICUBIC)
  np.testing.assert_array_equal(found.pixels, np.asarray(expected))
  assert images.REDUCED in found.notes


@pytest.mark.parametrize('kind', ['TIFF', 'GIF', 'WEBP', 'PNG'])
@pytest.mark.parametrize('pages', [1, 2])
def test_further_pages_are_said(kind, pages):
  first, *others = [Image.new('L', (8, 8), 60 * k + 60) for k in range(pages)]
  options = {'lossless': True} if kind == 'WEBP' else {}
  content = pictures.of(
    first.convert('RGB'), kind, save_all=True, append_images=others, **options
  )
  picture = images.read(content, 4, images.AS_USUAL, lambda _: None)
  np.testing.assert_array_equal(picture.pixels, 60)
  assert picture.notes == ((images.PAGES,) if pages > 1 else ())


@pytest.mark.parametrize('channels', [1, 3])
def test_resize_keeps_constant_images(channels):
  batch = np.stack([np.full([8, 8, channels], v, np.uint8) for v in (3, 250)])
  resized = images.resize(batch, 12)
  assert resized.shape == (2, 12, 12, channels)
  np.testing.assert_array_equal(np.unique(resized[0]), [3])
  np.testing.assert_array_equal(np.unique(resized[1]), [250])
  assert images.resize(batch, None) is batch
