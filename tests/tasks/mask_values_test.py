"""Which pixels of a mask show the object: one test for each kind of file."""

import io

import numpy as np
from PIL import Image
import pytest

from tasks import masks
from tests.tasks import picture_files

_DRAW = np.random.default_rng(0)
# The object: a block off the middle, so that turned or mirrored masks differ.
_OBJECT = np.zeros((32, 32), bool)
_OBJECT[4:20, 10:28] = True
_SECOND = np.zeros((32, 32), bool)
_SECOND[22:30, 2:8] = True
_VOID = np.zeros((32, 32), bool)
_VOID[:2] = True


def _decoded(content):
  return masks.decode(content, 32)[1]


def _check(content, expected=_OBJECT):
  np.testing.assert_array_equal(_decoded(content), expected)


def _numbers(other, one, dtype=np.uint8):
  return np.where(_OBJECT, one, other).astype(dtype)


@pytest.mark.parametrize(
  ('other', 'one'), [(0, 1), (0, 255), (0, 77), (0, 128), (1, 2), (100, 255)]
)
@pytest.mark.parametrize(
  'dtype', [np.uint8, np.uint16, np.int16, np.int32, np.uint32, np.float32]
)
def test_larger_of_two_numbers_is_taken(other, one, dtype):
  values = _numbers(other, one, dtype)
  _check(picture_files.tiff(values[..., np.newaxis]))


@pytest.mark.parametrize('kind', ['PNG', 'BMP', 'TIFF', 'GIF'])
@pytest.mark.parametrize('mode', ['1', 'L', 'P', 'RGB'])
def test_black_and_white_in_every_mode_and_format(kind, mode):
  image = Image.fromarray(_numbers(0, 255)).convert(mode)
  _check(picture_files.of(image, kind))


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16])
def test_zero_is_white_where_a_tiff_says_so(dtype):
  values = _numbers(np.iinfo(dtype).max, 0, dtype)
  _check(picture_files.tiff(values[..., np.newaxis], photometric=0))


@pytest.mark.parametrize('first', ['white', 'black'])
def test_black_and_white_of_a_palette_in_any_order(first):
  image = Image.fromarray(_numbers(*((1, 0) if first == 'white' else (0, 1))), 'P')
  levels = [255, 255, 255, 0, 0, 0]
  image.putpalette(levels if first == 'white' else levels[3:] + levels[:3])
  _check(picture_files.of(image))


@pytest.mark.parametrize('mode', ['LA', 'RGBA'])
@pytest.mark.parametrize('bits', [8, 16])
def test_opacity_that_varies_is_the_mask(mode, bits):
  full = 2**bits - 1
  # The colours say something else.
  colours = _DRAW.integers(0, full, (32, 32, len(mode) - 1))
  values = np.concatenate([colours, (_OBJECT * full)[..., np.newaxis]], axis=2)
  if bits == 16:
    _check(picture_files.png(values.astype(np.uint16)))
  else:
    _check(picture_files.of(Image.fromarray(values.astype(np.uint8))))


@pytest.mark.parametrize('mode', ['LA', 'RGBA'])
def test_opacity_that_does_not_vary_says_nothing(mode):
  grey = Image.fromarray(_numbers(0, 255)).convert(mode)
  _check(picture_files.of(grey))


@pytest.mark.parametrize('void', [255, 65535])
@pytest.mark.parametrize('labels', [(1,), (1, 2), (12, 126)])
def test_labels_with_a_void_value(void, labels):
  dtype = np.uint8 if void == 255 else np.uint16
  values = _numbers(0, labels[0], dtype)
  values[_SECOND] = labels[-1]
  values[_VOID] = void
  _check(picture_files.tiff(values[..., np.newaxis]), _OBJECT | _SECOND)


def test_255_is_the_object_where_it_is_larger_than_its_rim():
  levels = np.zeros((32, 32), np.uint8)
  levels[6:26, 6:26] = 60
  levels[8:24, 8:24] = 255
  _, object_ = masks.decode(picture_files.of(Image.fromarray(levels)), 32)
  np.testing.assert_array_equal(object_, levels == 255)


def test_labels_without_a_void_value():
  values = _numbers(0, 2)
  values[_SECOND] = 7
  _check(picture_files.of(Image.fromarray(values)), _OBJECT | _SECOND)
  # Two labels and no background are two objects.
  _check(picture_files.of(Image.fromarray(_numbers(7, 40))), np.ones_like(_OBJECT))


# The first colours of PASCAL VOC's map, and that of its void value.
_MAP = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]
_VOID_COLOUR = (224, 224, 192)


def _voc(with_second, with_void):
  values = _numbers(0, 1)
  values[_SECOND] = 3 * with_second
  values[_VOID] = 255 * with_void
  palette = np.zeros((256, 3), np.uint8)
  palette[:4], palette[255] = _MAP, _VOID_COLOUR
  image = Image.fromarray(values, 'P')
  image.putpalette(palette.ravel().tolist())
  return image


@pytest.mark.parametrize('mode', ['P', 'RGB'])
@pytest.mark.parametrize('with_second', [False, True])
@pytest.mark.parametrize('with_void', [False, True])
def test_colours_of_pascal_voc(mode, with_second, with_void):
  image = _voc(with_second, with_void).convert(mode)
  expected = _OBJECT | (_SECOND & with_second)
  _check(picture_files.of(image), expected)


@pytest.mark.parametrize('mode', ['P', 'RGB'])
def test_void_alone_is_no_object(mode):
  image = _voc(False, True)
  values = np.where(np.asarray(image) == 1, 0, image).astype(np.uint8)
  empty = Image.fromarray(values, 'P')
  empty.putpalette(image.getpalette())
  _check(picture_files.of(empty.convert(mode)), np.zeros((32, 32), bool))


@pytest.mark.parametrize('quality', [50, 95])
@pytest.mark.parametrize('mode', ['L', 'RGB'])
def test_noise_of_jpeg_is_below_128(quality, mode):
  image = Image.fromarray(_numbers(0, 255)).convert(mode)
  content = picture_files.of(image, 'JPEG', quality=quality)
  found = _decoded(content)
  assert np.mean(found != _OBJECT) < 0.02
  # Saved again without loss, the noise stays, and so does the rule.
  with_noise = Image.fromarray(_of_pillow(content))
  np.testing.assert_array_equal(_decoded(picture_files.of(with_noise)), found)


def _of_pillow(content):
  """What Pillow alone reads, greyscale."""
  with Image.open(io.BytesIO(content)) as image:
    return np.asarray(image.convert('L'))


@pytest.mark.parametrize('most', [2, 3, 12])
@pytest.mark.parametrize('kind', ['PNG', 'JPEG'])
def test_noise_alone_is_empty(most, kind):
  noise = _DRAW.integers(0, most + 1, (64, 64)).astype(np.uint8)
  assert not np.any(_decoded(picture_files.of(Image.fromarray(noise), kind)))


@pytest.mark.parametrize(
  ('number', 'expected'), [(0, False), (1, True), (128, True), (255, True)]
)
@pytest.mark.parametrize('dtype', [np.uint8, np.uint16, np.float32])
def test_constant_masks_are_all_or_nothing(number, expected, dtype):
  content = picture_files.tiff(np.full((8, 8, 1), number, dtype))
  np.testing.assert_array_equal(_decoded(content), np.full((32, 32), expected))


def test_soft_edges_are_cut_at_half():
  ramp = np.tile(np.linspace(0, 255, 32), (32, 1))
  for dtype, scale in ((np.uint8, 1), (np.uint16, 257), (np.float32, 1 / 255)):
    values = (ramp * scale).astype(dtype)
    content = picture_files.tiff(values[..., np.newaxis])
    np.testing.assert_array_equal(_decoded(content), values > ramp.max() * scale / 2)


def test_three_levels_of_grey_are_brightness():
  values = _numbers(0, 255)
  values[_SECOND] = 127
  _check(picture_files.of(Image.fromarray(values)))
  values[_SECOND] = 128
  _check(picture_files.of(Image.fromarray(values)), _OBJECT | _SECOND)


@pytest.mark.parametrize('kind', ['PNG', 'TIFF'])
def test_masks_are_turned_upright(kind):
  exif = Image.Exif()
  exif[0x0112] = 3
  upside_down = Image.fromarray(_numbers(0, 255)[::-1, ::-1])
  _check(picture_files.of(upside_down, kind, exif=exif))
