"""Picture files: JPEGs, and depths that Pillow does not write, written by hand."""

import io
import mmap
import struct
import zlib

import numpy as np
from PIL import Image

from tasks import brightness
from tasks import images

# Of PNG, by the number of channels.
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}


def png(values: np.ndarray, hidden: tuple[int, ...] = ()) -> bytes:
  """A PNG of 16 bits per channel.

  Args:
    values: uint16 [height, width, channels].
    hidden: The colour that is transparent, if one is.
  """
  height, width, channels = values.shape

  def chunk(name: bytes, content: bytes) -> bytes:
    body = name + content
    return struct.pack('>I', len(content)) + body + struct.pack('>I', zlib.crc32(body))

  header = struct.pack('>IIBBBBB', width, height, 16, _COLOURS[channels], 0, 0, 0)
  rows = b''.join(b'\0' + row.astype('>u2').tobytes() for row in values)
  return b''.join(
    (
      b'\x89PNG\r\n\x1a\n',
      chunk(b'IHDR', header),
      chunk(b'tRNS', struct.pack(f'>{len(hidden)}H', *hidden)) if hidden else b'',
      chunk(b'IDAT', zlib.compress(rows)),
      chunk(b'IEND', b''),
    )
  )


def tiff(
  values: np.ndarray,
  *,
  order: str = '<',
  photometric: int | None = None,
  extra: int | tuple[int, ...] | None = None,
  deflated: bool = False,
  orientation: int = 1,
  planar: bool = False,
) -> bytes:
  """A TIFF of one strip, or of one for each channel.

  Args:
    values: [height, width, channels], of any type of numbers.
    order: Of bytes, `<` or `>`.
    photometric: Its tag; by default 1 (greyscale), and 2 of several channels.
    extra: What the last channels are: 0 nothing, 1 premultiplied opacity, 2 opacity.
    deflated: Whether it is compressed.
    orientation: Its tag.
    planar: Whether each channel is a plane by itself.
  """
  height, width, channels = values.shape
  dtype = values.dtype
  planes = np.split(values, channels, axis=2) if planar else [values]
  strips = [plane.astype(dtype.newbyteorder(order)).tobytes() for plane in planes]
  strips = [zlib.compress(strip) if deflated else strip for strip in strips]
  if photometric is None:
    photometric = 2 if channels > 2 else 1
  sample_format = {'u': 1, 'i': 2, 'f': 3}[dtype.kind]
  tags: dict[int, list[int]] = {
    256: [width],
    257: [height],
    258: [8 * dtype.itemsize] * channels,
    259: [8 if deflated else 1],
    262: [photometric],
    273: [0] * len(strips),
    274: [orientation],
    277: [channels],
    278: [height],
    279: [len(strip) for strip in strips],
    284: [2 if planar else 1],
    339: [sample_format] * channels,
    **({} if extra is None else {338: [extra] if isinstance(extra, int) else [*extra]}),
  }
  # Entries of 12 bytes; what needs more than 4 bytes follows them.
  begin = 8 + 2 + 12 * len(tags) + 4
  pixels = begin + 4 * sum(len(numbers) for numbers in tags.values() if numbers[1:])
  tags[273] = [pixels + sum(map(len, strips[:k])) for k in range(len(strips))]
  beyond = b''
  places = {}
  for tag, numbers in tags.items():
    if len(numbers) > 1:
      places[tag] = begin + len(beyond)
      beyond += struct.pack(f'{order}{len(numbers)}I', *numbers)
  entries = b''.join(
    struct.pack(f'{order}HHII', tag, 4, len(numbers), places.get(tag, numbers[0]))
    for tag, numbers in sorted(tags.items())
  )
  mark = b'II*\0' if order == '<' else b'MM\0*'
  head = mark + struct.pack(f'{order}IH', 8, len(tags))
  return head + entries + struct.pack(f'{order}I', 0) + beyond + b''.join(strips)


def of(image: Image.Image, kind: str = 'PNG', **options: object) -> bytes:
  """An image as Pillow writes it."""
  buffer = io.BytesIO()
  image.save(buffer, kind, **options)
  return buffer.getvalue()


def decode(
  content: bytes, image_size: int, reading: images.Reading = images.AS_USUAL
) -> np.ndarray:
  """Returns a file's square RGB image, uint8: without a range by that of the file."""
  pixels = images.read(content, image_size, reading, _own_range).pixels
  assert pixels is not None
  return pixels


def _own_range(numbers: brightness.Numbers) -> brightness.Range:
  return brightness.of_data_set([numbers.summary()])[numbers.key]


def jpeg(level: int, size: tuple[int, int] = (20, 16)) -> bytes:
  """A JPEG of two colours, one above the other, width x height."""
  image = Image.new('RGB', size, (level, 255 - level, 128))
  image.paste((128, level, 255 - level), (0, 0, size[0], size[1] // 2))
  return of(image, 'JPEG', quality=95)


def truncated_jpeg() -> bytes:
  """A JPEG of noise that ends in its middle."""
  noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
  content = of(Image.fromarray(noise), 'JPEG')
  return content[: len(content) // 2]


def is_mapped(array: np.ndarray) -> bool:
  """Whether an array is a piece of a file that is mapped into memory."""
  base = array
  while isinstance(base, np.ndarray):
    base = base.base
  return isinstance(base, mmap.mmap)
