"""Decoding and resizing of image files and arrays with Pillow."""

import io

import numpy as np
from PIL import Image
from PIL import ImageOps


def decode(content: bytes, image_size: int) -> np.ndarray:
  """Decodes an image file to a square RGB image.

  The image is turned upright (EXIF), cropped to its central square, and resized with
  an antialiasing bicubic filter. Greyscale is repeated over the channels, 16-bit
  images keep their upper 8 bits, transparency is dropped.

  Args:
    content: The file, of any format that Pillow reads.
    image_size: Height and width of the result, in pixels.

  Returns:
    uint8 [image_size, image_size, 3].

  Raises:
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


def _to_rgb(image: Image.Image) -> Image.Image:
  if image.mode.startswith('I'):
    # Pillow would clip 16-bit values at 255 instead of scaling them.
    upper = np.clip(np.asarray(image, np.int64) >> 8, 0, 255)
    image = Image.fromarray(upper.astype(np.uint8))
  return image.convert('RGB')


def resize(images: np.ndarray, image_size: int | None) -> np.ndarray:
  """Resizes a batch of square images with a bicubic filter.

  Args:
    images: uint8 [n, size, size, channels], 1 or 3 channels.
    image_size: New height and width, or None to keep them.

  Returns:
    uint8 [n, image_size, image_size, channels].
  """
  if image_size is None or image_size == images.shape[1]:
    return images
  channels = images.shape[3]
  resized = np.empty((len(images), image_size, image_size, channels), np.uint8)
  for source, target in zip(images, resized, strict=True):
    # Pillow takes a greyscale image without its channel axis.
    picture = Image.fromarray(source[..., 0] if channels == 1 else source)
    picture = picture.resize((image_size, image_size), Image.Resampling.BICUBIC)
    target[:] = np.asarray(picture).reshape(target.shape)
  return resized
