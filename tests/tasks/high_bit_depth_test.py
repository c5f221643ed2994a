"""All bits of pictures are read, whatever the format; the numbers are NumPy's."""

import io

import numpy as np
from PIL import Image
import pytest

from tasks import high_bit_depth
from tasks import images
from tests.worlds import pictures

_DRAW = np.random.default_rng(0)
# Nothing is symmetric: bytes, channels and axes in another order are seen.
_U16 = _DRAW.integers(0, 2**16, (5, 7, 4)).astype(np.uint16)
_OPAQUE = pictures.of(Image.new('RGBA', (8, 8)), 'JPEG2000')
_WHOLE_RANGE = images.Reading(pixel_range=(0.0, 65535.0))


def _read(content):
  with Image.open(io.BytesIO(content)) as image:
    assert high_bit_depth.is_deep(image)
    assert high_bit_depth.UPPER not in high_bit_depth.notes(content, image)
    return high_bit_depth.numbers(content, image)


def _layouts():
  """Yields a name of each layout, a file, and its numbers as NumPy has them."""
  for channels in (1, 2, 3, 4):
    values = _U16[..., :channels]
    yield f'PNG of {channels}', pictures.png(values), values
  for channels in (1, 3):
    # The opacity of a colour that is hidden is 0.
    values, opacity = _U16[..., :channels], np.full([5, 7, 1], 65535)
    opacity[2, 3] = 0
    hidden = tuple(int(number) for number in values[2, 3])
    expected = np.concatenate([values, opacity], axis=2)
    yield f'PNG of {channels} and hidden', pictures.png(values, hidden), expected
  for order in '<>':
    for channels, extra, known in (
      *((1, None, {'deflated': deflated}) for deflated in (False, True)),
      *((3, None, {'deflated': deflated}) for deflated in (False, True)),
      *((4, extra, {'deflated': d}) for extra in (0, 2) for d in (False, True)),
      (3, None, {'planar': True}),
      (4, 2, {'planar': True}),
    ):
      content = pictures.tiff(_U16[..., :channels], order=order, extra=extra, **known)
      # The fourth channel is no opacity if the file says so.
      expected = _U16[..., : 3 if extra == 0 else channels]
      yield f'TIFF {order} {channels} {extra} {known}', content, expected
    values = _U16.copy()
    values[..., 3] = np.maximum(values[..., 3], values[..., :3].max(axis=2))
    expected = values.astype(np.float64)
    expected[..., :3] *= 65535 / expected[..., 3:]
    content = pictures.tiff(values, order=order, extra=1)
    yield f'TIFF {order} premultiplied', content, expected
  ink = _U16.astype(np.float64) / 65535
  expected = (1 - ink[..., :3]) * (1 - ink[..., 3:]) * 65535
  yield 'TIFF of CMYK', pictures.tiff(_U16, photometric=5), expected
  for dtype in (np.int8, np.int16, np.int32, np.uint32, np.float32):
    values = (np.linspace(-3e9, 4e9, 35) % 2**32).reshape(5, 7, 1)
    if np.issubdtype(dtype, np.integer):
      limits = np.iinfo(dtype)
      values = np.linspace(limits.min, limits.max, 35).reshape(5, 7, 1)
    values = values.astype(dtype)
    for deflated in (False, True):
      content = pictures.tiff(values, deflated=deflated)
      yield f'TIFF of {dtype.__name__} {deflated}', content, values


_LAYOUTS = {name: own for name, *own in _layouts()}


@pytest.mark.parametrize('name', _LAYOUTS)
def test_all_bits_of_each_layout_are_read(name):
  content, expected = _LAYOUTS[name]
  # Only these are computed.
  most = 1.01 if 'premultiplied' in name or 'CMYK' in name else 0
  np.testing.assert_allclose(_read(content).values, expected, rtol=0, atol=most)


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16])
def test_fourth_channel_that_a_tiff_does_not_explain_is_no_opacity(dtype):
  values = (_U16 >> (8 if dtype == np.uint8 else 0)).astype(dtype)
  picture = images.read(pictures.tiff(values), 7, _WHOLE_RANGE, lambda _: None)
  without = images.read(pictures.tiff(values[..., :3]), 7, _WHOLE_RANGE, lambda _: None)
  np.testing.assert_array_equal(picture.pixels, without.pixels)
  assert (picture.notes, without.notes) == (
    (f'{high_bit_depth.CHANNELS} (1 of 4)',),
    (),
  )


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16, np.float32])
def test_zero_is_white_where_a_tiff_says_so(dtype):
  high = {np.uint8: 255, np.uint16: 65535, np.float32: 1}[dtype]
  values = np.array([[[0], [high]]], dtype)
  content = pictures.tiff(values, photometric=0)
  decoded = pictures.decode(content, 2, images.Reading(fit='stretch'))
  np.testing.assert_array_equal(decoded[0, :, 0], [255, 0])


def _jpeg_2000(bits):
  """The header of a file of that many bits per colour."""
  colours = Image.new('RGB', (8, 8))
  content = bytearray(pictures.of(colours, 'JPEG2000', no_jp2=True))
  # Ssiz of the three components (ISO 15444-1, A.5.1), by hand.
  for place in (42, 45, 48):
    content[place] = bits - 1
  return bytes(content)


def _layered(channels, extra, photometric=2, **known):
  """A TIFF of 8 bits."""
  values = np.resize(_U16, (5, 7, channels)).astype(np.uint8)
  return pictures.tiff(values, extra=extra, photometric=photometric, **known)


@pytest.mark.parametrize(
  ('content', 'said'),
  [
    # Of no channel is said that it is opacity.
    (_layered(4, 0), (f'{high_bit_depth.CHANNELS} (1 of 4)',)),
    (_layered(6, (2, 0, 0)), (f'{high_bit_depth.CHANNELS} (2 of 6)',)),
    (_layered(2, 0, 1), (f'{high_bit_depth.CHANNELS} (1 of 2)',)),
    (
      _layered(9, (0,) * 8, 1, planar=True, deflated=True),
      (f'{high_bit_depth.CHANNELS} (8 of 9)',),
    ),
    (_layered(5, 0, 5), (f'{high_bit_depth.CHANNELS} (1 of 5)',)),
    *((_layered(*whole), ()) for whole in ((4, 2), (4, 1), (2, 2, 1), (4, None, 5))),
    (_OPAQUE.replace(b'cdef', b'none'), (f'{high_bit_depth.CHANNELS} (1 of 4)',)),
    (_OPAQUE, ()),
    (b'P6 2 1 65535\n' + bytes(range(12)), (high_bit_depth.UPPER,)),
    (b'P6 2 1 255\n' + bytes(range(6)), ()),
    (_jpeg_2000(12), (high_bit_depth.UPPER,)),
    (_jpeg_2000(8), ()),
    (
      pictures.tiff(_U16[..., :3], planar=True, deflated=True),
      (high_bit_depth.UPPER,),
    ),
    (pictures.tiff(_U16[..., :3].astype(np.uint8), planar=True), ()),
  ],
)
def test_bits_and_channels_that_are_not_read_are_said_to_be(content, said):
  with Image.open(io.BytesIO(content)) as image:
    assert not high_bit_depth.is_deep(image)
    assert high_bit_depth.notes(content, image) == said
