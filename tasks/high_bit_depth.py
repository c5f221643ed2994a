"""Reads pictures of more than 8 bits, which Pillow would cut to 8.

Pillow holds a single channel of 16 bits, 32 bits or floating point as it is. Of several
channels of 16 bits it keeps the upper bytes alone. The lower ones are what it keeps if
the file is read with the order of bytes reversed.
"""

import io
import re
from typing import Any

import numpy as np
from PIL import Image
from PIL import TiffImagePlugin

from tasks import brightness

# What is true of a file whose lower bytes cannot be had, and of one that has channels
# besides its colours and does not say that they are opacity: one may be infrared.
UPPER = 'have 16 bits per colour, of which the upper 8 are read'
CHANNELS = 'have channels of unknown meaning, which are left out'
_REVERSED = {'B': 'L', 'L': 'B', 'N': 'B'}
# Formats whose lower bytes can be had.
_READ = ('PNG', 'TIFF')
_BITS_PER_SAMPLE, _PHOTOMETRIC, _PLANAR = 258, 262, 284
_EXTRA_SAMPLES, _SAMPLE_FORMAT, _SAMPLES_PER_PIXEL = 338, 339, 277
_UNSIGNED, _SIGNED = 1, 2
_SEPARATE = 2
_DEEP_LAYOUT = re.compile(r'(RGB|RGBX|RGBA|RGBa|CMYK|LA);16([BLN])')


def is_deep(image: Image.Image) -> bool:
  """Returns whether a picture, not yet loaded, has numbers that need a range."""
  return (
    image.mode == 'F'
    or image.mode.startswith('I')
    or _is_signed_byte(image)
    or _channels(image) is not None
  )


def has_unknown_channel(content: bytes, image: Image.Image) -> bool:
  """Returns whether Pillow takes a channel for opacity that the file does not explain.

  Args:
    content: The file.
    image: The same, opened.
  """
  if image.format == 'JPEG2000':
    # A codestream without boxes cannot say it.
    has_boxes, explains = b'jp2h' in content, b'cdef' in content
    return image.mode in ('LA', 'RGBA') and has_boxes and not explains
  tags = _tags(image)
  return image.format == 'TIFF' and image.mode == 'RGBA' and _EXTRA_SAMPLES not in tags


def notes(content: bytes, image: Image.Image) -> tuple[str, ...]:
  """Returns what must be said of a picture, not yet loaded, that is not all read."""
  bands = len(image.getbands())
  count = max(bands, _tags(image).get(_SAMPLES_PER_PIXEL, bands))
  left_out = count - bands + has_unknown_channel(content, image)
  unknown = (f'{CHANNELS} ({left_out} of {count})',) if left_out else ()
  if is_deep(image):
    return unknown
  last = _arguments(image)[-1:]
  cut = ';16' in str(_layout(image)) or _is_separate(image)
  cut |= image.format == 'PPM' and any(isinstance(n, int) and n > 255 for n in last)
  cut |= image.format == 'JPEG2000' and _precision(content) > 8
  return (*unknown, UPPER) if cut else unknown


def numbers(content: bytes, image: Image.Image) -> brightness.Numbers:
  """Reads the numbers of a picture.

  Args:
    content: The file.
    image: The same, opened but not loaded.

  Returns:
    The numbers, of 1 or 3 channels, and one more for transparency if there is any.
  """
  raw = _channels(image)
  if raw is not None:
    values = _with_alpha(_channels_of_16_bits(content, *raw), image)
    values = values[..., :3] if has_unknown_channel(content, image) else values
    return brightness.Numbers(values, brightness.WHOLE)
  values = np.asarray(image)
  tags = _tags(image)
  if _is_signed_byte(image):
    values = values.view(np.int8)
  elif tags.get(_BITS_PER_SAMPLE) == (32,) and image.mode == 'I':
    unsigned = tags.get(_SAMPLE_FORMAT, (_UNSIGNED,)) == (_UNSIGNED,)
    values = values.view(np.uint32) if unsigned else values
  values = values[..., np.newaxis]
  return brightness.Numbers(
    _with_alpha(values, image),
    brightness.key_of(values),
    # Pillow inverts such files if they have 8 bits, and no others.
    inverted=tags.get(_PHOTOMETRIC) == 0,
  )


def _tags(image: Image.Image) -> Any:
  """Returns the tags of a TIFF by number; nothing of other formats."""
  return image.tag_v2 if isinstance(image, TiffImagePlugin.TiffImageFile) else {}


def _channels(image: Image.Image) -> tuple[str, str] | None:
  """Returns channels and order of bytes of a picture of 16 bits per channel."""
  if image.format not in _READ:
    return None
  if _is_separate(image):
    # A letter for each plane, unless libtiff reads them.
    order = 'L' if _tags(image).prefix == b'II' else 'B'
    return (image.mode, order) if len(str(_layout(image))) == 1 else None
  match = _DEEP_LAYOUT.fullmatch(str(_layout(image)))
  return None if match is None else (match[1], match[2])


def _is_separate(image: Image.Image) -> bool:
  """Returns whether each channel of 16 bits has a plane of its own (TIFF)."""
  tags = _tags(image)
  return tags.get(_PLANAR) == _SEPARATE and 16 in tags.get(_BITS_PER_SAMPLE, ())


def _is_signed_byte(image: Image.Image) -> bool:
  tags = _tags(image)
  return image.mode == 'L' and tags.get(_SAMPLE_FORMAT) == (_SIGNED,)


def _arguments(image: Image.Image) -> tuple[object, ...]:
  """Returns what Pillow's decoder is told of the file's pixels."""
  tiles = getattr(image, 'tile', ())
  args = tiles[0].args if tiles else ()
  return args if isinstance(args, tuple) else (args,)


def _layout(image: Image.Image) -> object:
  """Returns how channels and bytes of a pixel follow each other in the file."""
  return next(iter(_arguments(image)), None)


def _precision(content: bytes) -> int:
  """Returns the bits of a number in a JPEG 2000 file, by its marker SIZ."""
  place = content.find(b'\xff\x4f\xff\x51')
  depth = content[place + 42 : place + 43] if place >= 0 else b''
  return (depth[0] & 0x7F) + 1 if depth else 0


def _channels_of_16_bits(content: bytes, channels: str, order: str) -> np.ndarray:
  """Returns channels of 16 bits, uint16 [height, width, channels].

  Transparency is the last of 2 or 4 channels; premultiplied colours are divided by it.
  """
  if channels == 'LA':
    # As if each of their bytes were a channel.
    planes = _loaded(content, 'RGBA', '')
    joined = planes[..., 0::2].astype(np.uint16) << 8
    return joined | planes[..., 1::2]
  kind = 'RGBA' if channels == 'RGBa' else channels
  joined = _loaded(content, kind, f';16{order}').astype(np.uint16) << 8
  joined |= _loaded(content, kind, f';16{_REVERSED[order]}')
  if channels == 'RGBa':
    alpha = np.maximum(joined[..., 3:], 1).astype(np.float32)
    colours = joined[..., :3] * (65535 / alpha)
    joined[..., :3] = np.minimum(colours, 65535)
  if channels == 'CMYK':
    black = 65535 - joined[..., 3:].astype(np.float32)
    joined = ((65535 - joined[..., :3]) * (black / 65535)).astype(np.uint16)
  return joined


def _with_alpha(values: np.ndarray, image: Image.Image) -> np.ndarray:
  """Adds a channel, 0 where a PNG says that a colour is transparent, if it does."""
  hidden = image.info.get('transparency')
  if hidden is None or values.shape[2] not in (1, 3):
    return values
  shown = np.any(values != np.array(hidden, values.dtype), axis=2, keepdims=True)
  return np.concatenate([values, shown * values.dtype.type(65535)], axis=2)


def _loaded(content: bytes, channels: str, order: str) -> np.ndarray:
  """Loads the pixels as if the file had another layout, uint8 [height, width, n].

  Args:
    content: The file.
    channels: The channels of a pixel, if they follow each other.
    order: How the rest of Pillow's name for the layout is.
  """
  with Image.open(io.BytesIO(content), formats=_READ) as image:
    tiles = []
    for tile in getattr(image, 'tile', ()):
      own, *others = tile.args if isinstance(tile.args, tuple) else (tile.args,)
      layout = f'{own if len(own) == 1 else channels}{order}'
      tiles.append(tile._replace(args=(layout, *others) if others else layout))
    image.tile = tiles
    return np.asarray(image)
