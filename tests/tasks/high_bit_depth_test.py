"""All bits of pictures are read, whatever the format; the numbers are NumPy's."""

import io

import hypothesis
from hypothesis import strategies
import numpy as np
from PIL import Image
import pytest

from tasks import high_bit_depth
from tasks import images
from tests.tasks import picture_files

_DRAW = np.random.default_rng(0)
# Nothing is symmetric: bytes, channels and axes in another order are seen.
_U16 = _DRAW.integers(0, 2**16, (5, 7, 4)).astype(np.uint16)
_OPAQUE = picture_files.of(Image.new('RGBA', (8, 8)), 'JPEG2000')
_WHOLE_RANGE = images.Reading(pixel_range=(0.0, 65535.0))


def _read(content):
  with Image.open(io.BytesIO(content)) as image:
    assert high_bit_depth.is_deep(image)
    assert high_bit_depth.UPPER not in high_bit_depth.notes(content, image)
    return high_bit_depth.numbers(content, image)


@pytest.mark.parametrize('channels', [1, 2, 3, 4])
def test_png_of_16_bits(channels):
  values = _U16[..., :channels]
  np.testing.assert_array_equal(_read(picture_files.png(values)).values, values)


@pytest.mark.parametrize('channels', [1, 3])
def test_colour_that_a_png_hides(channels):
  values = _U16[..., :channels]
  hidden = tuple(int(number) for number in values[2, 3])
  read = _read(picture_files.png(values, hidden)).values
  np.testing.assert_array_equal(read[..., :-1], values)
  expected = np.full([5, 7], 65535)
  expected[2, 3] = 0
  np.testing.assert_array_equal(read[..., -1], expected)


@pytest.mark.parametrize('order', ['<', '>'])
@pytest.mark.parametrize('deflated', [False, True])
@pytest.mark.parametrize(('channels', 'extra'), [(1, None), (3, None), (4, 0), (4, 2)])
def test_tiff_of_16_bits(order, deflated, channels, extra):
  values = _U16[..., :channels]
  content = picture_files.tiff(values, order=order, deflated=deflated, extra=extra)
  # The fourth channel is no opacity if the file says so.
  expected = values[..., :3] if extra == 0 else values
  np.testing.assert_array_equal(_read(content).values, expected)


@pytest.mark.parametrize('order', ['<', '>'])
@pytest.mark.parametrize(('channels', 'extra'), [(3, None), (4, 2)])
def test_tiff_of_a_plane_for_each_channel(order, channels, extra):
  values = _U16[..., :channels]
  content = picture_files.tiff(values, order=order, extra=extra, planar=True)
  np.testing.assert_array_equal(_read(content).values, values)


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16])
def test_fourth_channel_that_a_tiff_does_not_explain_is_no_opacity(dtype):
  values = (_U16 >> (8 if dtype == np.uint8 else 0)).astype(dtype)
  picture = images.read(picture_files.tiff(values), 7, _WHOLE_RANGE, lambda _: None)
  without = images.read(
    picture_files.tiff(values[..., :3]), 7, _WHOLE_RANGE, lambda _: None
  )
  np.testing.assert_array_equal(picture.pixels, without.pixels)
  assert (picture.notes, without.notes) == (
    (f'{high_bit_depth.CHANNELS} (1 of 4)',),
    (),
  )


@pytest.mark.parametrize('order', ['<', '>'])
def test_premultiplied_tiff(order):
  values = _U16.copy()
  values[..., 3] = np.maximum(values[..., 3], values[..., :3].max(axis=2))
  content = picture_files.tiff(values, order=order, extra=1)
  read = _read(content).values
  expected = values[..., :3].astype(np.float64) * 65535 / values[..., 3:]
  np.testing.assert_allclose(read[..., :3], expected, atol=1)
  np.testing.assert_array_equal(read[..., 3], values[..., 3])


def test_cmyk_of_16_bits():
  read = _read(picture_files.tiff(_U16, photometric=5)).values
  ink = _U16.astype(np.float64) / 65535
  expected = (1 - ink[..., :3]) * (1 - ink[..., 3:]) * 65535
  np.testing.assert_allclose(read, expected, atol=1)


@pytest.mark.parametrize('deflated', [False, True])
@pytest.mark.parametrize('dtype', [np.int8, np.int16, np.int32, np.uint32, np.float32])
def test_tiff_of_one_channel(dtype, deflated):
  values = (np.linspace(-3e9, 4e9, 35) % 2**32).reshape(5, 7, 1)
  if np.issubdtype(dtype, np.integer):
    limits = np.iinfo(dtype)
    values = np.linspace(limits.min, limits.max, 35).reshape(5, 7, 1)
  values = values.astype(dtype)
  read = _read(picture_files.tiff(values, deflated=deflated)).values
  np.testing.assert_array_equal(read, values.astype(read.dtype))


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16, np.float32])
def test_zero_is_white_where_a_tiff_says_so(dtype):
  high = {np.uint8: 255, np.uint16: 65535, np.float32: 1}[dtype]
  values = np.array([[[0], [high]]], dtype)
  content = picture_files.tiff(values, photometric=0)
  decoded = picture_files.decode(content, 2, images.Reading(fit='stretch'))
  np.testing.assert_array_equal(decoded[0, :, 0], [255, 0])


def _jpeg_2000(bits):
  """The header of a file of that many bits per colour."""
  colours = Image.new('RGB', (8, 8))
  content = bytearray(picture_files.of(colours, 'JPEG2000', no_jp2=True))
  # Ssiz of the three components (ISO 15444-1, A.5.1), by hand.
  for place in (42, 45, 48):
    content[place] = bits - 1
  return bytes(content)


def _layered(channels, extra, photometric=2, **known):
  """A TIFF of 8 bits."""
  values = np.resize(_U16, (5, 7, channels)).astype(np.uint8)
  return picture_files.tiff(values, extra=extra, photometric=photometric, **known)


@pytest.mark.parametrize(
  ('content', 'said'),
  [
    # Of no channel is said that it is opacity.
    (_layered(4, 0), (f'{high_bit_depth.CHANNELS} (1 of 4)',)),
    (_layered(5, (0, 0)), (f'{high_bit_depth.CHANNELS} (2 of 5)',)),
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
    (b'P6 2 1 1023\n' + bytes(range(12)), (high_bit_depth.UPPER,)),
    (b'P6 2 1 255\n' + bytes(range(6)), ()),
    (_jpeg_2000(12), (high_bit_depth.UPPER,)),
    (_jpeg_2000(8), ()),
    (
      picture_files.tiff(_U16[..., :3], planar=True, deflated=True),
      (high_bit_depth.UPPER,),
    ),
    (picture_files.tiff(_U16[..., :3].astype(np.uint8), planar=True), ()),
  ],
)
def test_bits_and_channels_that_are_not_read_are_said_to_be(content, said):
  with Image.open(io.BytesIO(content)) as image:
    assert not high_bit_depth.is_deep(image)
    assert high_bit_depth.notes(content, image) == said


@hypothesis.settings(max_examples=50, derandomize=True, deadline=None, database=None)
@hypothesis.given(
  shape=strategies.tuples(
    strategies.integers(1, 9),
    strategies.integers(1, 9),
    strategies.sampled_from([1, 3]),
  ),
  dtype=strategies.sampled_from([np.uint8, np.uint16]),
  kind=strategies.sampled_from(['PNG', 'TIFF']),
  order=strategies.sampled_from(['<', '>']),
  deflated=strategies.booleans(),
  seed=strategies.integers(0, 99),
)
def test_all_layouts_of_the_same_numbers_are_the_same_picture(
  shape, dtype, kind, order, deflated, seed
):
  full = np.iinfo(dtype).max
  values = np.random.default_rng(seed).integers(0, full + 1, shape).astype(dtype)
  if kind == 'PNG' and dtype == np.uint8:
    content = picture_files.of(
      Image.fromarray(values.squeeze(2) if shape[2] == 1 else values)
    )
  elif kind == 'PNG':
    content = picture_files.png(values)
  else:
    content = picture_files.tiff(values, order=order, deflated=deflated)
  size = max(shape[:2])
  reading = images.Reading(images.PAD, (0.0, float(full)))
  found = picture_files.decode(content, size, reading)
  # By NumPy: brightness, repeated over the channels, in the middle of black bars.
  bright = np.broadcast_to(np.rint(values / full * 255), (*shape[:2], 3))
  top, left = (round((size - side) / 2) for side in shape[:2])
  expected = np.zeros((size, size, 3))
  expected[top : top + shape[0], left : left + shape[1]] = bright
  np.testing.assert_array_equal(found, expected)
