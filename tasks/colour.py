"""Colours as a screen shows them: profiles are converted to sRGB, over white.

White lies behind whatever is transparent, since pictures with transparency are mostly
drawn for white pages: black lines would vanish on black. So the colours that a file
has where nothing is visible do not matter.
"""

import functools
import io

import numpy as np
from PIL import Image
from PIL import ImageCms

TRANSPARENT = 'are partly transparent, and are shown on white'
CONVERTED = 'have a colour profile, and are converted from it to sRGB'
UNUSABLE = 'have a colour profile that cannot be used, and are read as sRGB'

_WITH_ALPHA = ('LA', 'La', 'PA', 'RGBA', 'RGBa')
# The space of a profile, by the mode of a picture that it may belong to.
_SPACES = {'L': 'GRAY', 'RGB': 'RGB', 'CMYK': 'CMYK', 'LAB': 'Lab'}
# Profiles of sRGB differ by rounding. Leaving such pictures as they are is exact.
_ROUNDING = 3
_STEPS = 6


def to_rgb(image: Image.Image, profile: bytes | None) -> tuple[Image.Image, list[str]]:
  """Converts a picture of 8 bits.

  Args:
    image: The picture, of any mode of at most 8 bits per channel.
    profile: The file's colour profile (ICC).

  Returns:
    The picture in mode RGB, and what must be said of it.
  """
  notes = []
  alpha = None
  full = with_opacity(image)
  if full is not None:
    alpha = full.getchannel('A')
    image = full.getchannel('R') if image.mode in ('L', 'LA', 'La') else full
  colours = image
  if profile:
    try:
      colours, changed = _to_srgb(image, profile)
      notes += [CONVERTED] if changed else []
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
      notes.append(UNUSABLE)
  colours = colours.convert('RGB')
  if alpha is not None and np.min(np.asarray(alpha)) < 255:
    white = Image.new('RGB', colours.size, 'white')
    colours = Image.composite(colours, white, alpha)
    notes.append(TRANSPARENT)
  return colours, notes


def with_opacity(image: Image.Image) -> Image.Image | None:
  """Returns a picture in mode RGBA, None if it has no opacity."""
  if image.mode not in _WITH_ALPHA and 'transparency' not in image.info:
    return None
  # The one way in which Pillow converts premultiplied greyscale.
  return (image.convert('LA') if image.mode == 'La' else image).convert('RGBA')


def _to_srgb(image: Image.Image, profile: bytes) -> tuple[Image.Image, bool]:
  """Returns the picture in sRGB, and whether that changed it.

  Raises:
    PyCMSError: The profile is damaged.
    ValueError: The profile does not belong to a picture of this mode.
  """
  space = _space(profile)
  if image.mode != 'L' and image.mode in _SPACES and _SPACES[image.mode] == space:
    mode = image.mode
  elif image.mode in ('1', 'L') and space == 'GRAY':
    mode = 'L'
  elif space == 'RGB' and image.mode != 'CMYK':
    # Palettes, greyscale and YCbCr hold colours of the profile's space as well.
    mode = 'RGB'
  else:
    raise ValueError(f'a profile of {space} does not fit the mode {image.mode}')
  transform = _transform(profile, mode)
  if transform is None:
    return image, False
  converted = ImageCms.applyTransform(image.convert(mode), transform)
  # None is for changes in place.
  assert converted is not None
  return converted, True


def _space(profile: bytes) -> str:
  opened = ImageCms.getOpenProfile(io.BytesIO(profile))
  return opened.profile.xcolor_space.strip()


@functools.lru_cache(maxsize=32)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
  """Returns the transform to sRGB; None if it changes nothing."""
  transform = ImageCms.buildTransform(
    ImageCms.getOpenProfile(io.BytesIO(profile)),
    ImageCms.createProfile('sRGB'),
    mode,
    'RGB',
  )
  if mode not in ('L', 'RGB'):
    return transform
  levels = np.linspace(0, 255, _STEPS).astype(np.uint8)
  grid = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(_STEPS, -1, 3)
  probe = Image.fromarray(grid).convert(mode)
  before, after = probe.convert('RGB'), ImageCms.applyTransform(probe, transform)
  change = np.abs(np.asarray(before, np.int16) - np.asarray(after, np.int16))
  return None if np.max(change) <= _ROUNDING else transform
