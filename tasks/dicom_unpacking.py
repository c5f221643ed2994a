"""What a DICOM file unpacks to, checked before it is unpacked.

A small file may say that it unpacks to any amount of memory: a compressed frame that is
larger than the picture, runs of RLE that go on behind its end, a palette of segments.
"""

from collections.abc import Iterator
import io
import itertools
import struct
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from tasks import image_opening

if TYPE_CHECKING:
  import pydicom

# Those whose frames are files that Pillow opens.
_OF_PILLOW = ('JPEG', 'JPEG2000')
# Entries of a palette that states 0 of them, because its number has 16 bits.
_ENTRIES = 2**16
# Kinds of segments of a palette (PS3.3 C.7.9.2).
_DISCRETE, _LINEAR = 0, 1
# Bytes of the header of a frame of RLE, and most segments that it may name.
_RLE_HEADER, _RLE_SEGMENTS = 64, 15
# Bytes behind the pixels of a segment that are padding and no more.
_PADDING = 1024


def check_frame(
  data: 'pydicom.Dataset', frame: int, frames: int, size: tuple[int, int]
) -> None:
  """Checks that a frame can be decoded here, to the size that the file states.

  Args:
    data: The tags of the file.
    frame: The frame, from 0.
    frames: How many there are.
    size: Width and height that the file states.

  Raises:
    PictureError: It cannot.
  """
  # Imported here: it takes most of a second, and few data sets need it.
  import pydicom
  import pydicom.encaps
  import pydicom.pixels

  syntax = data.file_meta.TransferSyntaxUID
  if not syntax.is_encapsulated:
    return
  try:
    known = pydicom.pixels.get_decoder(syntax).is_available
  except NotImplementedError:
    known = False
  if not known:
    # The names of a dictionary, not of the file.
    name = syntax.name if syntax in pydicom.uid.UID_dictionary else 'an unknown method'
    raise image_opening.MachineError(
      f'a DICOM file compressed by {name}, for which pydicom has no decoder here '
      '(pylibjpeg has most); or convert it to uncompressed DICOM'
    )
  content = pydicom.encaps.get_frame(data.PixelData, frame, number_of_frames=frames)
  if syntax == pydicom.uid.RLELossless:
    _check_runs(content, size)
    return
  try:
    with Image.open(io.BytesIO(content), formats=_OF_PILLOW) as image:
      own = image.size
  except OSError:
    # JPEG-LS and the like, by decoders of their own.
    return
  if own != size:
    raise image_opening.PictureError(
      f'a DICOM file of {size[0]} x {size[1]} pixels with a frame of '
      f'{own[0]} x {own[1]}'
    )


def _check_runs(content: bytes, size: tuple[int, int]) -> None:
  """Checks that no segment of a frame of RLE goes on behind the picture (PS3.5 G)."""
  if len(content) < _RLE_HEADER:
    # The decoder says so.
    return
  count, *offsets = struct.unpack('<16L', content[:_RLE_HEADER])
  ends = [*offsets[: min(count, _RLE_SEGMENTS)], len(content)]
  most = size[0] * size[1] + _PADDING
  for start, end in itertools.pairwise(ends):
    total = 0
    for run in _runs(content[start:end]):
      total += run
      if total > most:
        raise image_opening.PictureError(
          f'a DICOM file of {size[0]} x {size[1]} pixels with a frame of more'
        )


def _runs(segment: bytes) -> Iterator[int]:
  """Yields the bytes to which each run of a segment unpacks."""
  at = 0
  while at < len(segment):
    head = segment[at]
    if head < 128:
      yield head + 1
      at += head + 2
    elif head > 128:
      yield 257 - head
      at += 2
    else:
      # No run at all.
      at += 1


def check_palette(data: 'pydicom.Dataset') -> None:
  """Checks that a palette of segments has no more entries than the file states.

  Args:
    data: The tags of the file.

  Raises:
    PictureError: It has more, or segments that repeat others, which may unpack to any
      number of entries.
  """
  descriptor = data.get('RedPaletteColorLookupTableDescriptor')
  if descriptor is None or 'RedPaletteColorLookupTableData' in data:
    return
  most, _, bits = (int(number) for number in descriptor)
  is_little = data.file_meta.TransferSyntaxUID.is_little_endian
  kind = np.dtype('u1' if bits == 8 else '<u2' if is_little else '>u2')
  for channel in ('Red', 'Green', 'Blue'):
    content = data.get(f'Segmented{channel}PaletteColorLookupTableData') or b''
    whole = len(content) // kind.itemsize * kind.itemsize
    numbers = np.frombuffer(content[:whole], kind).tolist()
    at = total = 0
    while at + 1 < len(numbers):
      segment, length = numbers[at : at + 2]
      if segment not in (_DISCRETE, _LINEAR):
        raise image_opening.PictureError(
          'a DICOM file with a palette whose segments repeat others, which is not read'
        )
      at += 2 + (length if segment == _DISCRETE else 1)
      total += length
    if total > (most or _ENTRIES):
      raise image_opening.PictureError(
        f'a DICOM file with a palette of {total:,} entries, which states '
        f'{most or _ENTRIES:,}'
      )
