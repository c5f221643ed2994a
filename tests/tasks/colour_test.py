"""Transparency and colour profiles, in all modes."""

import io

import numpy as np
from PIL import Image
from PIL import ImageCms
import pytest

from tasks import colour
from tests.worlds import pictures

_DRAW = np.random.default_rng(0)
_COLOURS = _DRAW.integers(0, 256, (6, 8, 3)).astype(np.uint8)
_ALPHA = _DRAW.integers(0, 256, (6, 8, 1)).astype(np.uint8)
_ALPHA[0] = 0


def _on_white(colours, alpha):
  """By hand: the colour where it is opaque, else white."""
  share = alpha / 255
  return np.broadcast_to(colours * share + 255 * (1 - share), (6, 8, 3))


@pytest.mark.parametrize('channels', [2, 4])
def test_transparent_pixels_do_not_change_the_image_in_16_bits(channels):
  decoded = []
  for most in (1000, 65536):
    values = np.random.default_rng(most).integers(0, most, (12, 12, channels))
    values[..., -1] = 0
    values[3:9, 3:9] = 900
    values[3:9, 3:9, -1] = 65535
    decoded.append(pictures.decode(pictures.png(values.astype(np.uint16)), 12))
  np.testing.assert_array_equal(*decoded)
  # By hand: 900 of 1023.
  assert decoded[0][6, 6, 0] == 224
  assert decoded[0][0, 0, 0] == 255


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


def _transparent():
  """Yields pictures that are shown on white, with what is seen and how exactly."""
  for mode in ('RGBA', 'RGBa', 'LA', 'La', 'PA'):
    colours = _COLOURS[..., :1] if mode in ('LA', 'La') else _COLOURS
    if mode == 'PA':
      colours = colours // 128 * 128
    image = Image.fromarray(np.concatenate([colours, _ALPHA], axis=2))
    # Premultiplied colours have lost some bits where they are nearly transparent.
    most = {'RGBa': 2, 'La': 2}.get(mode, 1)
    image = image if image.mode == mode else image.convert(mode)
    yield mode, image, None, _on_white(colours, _ALPHA), most
  image = Image.fromarray(np.concatenate([_COLOURS, _ALPHA], axis=2))
  linear = _on_white(_srgb_of_linear(_COLOURS), _ALPHA)
  yield 'linear RGBA', image, _linear('RGB'), linear, 2.5
  # A colour that a PNG hides.
  for image, hidden in (
    (Image.fromarray(_COLOURS), tuple(int(c) for c in _COLOURS[2, 3])),
    (Image.fromarray(_COLOURS[..., 0]), int(_COLOURS[2, 3, 0])),
    (Image.fromarray(_COLOURS[..., 0] > 127), 0),
    (Image.fromarray(_COLOURS // 128 * 128).quantize(8), 3),
  ):
    own, whole = np.asarray(image), np.asarray(image.convert('RGB'))
    shown = np.any(own.reshape(6, 8, -1) != hidden, axis=2)
    content = pictures.of(image, transparency=hidden)
    opened = Image.open(io.BytesIO(content))
    expected = np.where(shown[..., np.newaxis], whole, 255)
    yield f'hidden colour of {image.mode}', opened, None, expected, 0


def _opaque():
  """Yields pictures with a profile, what is seen, how exactly, and what is said."""
  for image, space in (
    (Image.fromarray(_COLOURS), 'RGB'),
    (Image.fromarray(_COLOURS[..., 0]), 'RGB'),
    (Image.fromarray(_COLOURS[..., 0]), 'GRAY'),
    (Image.fromarray(_COLOURS // 64 * 64).quantize(64), 'RGB'),
  ):
    expected = _srgb_of_linear(np.asarray(image.convert('RGB')))
    # In greyscale the library is not as exact near black, where the curve is steep.
    most = 7 if space == 'GRAY' else 1.6
    name = f'linear {space} of {image.mode}'
    yield name, image, _linear(space), expected, most, [colour.CONVERTED]
  for mode, name, profile, said in (
    ('L', 'sRGB', _profile('sRGB'), []),
    ('RGB', 'sRGB', _profile('sRGB'), []),
    ('P', 'sRGB', _profile('sRGB'), []),
    ('RGB', 'damaged', b'no profile', [colour.UNUSABLE]),
    ('RGB', 'grey', _linear('GRAY'), [colour.UNUSABLE]),
    ('CMYK', 'not-cmyk', _linear('RGB'), [colour.UNUSABLE]),
  ):
    image = Image.fromarray(_COLOURS).convert(mode)
    expected = np.asarray(image.convert('RGB'))
    yield f'{name} profile of {mode}', image, profile, expected, 0, said


_PICTURES = {name: own for name, *own in _opaque()}
for _name, _image, _given, _seen, _most in _transparent():
  _said = [colour.CONVERTED] * bool(_given) + [colour.TRANSPARENT]
  _PICTURES[_name] = (_image, _given, _seen, _most, _said)


@pytest.mark.parametrize('name', _PICTURES)
def test_transparency_and_profiles_become_colours_on_white(name):
  image, profile, expected, most, said = _PICTURES[name]
  rgb, notes = colour.to_rgb(image, profile)
  assert rgb.mode == 'RGB'
  found = np.asarray(rgb).astype(int)
  np.testing.assert_allclose(found, expected, atol=most)
  assert np.all(found[expected == 255] == 255)
  assert notes == said


@pytest.mark.parametrize('kind', ['JPEG', 'PNG', 'TIFF', 'WEBP'])
def test_profile_in_a_file(kind):
  image = Image.new('RGB', (8, 8), (64, 128, 192))
  content = pictures.of(image, kind, icc_profile=_linear('RGB'))
  expected = _srgb_of_linear(np.array([64, 128, 192]))
  np.testing.assert_allclose(pictures.decode(content, 4)[1, 1], expected, atol=4)


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
  content = pictures.of(image, 'TIFF')
  np.testing.assert_allclose(pictures.decode(content, 4)[1, 1], [200, 30, 60], atol=4)
