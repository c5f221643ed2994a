"""Decoding and resizing of image files and arrays with Pillow."""

import io

import numpy as np
from PIL import Image
from PIL import ImageOps
from PIL import UnidentifiedImageError
import psutil

# Ends of the names of files that can be decoded, in lower case.
_JPEG = ('.jpg', '.jpeg', '.jpe', '.jfif')
SUFFIXES = (*_JPEG, '.png', '.gif', '.tif', '.tiff', '.bmp', '.webp')
# Bits of the whole numbers in an image file, and white in files of floating-point
# numbers.
_BITS = (8, 10, 12, 14, 16, 24, 32)
_FULL = (1.0, 255.0, 65535.0)


def decode(content: bytes, image_size: int) -> np.ndarray:
  """Decodes an image file to a square RGB image.

  The image is turned upright (EXIF), cropped to its central square, and resized with
  an antialiasing bicubic filter. Greyscale is repeated over the channels, transparency
  is dropped. Whole numbers of more than 8 bits are scaled from as many bits as the
  file's largest number needs (8, 10, 12, 14, 16, 24 or 32: cameras leave 12 bits in
  16), and keep the upper 8. Floating-point numbers are scaled from 0..1, 0..255 or
  0..65535, whichever is the smallest range that holds them; larger ones from 0 to the
  file's largest number.

  Args:
    content: The file, of any format that Pillow reads.
    image_size: Height and width of the result, in pixels.

  Returns:
    uint8 [image_size, image_size, 3].

  Raises:
    ValueError: Floating-point numbers, or whole ones of more than 8 bits, are negative
      or not finite.
    Exception: Whatever Pillow raises for a file that it cannot read.
  """
  with Image.open(io.BytesIO(content)) as image:
    # A JPEG may be decoded at a fraction of its size; twice the result keeps detail.
    image.draft('RGB', (2 * image_size, 2 * image_size))
    upright = ImageOps.exif_transpose(image)
    square = ImageOps.fit(
      _to_rgb(upright), (image_size, image_size), Image.Resampling.BICUBIC
    )
  return np.asarray(square, np.uint8)


def why_unreadable(error: Exception) -> str:
  """Returns in one line why an image cannot be read.

  Args:
    error: Whatever its decoder raised.
  """
  text = str(error)
  if isinstance(error, UnidentifiedImageError):
    # Pillow's own text has the address of a buffer, which differs from run to run.
    text = 'not in a format that Pillow knows'
  return ' '.join(f'{type(error).__name__}: {text}'.split())


def _to_rgb(image: Image.Image) -> Image.Image:
  # Pillow would clip all of these at 255 instead of scaling them.
  if image.mode.startswith('I') or image.mode == 'F':
    image = Image.fromarray(_to_bytes(np.asarray(image, np.float64), image.mode))
  return image.convert('RGB')


def _to_bytes(values: np.ndarray, mode: str) -> np.ndarray:
  """Scales numbers to uint8, from the least range that holds them.

  Args:
    values: float64 [height, width].
    mode: Pillow's mode: 'F', or one of whole numbers.
  """
  least, most = float(np.min(values)), float(np.max(values))
  # Also true of NaN.
  if not (least >= 0 and np.isfinite(most)):
    raise ValueError(
      f'the numbers of a {mode} image range from {least:g} to {most:g}; they must be '
      'finite and not negative'
    )
  if mode != 'F':
    bits = next(bits for bits in _BITS if most < 2**bits)
    return (values.astype(np.int64) >> (bits - 8)).astype(np.uint8)
  full = next((full for full in _FULL if most <= full), most)
  return np.rint(values * (255 / full)).astype(np.uint8)


def check_fits(count: int, image_size: int, channels: int = 3) -> None:
  """Refuses images that would not fit in this machine's memory, before they are made.

  Args:
    count: How many are held at the same time.
    image_size: Height and width, in pixels.
    channels: Channels of a pixel, a byte each.

  Raises:
    ValueError: The images would not fit.
  """
  needed, there = count * channels * image_size**2, psutil.virtual_memory().total
  if needed > there:
    raise ValueError(
      f'image_size is {image_size}: {count:,} images of that size take '
      f'{needed / 2**30:,.1f} GiB, and this machine has {there / 2**30:,.1f} GiB of '
      'memory; image_size must be smaller.'
    )


def resize(images: np.ndarray, image_size: int | None) -> np.ndarray:
  """Resizes a batch of square images with a bicubic filter.

  Args:
    images: uint8 [n, size, size, channels], 1 or 3 channels.
    image_size: New height and width, or None to keep them.

  Returns:
    uint8 [n, image_size, image_size, channels].

  Raises:
    ValueError: The images would not fit in memory.
  """
  if image_size is None or image_size == images.shape[1]:
    return images
  channels = images.shape[3]
  check_fits(len(images), image_size, channels)
  resized = np.empty((len(images), image_size, image_size, channels), np.uint8)
  for source, target in zip(images, resized, strict=True):
    # Pillow takes a greyscale image without its channel axis.
    picture = Image.fromarray(source[..., 0] if channels == 1 else source)
    picture = picture.resize((image_size, image_size), Image.Resampling.BICUBIC)
    target[:] = np.asarray(picture).reshape(target.shape)
  return resized
