"""Opens picture files with Pillow: which formats, and how much memory at a time.

Files may come from strangers. Pillow tries only the formats named here, none of which
starts another program, as PostScript would. What a picture takes while it is read
follows from its header. Threads wait until there is room for it, so that a few large
pictures are read one after the other; a picture that never has room is refused.
"""

from collections.abc import Iterator
import contextlib
import functools
import io
import itertools
import re
import threading

from PIL import Image
from PIL import UnidentifiedImageError

from tff_ssl.storage import memory

# How names of pictures end, by format; what a file holds decides how it is read. JPEG
# also opens MPO, several JPEGs in a file. No ICO, whose header does not say how large
# its picture is, and no TGA, which nothing in a file tells from others.
FORMATS = {
  'JPEG': ('.jpg', '.jpeg', '.jpe', '.jfif', '.mpo'),
  'PNG': ('.png', '.apng'),
  'TIFF': ('.tif', '.tiff'),
  'BMP': ('.bmp',),
  'DIB': ('.dib',),
  'WEBP': ('.webp',),
  'GIF': ('.gif',),
  'PPM': ('.ppm', '.pgm', '.pbm', '.pnm', '.pfm'),
  'JPEG2000': ('.jp2', '.j2k', '.j2c', '.jpc', '.jpf', '.jpx'),
  'AVIF': ('.avif', '.avifs'),
}
SUFFIXES = tuple(itertools.chain.from_iterable(FORMATS.values()))
# How pictures begin; those of BMP and PPM begin with two letters, as texts do.
_STARTS = re.compile(
  rb'\xff\xd8\xff|\x89PNG\r\n|II\*\0|MM\0\*|RIFF.{4}WEBP|GIF8[79]a|'
  rb'\0\0\0\x0cjP  |\xff\x4f\xff\x51|.{4}ftypavi[fs]',
  re.DOTALL,
)
# Instead of Pillow's bound on pixels, which ordinary scans exceed, there is `Room`.
Image.MAX_IMAGE_PIXELS = None

# Bytes of a pixel in Pillow's memory; all other modes take four.
_BYTES = {'1': 1, 'L': 1, 'P': 1, 'I;16': 2, 'I;16B': 2, 'I;16L': 2, 'I;16N': 2}
# Formats whose pixels are decoded into their place; others need up to three copies.
_IN_PLACE, _ELSEWHERE = ('PNG', 'BMP', 'PPM', 'JPEG', 'MPO'), 4
# Bytes of a pixel while the halves of channels of 16 bits are joined.
_JOINED = 24
# Bytes of a pixel of the copies that are made afterwards, of as many pixels at most.
_COPIES, COPIED = 8, 2**26
# Bytes of a coefficient of a progressive JPEG, in each of three bands.
_COEFFICIENTS = 6
# Share of the machine's memory that decoding may take.
_SHARE = 0.5


class PictureError(ValueError):
  """Says in a sentence of its own why a picture cannot be read."""


class MachineError(PictureError):
  """Says what this machine lacks to read a picture; another start may have it."""


def begins_as_picture(content: bytes) -> bool:
  """Returns whether a file without a suffix is a picture, by its first bytes."""
  return _STARTS.match(content) is not None


def may_pass(error: Exception) -> bool:
  """Returns whether a picture that could not be read may be readable later as it is.

  Args:
    error: What was raised; of `OSError` the system numbers its own faults, unlike those
      that decoders find in a file.
  """
  own = isinstance(error, OSError) and error.errno is not None
  return own or isinstance(error, MachineError)


class Room:
  """Memory that several threads share; each waits until there is enough for it.

  Attributes:
    size: How much there is, in bytes.
  """

  def __init__(self, size: int) -> None:
    self.size = size
    self._used = 0
    self._freed = threading.Condition()
    self._turn = threading.Lock()

  @contextlib.contextmanager
  def take(self, amount: int, what: str) -> Iterator[None]:
    """Holds some memory.

    Args:
      amount: How much, in bytes.
      what: What takes it, for the error.

    Raises:
      MachineError: There is never that much.
    """
    if amount > self.size:
      raise MachineError(
        f'{what} take {amount / 2**30:,.1f} GiB of memory while they are read; '
        f'decoding may take {self.size / 2**30:,.1f} GiB on this machine'
      )
    # One thread waits at a time: many small pictures would overtake a large one.
    with self._turn, self._freed:
      self._freed.wait_for(lambda: self._used + amount <= self.size)
      self._used += amount
    try:
      yield
    finally:
      with self._freed:
        self._used -= amount
        self._freed.notify_all()


@functools.cache
def room() -> Room:
  """Returns the memory that decoding may take on this machine."""
  return Room(int(_SHARE * memory.total()))


def _held(image: Image.Image) -> int:
  """Returns the bytes of a pixel while a picture is loaded, and afterwards."""
  layout = str([tile.args for tile in getattr(image, 'tile', ())[:1]])
  if image.mode not in _BYTES and ';16' in layout:
    return _JOINED
  copies = 1 if image.format in _IN_PLACE else _ELSEWHERE
  # Those of more than 8 bits are copied out of Pillow.
  copies += image.mode[0] in 'IF'
  return copies * _BYTES.get(image.mode, 4)


@contextlib.contextmanager
def opened(
  content: bytes, size: int | None = None, copies: int = 0
) -> Iterator[tuple[Image.Image, tuple[int, int]]]:
  """Opens a picture whose pixels there is room for until it is closed.

  Args:
    content: The file.
    size: Height and width of what will be made of it, in pixels: a JPEG is decoded at
      a fraction of its size, at least twice as large. None: as it is.
    copies: Bytes of each pixel that are needed besides those of the picture.

  Yields:
    The picture, and the width and height that it has in the file.

  Raises:
    PictureError: It takes more memory than there is.
    Exception: Whatever Pillow raises for a file that it cannot read.
  """
  try:
    unread = Image.open(io.BytesIO(content), formats=(*FORMATS,))
  except UnidentifiedImageError:
    if content.startswith((b'II*\0', b'MM\0*')):
      raise PictureError(
        'a TIFF of bands that Pillow does not read; save one of them, or three as RGB'
      ) from None
    raise
  with unread as image:
    width, height = image.size
    whole = width * height * _COEFFICIENTS if 'progressive' in image.info else 0
    if size is not None:
      image.draft('RGB', (2 * size, 2 * size))
    pixels = image.size[0] * image.size[1]
    amount = len(content) + whole + pixels * (_held(image) + copies)
    amount += min(pixels, COPIED) * _COPIES
    with room().take(amount, f'{width:,} x {height:,} pixels'):
      yield image, (width, height)
