"""Transparency and colour profiles, in all modes."""

import io

import numpy as np
from PIL import Image
from PIL import ImageCms
import pytest

from tasks import colour
from tests.tasks import picture_files

_DRAW = np.random.default_rng(0)
_COLOURS = _DRAW.integers(0, 256, (6, 8, 3)).astype(np.uint8)
_ALPHA = _DRAW.integers(0, 256, (6, 8, 1)).astype(np.uint8)
_ALPHA[0] = 0


def _on_white(colours, alpha):
  """By hand: the colour where it is opaque, else white."""
  share = alpha / 255
  return np.broadcast_to(colours * share + 255 * (1 - share), (6, 8, 3))


def _rgb(image, profile=None):
  rgb, notes = colour.to_rgb(image, profile)
  assert rgb.mode == 'RGB'
  return np.asarray(rgb), notes


@pytest.mark.parametrize('mode', ['RGBA', 'RGBa', 'LA', 'La', 'PA'])
def test_transparency_is_white(mode):
  grey = mode in ('LA', 'La')
  colours = _COLOURS[..., :1] if grey else _COLOURS
  if mode == 'PA':
    colours = colours // 128 * 128
  image = Image.fromarray(np.concatenate([colours, _ALPHA], axis=2))
  image = image if image.mode == mode else image.convert(mode)
  found, notes = _rgb(image)
  # Premultiplied colours have lost some bits where they are nearly transparent.
  most = {'RGBa': 2, 'La': 2}.get(mode, 1)
  np.testing.assert_allclose(found.astype(int), _on_white(colours, _ALPHA), atol=most)
  np.testing.assert_array_equal(found[0], 255)
  assert notes == [colour.TRANSPARENT]


@pytest.mark.parametrize(
  ('kind', 'mode'),
  [('PNG', 'RGBA'), ('PNG', 'LA'), ('TIFF', 'RGBA'), ('TIFF', 'LA'), ('WEBP', 'RGBA')],
)
def test_transparent_pixels_do_not_change_the_image(kind, mode):
  channels = len(mode)
  decoded = []
  for seed in (1, 2):
    values = np.random.default_rng(seed).integers(0, 256, (12, 12, channels))
    values = values.astype(np.uint8)
    values[..., -1] = 0
    values[3:9, 3:9] = 255
    values[3:9, 3:9, 0] = 40
    options = {'lossless': True, 'exact': True} if kind == 'WEBP' else {}
    content = picture_files.of(Image.fromarray(values), kind, **options)
    decoded.append(picture_files.decode(content, 6))
  np.testing.assert_array_equal(*decoded)


@pytest.mark.parametrize('channels', [2, 4])
def test_transparent_pixels_do_not_change_the_image_in_16_bits(channels):
  decoded = []
  for most in (1000, 65536):
    values = np.random.default_rng(most).integers(0, most, (12, 12, channels))
    values[..., -1] = 0
    values[3:9, 3:9] = 900
    values[3:9, 3:9, -1] = 65535
    decoded.append(
      picture_files.decode(picture_files.png(values.astype(np.uint16)), 12)
    )
  np.testing.assert_array_equal(*decoded)
  # By hand: 900 of 1023.
  assert decoded[0][6, 6, 0] == 224
  assert decoded[0][0, 0, 0] == 255


@pytest.mark.parametrize(
  ('image', 'hidden'),
  [
    (Image.fromarray(_COLOURS), tuple(int(c) for c in _COLOURS[2, 3])),
    (Image.fromarray(_COLOURS[..., 0]), int(_COLOURS[2, 3, 0])),
    (Image.fromarray(_COLOURS[..., 0] > 127), 0),
    (Image.fromarray(_COLOURS // 128 * 128).quantize(8), 3),
  ],
)
def test_colour_that_a_png_hides_is_white(image, hidden):
  whole = np.asarray(image.convert('RGB'))
  own = np.asarray(image)
  if image.mode == 'P':
    shown = own != hidden
  else:
    shown = np.any(own.reshape(6, 8, -1) != hidden, axis=2)
  content = picture_files.of(image, transparency=hidden)
  with Image.open(io.BytesIO(content)) as opened:
    found, notes = _rgb(opened)
  expected = np.where(shown[..., np.newaxis], whole, 255)
  np.testing.assert_array_equal(found, expected)
  assert notes == [colour.TRANSPARENT]


def _profile(name):
  return ImageCms.ImageCmsProfile(ImageCms.createProfile(name)).tobytes()


def _linear(space):
  """A profile of linear light, with sRGB's primaries, made of its bytes by hand.

  The curves of Pillow's own profile of sRGB are replaced by one without entries, which
  is the identity (ICC.1:2010, 10.5).
  """
  content = bytearray(_profile('sRGB'))
  count = int.from_bytes(content[128:132], 'big')
  curve = b'curv\0\0\0\0\0\0\0\0'
  place = len(content)
  content += curve
  for k in range(count):
    entry = 132 + 12 * k
    if content[entry : entry + 4] in (b'rTRC', b'gTRC', b'bTRC'):
      content[entry + 4 : entry + 8] = place.to_bytes(4, 'big')
      content[entry + 8 : entry + 12] = len(curve).to_bytes(4, 'big')
  content[0:4] = len(content).to_bytes(4, 'big')
  if space == 'GRAY':
    content[16:20] = b'GRAY'
    content[:] = content.replace(b'rTRC', b'kTRC')
  return bytes(content)


def _srgb_of_linear(values):
  """The curve of IEC 61966-2-1."""
  x = values / 255
  return 255 * np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize(
  ('image', 'space'),
  [
    (Image.fromarray(_COLOURS), 'RGB'),
    (Image.fromarray(_COLOURS[..., 0]), 'RGB'),
    (Image.fromarray(_COLOURS[..., 0]), 'GRAY'),
    (Image.fromarray(_COLOURS // 64 * 64).quantize(64), 'RGB'),
  ],
)
def test_profiles_are_converted_to_srgb(image, space):
  found, notes = _rgb(image, _linear(space))
  before = np.asarray(image.convert('RGB'))
  # In greyscale the library is not as exact near black, where the curve is steep.
  most = 7 if space == 'GRAY' else 1.6
  np.testing.assert_allclose(found.astype(int), _srgb_of_linear(before), atol=most)
  assert notes == [colour.CONVERTED]


def test_profile_and_transparency():
  image = Image.fromarray(np.concatenate([_COLOURS, _ALPHA], axis=2))
  found, notes = _rgb(image, _linear('RGB'))
  expected = _on_white(_srgb_of_linear(_COLOURS), _ALPHA)
  np.testing.assert_allclose(found.astype(int), expected, atol=2.5)
  assert notes == [colour.CONVERTED, colour.TRANSPARENT]


@pytest.mark.parametrize('mode', ['L', 'RGB', 'P'])
def test_profile_of_srgb_changes_no_bit(mode):
  image = Image.fromarray(_COLOURS).convert(mode)
  found, notes = _rgb(image, _profile('sRGB'))
  np.testing.assert_array_equal(found, np.asarray(image.convert('RGB')))
  assert notes == []


@pytest.mark.parametrize(
  ('mode', 'profile'),
  [('RGB', b'no profile'), ('RGB', _linear('GRAY')), ('CMYK', _linear('RGB'))],
  # A profile has the time of its making, and names must be the same in all processes.
  ids=['damaged', 'grey', 'not-cmyk'],
)
def test_profiles_that_do_not_fit_are_said_and_ignored(mode, profile):
  image = Image.fromarray(_COLOURS).convert(mode)
  found, notes = _rgb(image, profile)
  np.testing.assert_array_equal(found, np.asarray(image.convert('RGB')))
  assert notes == [colour.UNUSABLE]


@pytest.mark.parametrize('kind', ['JPEG', 'PNG', 'TIFF', 'WEBP'])
def test_profile_in_a_file(kind):
  image = Image.new('RGB', (8, 8), (64, 128, 192))
  content = picture_files.of(image, kind, icc_profile=_linear('RGB'))
  expected = _srgb_of_linear(np.array([64, 128, 192]))
  np.testing.assert_allclose(picture_files.decode(content, 4)[1, 1], expected, atol=4)


@pytest.mark.parametrize('mode', ['YCbCr', 'CMYK', 'LAB'])
def test_other_spaces_become_rgb(mode):
  image = Image.new('RGB', (8, 8), (200, 30, 60))
  if mode == 'LAB':
    transform = ImageCms.buildTransform(
      ImageCms.createProfile('sRGB'), ImageCms.createProfile('LAB'), 'RGB', 'LAB'
    )
    image = ImageCms.applyTransform(image, transform)
  else:
    image = image.convert(mode)
  content = picture_files.of(image, 'TIFF')
  np.testing.assert_allclose(
    picture_files.decode(content, 4)[1, 1], [200, 30, 60], atol=4
  )
