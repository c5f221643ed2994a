"""Which pixels of a mask show the object: a name for each kind of file."""

import io

import numpy as np
from PIL import Image
import pytest

from tasks import masks
from tests.worlds import pictures

_DRAW = np.random.default_rng(0)
# The object: a block off the middle, so that turned or mirrored masks differ.
_OBJECT = np.zeros((32, 32), bool)
_OBJECT[4:20, 10:28] = True
_SECOND = np.zeros((32, 32), bool)
_SECOND[22:30, 2:8] = True
_VOID = np.zeros((32, 32), bool)
_VOID[:2] = True
_ALL, _NONE = np.ones_like(_OBJECT), np.zeros_like(_OBJECT)
_BOTH = _OBJECT | _SECOND


def _decoded(content):
  return masks.decode(content, 32)[1]


def _numbers(other, one, dtype=np.uint8, second=None, void=None):
  values = np.where(_OBJECT, one, other).astype(dtype)
  if second is not None:
    values[_SECOND] = second
  if void is not None:
    values[_VOID] = void
  return values


def _tiff(values, **tags):
  return pictures.tiff(values[..., np.newaxis], **tags)


def _image(values, mode=None, kind='PNG', **options):
  image = Image.fromarray(values)
  return pictures.of(image.convert(mode) if mode else image, kind, **options)


def _of_palette(values, palette, mode='P'):
  image = Image.fromarray(values, 'P')
  image.putpalette(np.asarray(palette, np.uint8).ravel().tolist())
  return pictures.of(image.convert(mode))


# The first colours of PASCAL VOC's map, and that of its void value.
_VOC = np.zeros((256, 3), np.uint8)
_VOC[:4] = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]
_VOC[255] = (224, 224, 192)


def _two_numbers():
  """Of two numbers the larger one is the object."""
  for other, one in ((0, 1), (0, 255), (0, 77), (0, 128), (1, 2), (100, 255)):
    for kind in (np.uint8, np.uint16, np.int16, np.int32, np.uint32, np.float32):
      yield f'{one} above {other}, {kind.__name__}', _tiff(_numbers(other, one, kind))
  for kind in ('PNG', 'BMP', 'TIFF', 'GIF'):
    for mode in ('1', 'L', 'P', 'RGB'):
      yield f'{kind} of {mode}', _image(_numbers(0, 255), mode, kind)
  for kind in (np.uint8, np.uint16):
    values = _numbers(np.iinfo(kind).max, 0, kind)
    yield f'zero is white, {kind.__name__}', _tiff(values, photometric=0)
  yield 'white first', _of_palette(_numbers(1, 0), [[255] * 3, [0] * 3])
  yield 'black first', _of_palette(_numbers(0, 1), [[0] * 3, [255] * 3])
  exif = Image.Exif()
  exif[0x0112] = 3
  for kind in ('PNG', 'TIFF'):
    upside_down = _image(_numbers(0, 255)[::-1, ::-1], None, kind, exif=exif)
    yield f'{kind} upside down', upside_down


def _opacities():
  """Opacity that varies is the mask, and one that does not says nothing."""
  for mode in ('LA', 'RGBA'):
    yield f'opaque {mode}', _image(_numbers(0, 255), mode)
    for kind in (np.uint8, np.uint16):
      full = np.iinfo(kind).max
      # The colours say something else.
      colours = _DRAW.integers(0, full, (32, 32, len(mode) - 1))
      values = np.concatenate([colours, (_OBJECT * full)[..., None]], axis=2)
      write = _image if kind == np.uint8 else pictures.png
      yield f'{mode} of {kind.__name__}', write(values.astype(kind))


def _several_numbers():
  """Labels, with and without a void value, and levels of grey."""
  for void, kind in ((255, np.uint8), (65535, np.uint16)):
    for one, other in ((1, 1), (1, 2), (12, 126)):
      values = _numbers(0, one, kind, second=other, void=void)
      yield f'labels {one}, {other}, void {void}', _tiff(values), _BOTH
  yield 'labels 2, 7', _image(_numbers(0, 2, second=7)), _BOTH
  # Two labels and no background are two objects.
  yield 'labels 7, 40 alone', _image(_numbers(7, 40)), _ALL
  yield 'levels 127, 255', _image(_numbers(0, 255, second=127)), _OBJECT
  yield 'levels 128, 255', _image(_numbers(0, 255, second=128)), _BOTH
  for mode in ('P', 'RGB'):
    for second in (None, 3):
      for void in (None, 255):
        values = _numbers(0, 1, second=second, void=void)
        expected = _OBJECT if second is None else _BOTH
        yield f'VOC {mode} {second} {void}', _of_palette(values, _VOC, mode), expected
    alone = _of_palette(_numbers(0, 0, void=255), _VOC, mode)
    yield f'VOC {mode} of void alone', alone, _NONE
  for kind in (np.uint8, np.uint16, np.float32):
    for number in (0, 1, 128, 255):
      content = _tiff(np.full((8, 8), number, kind))
      yield f'{number} alone, {kind.__name__}', content, _ALL if number else _NONE
  levels = np.zeros((32, 32), np.uint8)
  levels[6:26, 6:26] = 60
  levels[8:24, 8:24] = 255
  yield '255 within a smaller rim', _image(levels), levels == 255
  ramp = np.tile(np.linspace(0, 255, 32), (32, 1))
  for kind, scale in ((np.uint8, 1), (np.uint16, 257), (np.float32, 1 / 255)):
    values = (ramp * scale).astype(kind)
    yield f'ramp, {kind.__name__}', _tiff(values), values > 255 * scale / 2


_MASKS = {
  **{name: (content, _OBJECT) for name, content in (*_two_numbers(), *_opacities())},
  **{name: own for name, *own in _several_numbers()},
}


@pytest.mark.parametrize('name', _MASKS)
def test_object_of_a_mask(name):
  content, expected = _MASKS[name]
  np.testing.assert_array_equal(_decoded(content), expected)


@pytest.mark.parametrize('quality', [50, 95])
@pytest.mark.parametrize('mode', ['L', 'RGB'])
def test_noise_of_jpeg_is_below_128(quality, mode):
  content = _image(_numbers(0, 255), mode, 'JPEG', quality=quality)
  found = _decoded(content)
  assert np.mean(found != _OBJECT) < 0.02
  # Saved again without loss, the noise stays, and so does the rule.
  with Image.open(io.BytesIO(content)) as image:
    again = _image(np.asarray(image.convert('L')))
  np.testing.assert_array_equal(_decoded(again), found)


@pytest.mark.parametrize('most', [2, 3, 12])
@pytest.mark.parametrize('kind', ['PNG', 'JPEG'])
def test_noise_alone_is_empty(most, kind):
  noise = _DRAW.integers(0, most + 1, (64, 64)).astype(np.uint8)
  assert not np.any(_decoded(_image(noise, None, kind)))
