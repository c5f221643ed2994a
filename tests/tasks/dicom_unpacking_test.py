"""DICOM files that are compressed, or unpack to more than they say."""

import io
import struct

import numpy as np
from PIL import Image
import pydicom
from pydicom import encaps
from pydicom import uid
import pytest

from tasks import image_opening
from tests.worlds import allocations
from tests.worlds import pictures
from tests.worlds import scans

_SMALL = np.zeros((8, 8), np.uint8)
_CHANNELS = ('Red', 'Green', 'Blue')


def _refused(content):
  """Returns why; what it took was not much more than the file."""
  with (
    allocations.traced(below=2**22 + 20 * len(content)),
    pytest.raises(image_opening.PictureError) as error,
  ):
    pictures.decode(content, 8)
  return str(error.value)


def _of_palette(entries, segments, bits=8, indices=_SMALL, syntax=None):
  tags = {'PhotometricInterpretation': 'PALETTE COLOR'}
  for name, content in zip(_CHANNELS, segments, strict=True):
    tags[f'{name}PaletteColorLookupTableDescriptor'] = [entries, 0, bits]
    tags[f'Segmented{name}PaletteColorLookupTableData'] = content
  return scans.of(indices, syntax or uid.ExplicitVRLittleEndian, **tags)


def test_compressed_files():
  ct = np.linspace(0, 4095, 64).astype(np.uint16).reshape(8, 8)
  data = pydicom.dcmread(io.BytesIO(scans.of(ct, WindowCenter=2000, WindowWidth=4000)))
  data.compress(uid.RLELossless)
  buffer = io.BytesIO()
  data.save_as(buffer, enforce_file_format=True)
  plain = scans.of(ct, WindowCenter=2000, WindowWidth=4000)
  np.testing.assert_array_equal(
    pictures.decode(buffer.getvalue(), 8), pictures.decode(plain, 8)
  )
  flat = Image.new('L', (8, 8), 90)
  frame = encaps.encapsulate([pictures.of(flat, 'JPEG', quality=95)])
  jpeg = scans.of(np.zeros((8, 8), np.uint8), uid.JPEGBaseline8Bit, frame)
  np.testing.assert_allclose(pictures.decode(jpeg, 8), 90, atol=1)
  red = Image.new('RGB', (8, 8), (200, 60, 90))
  frame = encaps.encapsulate([pictures.of(red, 'JPEG', quality=95)])
  known = {'PhotometricInterpretation': 'YBR_FULL_422'}
  jpeg = scans.of(np.zeros((8, 8, 3), np.uint8), uid.JPEGBaseline8Bit, frame, **known)
  found = pictures.decode(jpeg, 8).astype(int)
  np.testing.assert_allclose(found, np.full((8, 8, 3), (200, 60, 90)), atol=3)


def test_palette_of_segments():
  """PS3.3 C.7.9.2: three entries as they are, then four on a line to the last."""
  indices = (np.arange(64) % 7).astype(np.uint8).reshape(8, 8)
  lines = [(0, 100, 200), (10, 20, 30), (255, 0, 255)]
  ends = (240, 50, 215)
  segments = [
    bytes([0, 3, *line, 1, 4, end]) for line, end in zip(lines, ends, strict=True)
  ]
  table = [
    [*line, *np.linspace(line[-1], end, 5)[1:]]
    for line, end in zip(lines, ends, strict=True)
  ]
  content = _of_palette(7, segments, indices=indices)
  found = pictures.decode(content, 8)
  np.testing.assert_array_equal(found, np.array(table, np.uint8).T[indices])


def test_a_palette_has_no_more_entries_than_it_states():
  line = struct.pack('<HHH', 1, 65535, 9)
  bomb = struct.pack('<HHH', 0, 1, 5) + line * 10_000
  for entries, stated in ((256, '256'), (0, '65,536')):
    text = _refused(_of_palette(entries, [bomb] * 3, bits=16))
    assert text.endswith(f'a palette of 655,350,001 entries, which states {stated}')
  # Segments that repeat those before them, which repeat others.
  repeats = struct.pack('<HHHHHHH', 0, 1, 5, 2, 1000, 0, 0)
  assert 'repeat others' in _refused(_of_palette(256, [repeats] * 3, bits=16))


@pytest.mark.parametrize('count', [1, 2])
def test_no_segment_of_rle_goes_on_behind_the_picture(count):
  """Two bytes become 128; the last segment has 200,000 of them for 64 pixels."""
  long = bytes([129, 7]) * 200_000
  segments = [bytes([193, 1])] * (count - 1) + [long]
  offsets = [64 + 2 * k for k in range(count)]
  header = struct.pack('<16L', count, *offsets, *[0] * (15 - count))
  frame = encaps.encapsulate([header + b''.join(segments)])
  values = np.zeros((8, 8), np.uint8 if count == 1 else np.uint16)
  content = scans.of(values, uid.RLELossless, frame)
  assert _refused(content) == 'a DICOM file of 8 x 8 pixels with a frame of more'
  # What is left over behind the pixels is no harm.
  frame = encaps.encapsulate([header + b''.join(segments)[: 2 * count + 2]])
  values = scans.of(values, uid.RLELossless, frame)
  assert len(np.unique(pictures.decode(values, 8))) == 1


def test_bytes_of_rle_that_are_no_run_unpack_to_nothing():
  values = np.arange(64, dtype=np.uint8).reshape(8, 8)
  header = struct.pack('<16L', 1, 64, *[0] * 14)
  segment = bytes([128] * 50 + [63]) + values.tobytes()
  frame = encaps.encapsulate([header + segment])
  found = pictures.decode(scans.of(values, uid.RLELossless, frame), 8)
  np.testing.assert_array_equal(found[..., 0], values)


def test_a_frame_of_rle_that_is_no_such_frame_is_named():
  for content in (b'\0' * 16, struct.pack('<16L', 99, *[0] * 15)):
    file = scans.of(_SMALL, uid.RLELossless, encaps.encapsulate([content]))
    assert 'pydicom cannot decode' in _refused(file)
