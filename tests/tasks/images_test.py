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

_KINDS = ('PNG', 'BMP', 'TIFF', 'JPEG', 'WEBP')
_OTHERS = (('PNG', '1'), ('PNG', 'P'), ('PNG', 'LA'), ('TIFF', 'CMYK'))


@pytest.mark.parametrize(
  ('kind', 'mode'), [*itertools.product(_KINDS, ('RGB', 'L')), *_OTHERS]
)
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
