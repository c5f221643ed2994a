"""Pictures of any kind become squares of one size, RGB of 8 bits.

Whatever kind of file it is, one rule holds:

- The picture is turned upright (EXIF). Of several pages or frames the first counts.
- Numbers of more than 8 bits are scaled from one range (see `brightness`); floating
  point, 16 bits per colour and negative numbers likewise. 8 bits stay as they are.
- Colours are converted to sRGB, and what is transparent is white (see `colour`).
- The square is the centre of the picture, or all of it (see `Reading`), resized with an
  antialiasing bicubic filter. Of more than 67 million pixels, means of squares of
  pixels are taken first, which leave at least twice the size of the result.
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import math
from typing import NamedTuple

import numpy as np
from PIL import Image
from PIL import ImageOps
from PIL import UnidentifiedImageError

from tasks import brightness
from tasks import colour
from tasks import dicom
from tasks import high_bit_depth
from tasks import image_opening
from tff_ssl.computing import checks
from tff_ssl.storage import memory

# How names of pictures end.
SUFFIXES = (*image_opening.SUFFIXES, *dicom.SUFFIXES)
CROP, PAD, STRETCH = 'crop', 'pad', 'stretch'
FITS = (CROP, PAD, STRETCH)

PAGES = 'have more than one page or frame, of which the first is read'
REDUCED = (
  f'have more than {image_opening.COPIED // 10**6} million pixels, and were reduced '
  'while they were read'
)
OF_RUN = 'have more than 8 bits, scaled from the range that the run measured'
OUTSIDE = (
  'have numbers outside of their range, cut off, in more than 1 % of their pixels'
)
_OUTSIDE = 0.01
# Means of larger squares are too dark: Pillow divides by a number of 24 bits.
_MOST_FACTOR = 32
# Pixels of the bands in which a large picture or one of many bits is converted.
_BAND = 2**20
# The tag of EXIF, and its least value of a picture that lies on its side.
_ORIENTATION, _ASIDE = 0x0112, 5
_TURNS = {
  2: Image.Transpose.FLIP_LEFT_RIGHT,
  3: Image.Transpose.ROTATE_180,
  4: Image.Transpose.FLIP_TOP_BOTTOM,
  5: Image.Transpose.TRANSPOSE,
  6: Image.Transpose.ROTATE_270,
  7: Image.Transpose.TRANSVERSE,
  8: Image.Transpose.ROTATE_90,
}


@dataclasses.dataclass(frozen=True)
class Reading:
  """How pictures are read, the same for all of a data set.

  Attributes:
    fit: How a picture becomes a square: `crop` keeps its central square, `pad` adds
      black bars, `stretch` changes its proportions.
    pixel_range: The numbers that are black and white in pictures of more than 8 bits;
      None: what the files state, or what is measured over all of them.
    of_run: The ranges that were measured for the encoder that sees the pictures, as
      `decoding.Decoded.measured`; others are measured.
  """

  fit: str = CROP
  pixel_range: brightness.Range | None = None
  of_run: brightness.Ranges = ()

  def __post_init__(self) -> None:
    checks.one_of(FITS, fit=self.fit)
    stated = (('', self.pixel_range),) if self.pixel_range else ()
    for _, (low, high) in (*stated, *self.of_run):
      if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(
          f'pixel_range is {low:g},{high:g}; it must be two finite numbers, the first '
          'one smaller.'
        )


AS_USUAL = Reading()


class Picture(NamedTuple):
  """A picture that was read.

  Attributes:
    pixels: uint8 [size, size, 3], or None: its range is not known yet.
    summary: The range of its numbers, if it has more than 8 bits.
    notes: What must be said of it, as in `decoding.Decoded`.
    lost: Share of its pixels that the crop leaves out.
  """

  pixels: np.ndarray | None
  summary: brightness.Summary | None
  notes: tuple[str, ...]
  lost: float


class _Source(NamedTuple):
  """A file's picture, the turns and the profile that it still needs, and notes.

  `whole` is the size of the file's picture, before turns. A JPEG that is decoded at a
  fraction of its size has fewer pixels, and its sides are rounded.
  """

  pixels: Image.Image | brightness.Numbers
  orientation: int
  profile: bytes | None
  notes: tuple[str, ...]
  whole: tuple[int, int]

  @property
  def size(self) -> tuple[int, int]:
    """Width and height of the pixels that are there, before turns."""
    if isinstance(self.pixels, Image.Image):
      return self.pixels.size
    height, width = self.pixels.values.shape[:2]
    return width, height


def read(
  content: bytes,
  image_size: int,
  reading: Reading,
  range_of: Callable[[brightness.Numbers], brightness.Range | None],
) -> Picture:
  """Reads a file as one of a data set, to a square RGB image.

  Args:
    content: The file, of any format of `opening.FORMATS`, or DICOM.
    image_size: Height and width of the result, in pixels.
    reading: How it is read.
    range_of: The range of numbers if `reading` has none; None: not known yet. Then the
      result has no pixels, and a summary.

  Raises:
    PictureError: There is no memory for it, or its numbers are not finite.
    Exception: Whatever Pillow raises for a file that it cannot read.
  """
  with _opened(content, image_size) as source:
    ends, notes = None, source.notes
    cut_on_purpose = False
    if isinstance(source.pixels, brightness.Numbers):
      of_run = dict(reading.of_run).get(source.pixels.key)
      ends = reading.pixel_range or of_run or range_of(source.pixels)
      if ends is None:
        return Picture(None, source.pixels.summary(), (), 0.0)
      if of_run and not reading.pixel_range:
        notes += (f'{OF_RUN} ({brightness.shown(ends)})',)
      notes += () if reading.pixel_range else source.pixels.notes
      # As by a window.
      cut_on_purpose = not reading.pixel_range and source.pixels.stated is not None
    width, height = source.size
    factor = 1
    if width * height > image_opening.COPIED:
      factor = min(_MOST_FACTOR, max(1, min(width, height) // (2 * image_size)))
    picture, of_colours, outside = _to_rgb(source, ends, factor)
    notes += of_colours + ((REDUCED,) if factor > 1 else ())
    if outside > _OUTSIDE and not cut_on_purpose:
      notes += (OUTSIDE,)
    picture = turned(picture, source.orientation)
    square = fitted(picture, image_size, reading.fit, Image.Resampling.BICUBIC)
    lost = 1 - min(source.whole) / max(source.whole)
    pixels = np.asarray(square, np.uint8)
    return Picture(pixels, None, notes, lost if reading.fit == CROP else 0.0)


@contextlib.contextmanager
def _opened(content: bytes, image_size: int) -> Iterator[_Source]:
  """Opens a file; there is memory for its picture until it is closed."""
  if dicom.is_dicom(content):
    with dicom.opened(content) as (pixels, profile, notes, whole):
      yield _Source(pixels, 1, profile, notes, whole)
    return
  with image_opening.opened(content, image_size) as (image, whole):
    notes = ((PAGES,) if has_pages(image) else ()) + high_bit_depth.notes(
      content, image
    )
    profile = image.info.get('icc_profile')
    if high_bit_depth.is_deep(image):
      numbers = high_bit_depth.numbers(content, image)
      # Pillow has turned a TIFF by itself.
      turn = 1 if image.format == 'TIFF' else orientation(image)
      yield _Source(numbers, turn, profile, notes, whole)
      return
    image.load()
    turn = orientation(image)
    if high_bit_depth.has_unknown_channel(content, image):
      image = image.convert('RGB')
    yield _Source(image, turn, profile, notes, whole)


def size_of(content: bytes) -> tuple[int, int]:
  """Returns width and height of a file's picture, upright, without its pixels."""
  if dicom.is_dicom(content):
    return dicom.size_of(content)
  # A PNG may say only behind its pixels how it is turned.
  with image_opening.opened(content, 1) as (image, (width, height)):
    # Pillow gives a TIFF the size that it has when it is turned.
    turn = 1 if image.format == 'TIFF' else orientation(image)
  return (height, width) if turn >= _ASIDE else (width, height)


def orientation(image: Image.Image) -> int:
  """Returns how a picture must be turned (EXIF), 1: not at all."""
  turn = image.getexif().get(_ORIENTATION, 1)
  # A file may hold anything there.
  return turn if isinstance(turn, int) else 1


def turned(image: Image.Image, turn: int) -> Image.Image:
  """Returns a picture upright; `turn` is of `orientation`."""
  return image.transpose(_TURNS[turn]) if turn in _TURNS else image


def has_pages(image: Image.Image) -> bool:
  """Returns whether a file has several pages or frames; call it before loading."""
  # The other pictures of an MPO, as telephones write it, are previews of the first.
  return image.format != 'MPO' and getattr(image, 'is_animated', False)


def _to_rgb(
  source: _Source, ends: brightness.Range | None, factor: int
) -> tuple[Image.Image, tuple[str, ...], float]:
  """Converts a picture to RGB, in bands of rows.

  Args:
    source: The picture.
    ends: The range of its numbers, if it has more than 8 bits.
    factor: Side of the squares of pixels that become one pixel.

  Returns:
    The picture, what must be said of its colours, and the share of its pixels that
    are outside of the range.
  """
  width, height = source.size
  rows = max(1, _BAND // (width * factor)) * factor
  if factor == 1 and isinstance(source.pixels, Image.Image):
    rows = height
  canvas = None
  if factor > 1 or rows < height:
    canvas = Image.new('RGB', (-(-width // factor), -(-height // factor)))
  notes: dict[str, None] = {}
  outside = 0
  for top in range(0, height, rows):
    bottom = min(height, top + rows)
    if isinstance(source.pixels, Image.Image):
      band = source.pixels
      band = band.crop((0, top, width, bottom)) if canvas else band
    else:
      assert ends is not None
      bright, count = source.pixels.scaled(top, bottom, ends)
      outside += count
      # Pillow takes a single channel without an axis.
      band = Image.fromarray(bright[..., 0] if bright.shape[2] == 1 else bright)
    part, of_band = colour.to_rgb(band, source.profile)
    notes.update(dict.fromkeys(of_band))
    if canvas:
      canvas.paste(part.reduce(factor) if factor > 1 else part, (0, top // factor))
  return canvas or part, tuple(notes), outside / (width * height)


def fitted(
  image: Image.Image, size: int, fit: str, method: Image.Resampling
) -> Image.Image:
  """Returns a picture as a square.

  Args:
    image: The picture, upright.
    size: Height and width of the result, in pixels.
    fit: One of `FITS`.
    method: The filter.
  """
  if fit == CROP:
    return ImageOps.fit(image, (size, size), method)
  if fit == PAD:
    return ImageOps.pad(image, (size, size), method, color=0)
  return image.resize((size, size), method)


def why_unreadable(error: Exception) -> str:
  """Returns in one line why an image cannot be read.

  Args:
    error: Whatever its decoder raised.
  """
  if isinstance(error, image_opening.PictureError):
    return str(error)
  text = str(error)
  if isinstance(error, UnidentifiedImageError):
    # Pillow's own text has the address of a buffer, which differs from run to run.
    text = 'not in a format that Pillow knows'
  return ' '.join(f'{type(error).__name__}: {text}'.split())


def check_fits(count: int, image_size: int, channels: int = 3) -> None:
  """Refuses images that would not fit in this machine's memory, before they are made.

  Args:
    count: How many are held at the same time.
    image_size: Height and width, in pixels.
    channels: Channels of a pixel, a byte each.

  Raises:
    ValueError: The images would not fit.
  """
  needed, there = count * channels * image_size**2, memory.total()
  if needed > there:
    raise ValueError(
      f'image_size is {image_size}: {count:,} images of that size take '
      f'{needed / 2**30:,.1f} GiB, and this machine has {there / 2**30:,.1f} GiB of '
      'memory; image_size must be smaller.'
    )


def resize(
  images: np.ndarray, image_size: int | None, fit: str = STRETCH
) -> np.ndarray:
  """Makes squares of a batch of images of one size, with a bicubic filter.

  Args:
    images: uint8 [n, height, width, channels], 1 or 3 channels.
    image_size: Height and width of the squares, or None to keep those of the images.
    fit: How an image becomes a square, one of `FITS`.

  Returns:
    uint8 [n, image_size, image_size, channels].

  Raises:
    ValueError: The images would not fit in memory.
  """
  if image_size is None or images.shape[1:3] == (image_size, image_size):
    return images
  channels = images.shape[3]
  check_fits(len(images), image_size, channels)
  resized = np.empty((len(images), image_size, image_size, channels), np.uint8)
  for source, target in zip(images, resized, strict=True):
    # Pillow takes a greyscale image without its channel axis.
    picture = Image.fromarray(source[..., 0] if channels == 1 else source)
    picture = fitted(picture, image_size, fit, Image.Resampling.BICUBIC)
    target[:] = np.asarray(picture).reshape(target.shape)
  return resized
