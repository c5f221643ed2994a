"""Reads the pictures of DICOM files with pydicom.

A file of several frames is one picture: its middle frame. The range of its brightness
is the first of these that there is:

1. `pixel_range` of the run, in the units after rescaling (of CT, Hounsfield units);
2. the first window (WindowCenter, WindowWidth);
3. all numbers that the table VOILUTSequence gives;
4. of at most 8 bits, or of at most 12 where RescaleSlope or RescaleIntercept say what
   numbers mean: all numbers that BitsStored bits can hold;
5. what is measured over the data set, as for other pictures (`brightness`). If there is
   a slope or an intercept, even of 1 and 0 (of PET each file of a series has its own),
   or pixels are floating-point numbers, they are in units that may have any scale.

The files of a series of a patient that have a window have one range, the median if
their windows differ; so have those with a table, and those of 4. A file that names no
series is one by itself. MONOCHROME1 is inverted; palettes and YBR become RGB. Tags that
could identify somebody are not read, apart from the patient's id, of which only a
digest is written or printed.
"""

from collections.abc import Iterator, Sequence
import contextlib
import functools
import hashlib
import io
import logging
import math
import re
from typing import TYPE_CHECKING, Any
import warnings

import numpy as np
from PIL import Image

from tasks import brightness
from tasks import dicom_unpacking
from tasks import image_opening
from tasks import spellings

if TYPE_CHECKING:
  import pydicom

SUFFIXES = ('.dcm', '.dicom', '.dic', '.ima')
FRAMES = 'have several frames, of which the middle one is read'
WINDOW = 'were scaled by the window of their series (DICOM)'
TABLE = 'were scaled by the table of their series (DICOM)'
RESCALED = 'were scaled from all that their bits can hold (DICOM)'

_TAGS = (
  'SamplesPerPixel',
  'PhotometricInterpretation',
  'NumberOfFrames',
  'Rows',
  'Columns',
  'BitsAllocated',
  'BitsStored',
  'HighBit',
  'PixelRepresentation',
  'PlanarConfiguration',
  'PixelData',
  'FloatPixelData',
  'DoubleFloatPixelData',
  'ExtendedOffsetTable',
  'ExtendedOffsetTableLengths',
  'RescaleSlope',
  'RescaleIntercept',
  'ModalityLUTSequence',
  'WindowCenter',
  'WindowWidth',
  'VOILUTFunction',
  'VOILUTSequence',
  'SharedFunctionalGroupsSequence',
  'PerFrameFunctionalGroupsSequence',
  'ICCProfile',
  'SeriesInstanceUID',
  'PatientID',
  *(
    f'{channel}PaletteColorLookupTable{what}'
    for channel in ('Red', 'Green', 'Blue')
    for what in ('Descriptor', 'Data')
  ),
  *(
    f'Segmented{channel}PaletteColorLookupTableData'
    for channel in ('Red', 'Green', 'Blue')
  ),
)
# A file of an old scanner, without the preamble, begins with the length of its first
# group and a tag of it, or with a text, with or without letters for its kind.
_BARE = re.compile(
  rb'([\x02\x08]\0)\0\0(UL\x04\0|\x04\0\0\0).{4}\1|'
  rb'\x08\0[\x01-\x18]\0([A-Z]{2}.\0|.\0\0\0)[ -~]{6}',
  re.DOTALL,
)
# Its files unpack to any size before their header is known.
_DEFLATED = b'1.2.840.10008.1.2.1.99'
# What stands where a patient's id was taken out, besides `spellings.MISSING`.
_NOBODY = ('anonymous', 'anonymized', 'anonymised', 'unknown')
# Scanners that store more bits seldom fill them: CT of 16 bits has 12 or 13 of them.
_FILLED_BITS = 12
# Bytes of a pixel while a frame is decoded, of each channel.
_BYTES = 16


def is_dicom(content: bytes) -> bool:
  """Returns whether a file is DICOM, by its first 132 bytes."""
  return content[128:132] == b'DICM' or _BARE.match(content) is not None


def patient_id(content: bytes) -> str:
  """Returns the id of the patient of a file, '' if it does not say whose it is.

  It identifies somebody: only its `pseudonym` may be written or printed.

  Args:
    content: The file, DICOM; no other tag of it is read.

  Raises:
    PictureError: The file cannot be read.
  """
  own = _id_of(_read(content, ('PatientID',)))
  nobody = own in spellings.MISSING or own.casefold() in _NOBODY
  return '' if nobody else own


def _id_of(data: 'pydicom.Dataset') -> str:
  return spellings.clean(str(data.get('PatientID') or ''))


@functools.cache
def pseudonym(own: str) -> str:
  """Returns a name for a patient, '' for ''.

  It is a digest: the same for the same id, in any data set and at any time. Whoever can
  guess an id can check the guess, at some cost; if that matters, a manifest has to name
  the clients.

  Args:
    own: What `patient_id` returned.
  """
  if not own:
    return ''
  # Slow on purpose, as ids are short.
  digest = hashlib.scrypt(own.encode(), salt=b'tff_ssl', n=2**11, r=8, p=1, dklen=8)
  return f'patient-{digest.hex()}'


@contextlib.contextmanager
def opened(
  content: bytes,
) -> Iterator[
  tuple[
    Image.Image | brightness.Numbers, bytes | None, tuple[str, ...], tuple[int, int]
  ]
]:
  """Reads the picture of a file; there is memory for it until it is closed.

  Args:
    content: The file, DICOM.

  Yields:
    The picture in colours of 8 bits, or the numbers of one of more bits or of
    greyscale; its colour profile; what must be said of it; and its width and height.

  Raises:
    PictureError: It has no picture, or one that cannot be decoded or needs more memory
      than there is.
  """
  data = _read(content, _TAGS)
  pixels = ('PixelData', 'FloatPixelData', 'DoubleFloatPixelData')
  if not any(name in data for name in pixels) or not data.get('Rows'):
    raise image_opening.PictureError(
      'a DICOM file without a picture, or cut off before it'
    )
  width, height = int(data.get('Columns') or 0), int(data.Rows)
  count = width * height * int(data.get('SamplesPerPixel') or 1)
  amount = 2 * len(content) + _BYTES * count
  with image_opening.room().take(amount, f'{width:,} x {height:,} pixels'):
    with _in_a_sentence():
      read = _picture(data, width, height, _series(data, content))
    yield *read, (width, height)


def _series(data: 'pydicom.Dataset', content: bytes) -> str:
  """Returns a digest that is the same for the files that have one range."""
  # Some tools that take ids out give all files one series.
  series = str(data.get('SeriesInstanceUID') or '').strip()
  series = series or hashlib.sha256(content).hexdigest()
  return hashlib.sha256(repr((_id_of(data), series)).encode()).hexdigest()


def size_of(content: bytes) -> tuple[int, int]:
  """Returns width and height of a file's picture; errors are those of `opened`."""
  data = _read(content, ('Rows', 'Columns'))
  return int(data.get('Columns') or 0), int(data.get('Rows') or 0)


@contextlib.contextmanager
def _in_a_sentence() -> Iterator[None]:
  """Turns all that pydicom may raise into an error that repeats no tag of the file."""
  try:
    yield
  except (image_opening.PictureError, MemoryError):
    raise
  except ImportError:
    raise image_opening.MachineError('a DICOM file, which needs pydicom') from None
  except Exception as error:
    raise image_opening.PictureError(
      f'a DICOM file that pydicom cannot decode ({type(error).__name__})'
    ) from None


def _read(content: bytes, tags: tuple[str, ...]) -> 'pydicom.Dataset':
  """Returns some tags of a file.

  Raises:
    PictureError: It cannot be read.
  """
  if not is_dicom(content):
    raise image_opening.PictureError('not a DICOM file')
  if _DEFLATED in content:
    raise image_opening.PictureError(
      'a deflated DICOM file, which is not read; convert it to uncompressed DICOM'
    )
  with _in_a_sentence():
    pydicom = _library()
    data = pydicom.dcmread(
      io.BytesIO(content),
      stop_before_pixels='PixelData' not in tags,
      force=True,
      specific_tags=list(tags),
    )
    if 'TransferSyntaxUID' not in data.file_meta:
      uid, (is_implicit, _) = pydicom.uid, data.original_encoding
      syntax = uid.ImplicitVRLittleEndian if is_implicit else uid.ExplicitVRLittleEndian
      data.file_meta.TransferSyntaxUID = syntax
    return data


@functools.cache
def _library() -> Any:
  """Returns pydicom, which says nothing of the files that it reads."""
  # Imported here: it takes most of a second, and few data sets need it.
  import pydicom
  import pydicom.pixels

  # Warnings of values that are not as they should be repeat them.
  pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE
  logging.getLogger('pydicom').setLevel(logging.CRITICAL)
  warnings.filterwarnings('ignore', module='pydicom')
  return pydicom


def _picture(
  data: 'pydicom.Dataset', width: int, height: int, series: str
) -> tuple[Image.Image | brightness.Numbers, bytes | None, tuple[str, ...]]:
  """Decodes the middle frame."""
  pixels = _library().pixels
  frames = int(data.get('NumberOfFrames') or 1)
  frame = frames // 2
  notes = (FRAMES,) if frames > 1 else ()
  dicom_unpacking.check_frame(data, frame, frames, (width, height))
  values = pixels.pixel_array(data, index=frame)
  kind = str(data.get('PhotometricInterpretation', ''))
  bits = int(data.get('BitsStored') or 16)
  if kind == 'PALETTE COLOR':
    dicom_unpacking.check_palette(data)
    values = pixels.apply_color_lut(values, data)
    bits = 8 * values.dtype.itemsize
  if values.ndim == 2:
    return _of_one_channel(data, frame, values, kind, bits, series), None, notes
  profile = data.get('ICCProfile')
  if values.dtype == np.uint8 and bits == 8:
    return Image.fromarray(np.ascontiguousarray(values)), profile, notes
  stated = 0.0, 2.0**bits - 1
  key = f'colours of {bits} bits'
  numbers = brightness.Numbers(values, key, stated=stated, notes=(RESCALED,))
  return numbers, profile, notes


def _of_one_channel(
  data: 'pydicom.Dataset',
  frame: int,
  values: np.ndarray,
  kind: str,
  bits: int,
  series: str,
) -> brightness.Numbers:
  """Returns the numbers of a frame of greyscale, and the range that the file states."""
  pixels = _library().pixels
  signed = bool(data.get('PixelRepresentation'))
  slope = intercept = None
  if 'ModalityLUTSequence' in data:
    values = pixels.apply_modality_lut(values, data)
  else:
    transformation = 'PixelValueTransformationSequence'
    slope = _number(_of_frame(data, frame, transformation, 'RescaleSlope'))
    intercept = _number(_of_frame(data, frame, transformation, 'RescaleIntercept'))
  in_units = slope is not None or intercept is not None
  slope = slope or 1.0
  intercept = 0.0 if intercept is None else intercept
  stated, how = _window(data, frame), WINDOW
  floating = np.issubdtype(values.dtype, np.floating)
  if stated is None and 'VOILUTSequence' in data:
    rescaled = (values * slope + intercept).astype(np.int32)
    values, slope, intercept = pixels.apply_voi(rescaled, data), 1.0, 0.0
    table = data.VOILUTSequence[0]
    stated, how = (0.0, 2.0 ** int(table.LUTDescriptor[2]) - 1), TABLE
  elif (
    stated is None
    and not floating
    # Its table says what the numbers are, of other bits.
    and 'ModalityLUTSequence' not in data
    and bits <= (8 if (slope, intercept) == (1, 0) else _FILLED_BITS)
  ):
    ends = (
      (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if signed else (0, 2.0**bits - 1)
    )
    low, high = (slope * end + intercept for end in ends)
    stated, how = (min(low, high), max(low, high)), RESCALED
  key = brightness.UNITS if in_units or floating else brightness.key_of(values)
  if stated is not None:
    key = f'{how} {series}'
  return brightness.Numbers(
    values[..., np.newaxis],
    key,
    slope,
    intercept,
    stated,
    inverted=kind == 'MONOCHROME1',
    notes=() if stated is None or bits <= 8 else (how,),
  )


def _window(data: 'pydicom.Dataset', frame: int) -> brightness.Range | None:
  """Returns the ends of the first window, in units after rescaling."""
  sequence = 'FrameVOILUTSequence'
  center = _number(_of_frame(data, frame, sequence, 'WindowCenter'))
  width = _number(_of_frame(data, frame, sequence, 'WindowWidth'))
  function = _of_frame(data, frame, sequence, 'VOILUTFunction')
  is_linear = str(function or 'LINEAR') == 'LINEAR'
  if center is None or width is None or (width < 1 if is_linear else width <= 0):
    return None
  # PS3.3 C.11.2.1.2: by default a width of w covers w - 1, around half a unit less.
  if is_linear:
    center, width = center - 0.5, width - 1
  return center - width / 2, center + width / 2


def _of_frame(data: 'pydicom.Dataset', frame: int, sequence: str, name: str) -> Any:
  """Returns a tag of a frame, of all frames or of the file; None if none has it."""
  per_frame = data.get('PerFrameFunctionalGroupsSequence') or ()
  groups = [
    *per_frame[frame : frame + 1],
    *(data.get('SharedFunctionalGroupsSequence') or ()),
  ]
  for group in groups:
    for item in group.get(sequence) or ():
      if item.get(name) is not None:
        return item.get(name)
  return data.get(name)


def _number(value: Any) -> float | None:
  """Returns the first number of a tag; None if there is none."""
  try:
    number = float(
      value[0] if isinstance(value, Sequence) and not isinstance(value, str) else value
    )
  except (TypeError, ValueError, IndexError):
    return None
  return number if math.isfinite(number) else None
