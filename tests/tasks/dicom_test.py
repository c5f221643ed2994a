"""DICOM: ranges, photometric interpretations, frames, compression, and privacy."""

import io
import logging
import warnings

import numpy as np
from PIL import Image
import pydicom
from pydicom import encaps
from pydicom import uid
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
import pytest

from tasks import decoding
from tasks import dicom
from tasks import image_opening
from tasks import images
from tasks import masks
from tasks import sources
from tests.worlds import pictures
from tests.worlds import scans

_file = scans.of


def _scaled(values, low, high):
  """NumPy's own: the linear map from a range to brightness."""
  return np.clip((np.asarray(values, float) - low) / (high - low), 0, 1) * 255


def _check(content, expected, **reading):
  found = pictures.decode(content, 8, images.Reading(**reading))[..., 0]
  np.testing.assert_allclose(found.astype(float), expected, atol=0.51)


def _of_folder(folder, *contents):
  """Decodes files of one folder: brightness, the measured ranges, and notes."""
  for k, content in enumerate(contents):
    (folder / f'{k}.dcm').write_bytes(content)
  source = sources.open_source(folder)
  decoded = decoding.decode_all(source, source.names, 8)
  measured = [ends for _, ends in decoded.measured]
  return decoded.pixels[..., 0].astype(float), measured, decoded.notes


_CT = np.linspace(0, 4095, 64).astype(np.uint16).reshape(8, 8)
_HU = {'RescaleSlope': 1, 'RescaleIntercept': -1024}
_UNITS = _CT.astype(int) - 1024
_WINDOW = {'WindowCenter': 40, 'WindowWidth': 400}
_BYTES = np.linspace(0, 255, 64).astype(np.uint8).reshape(8, 8)


def _group(**others):
  """A functional group of frames, with sequences of one item each."""
  group = Dataset()
  for name, tags in others.items():
    inner = Dataset()
    inner.update(tags)
    setattr(group, name, Sequence([inner]))
  return group


def _table(numbers):
  """A sequence with a table of 256 numbers of 16 bits, which are also its type."""
  table = Dataset()
  table.LUTDescriptor = [256, 0, 16]
  table.LUTData = np.asarray(numbers, np.uint16).tobytes()
  table.ModalityLUTType = 'US'
  table['LUTDescriptor'].VR, table['LUTData'].VR = 'US', 'OW'
  return Sequence([table])


_SQUARES = {'VOILUTSequence': _table(np.arange(256) ** 2)}


def _ranges():
  """Yields tags, the stored numbers, their units, and the ends of the range."""
  # PS3.3 C.11.2.1.2.1, Table: from 40 - 0.5 - 399/2 to 40 - 0.5 + 399/2.
  yield {**_WINDOW, **_HU}, _CT, _UNITS, (-160, 239)
  for function in ('LINEAR_EXACT', 'SIGMOID'):
    window = {'WindowCenter': 0.5, 'WindowWidth': 0.5, 'VOILUTFunction': function}
    group = Sequence([_group(FrameVOILUTSequence=window)])
    for own in (window, {'SharedFunctionalGroupsSequence': group}):
      tags = {'RescaleSlope': 2**-12, 'RescaleIntercept': 0, **own}
      # PS3.3 C.11.2.1.3: from 0.5 - 0.25 to 0.5 + 0.25.
      yield tags, _CT, _CT / 4096, (0.25, 0.75)
  yield {}, _CT, _CT, (0, 4095)
  yield _SQUARES, _BYTES.astype(np.uint16), _BYTES.astype(int) ** 2, (0, 65535)
  # What numbers of few bits mean may have 16: 257 x 255 is 65535.
  table = {'ModalityLUTSequence': _table(np.arange(256) * 257)}
  yield table, _BYTES, _BYTES, (0, 255)


def test_tags_say_the_range_in_rescaled_units():
  for tags, values, units, ends in _ranges():
    _check(_file(values, **tags), _scaled(units, *ends))


@pytest.mark.parametrize('function', ['LINEAR', 'LINEAR_EXACT'])
def test_window_is_what_pydicom_makes_of_it(function):
  content = _file(
    _CT, WindowCenter=[100, 7], WindowWidth=[900, 9], VOILUTFunction=function, **_HU
  )
  data = pydicom.dcmread(io.BytesIO(content))
  rescaled = pydicom.pixels.apply_rescale(data.pixel_array, data)
  windowed = pydicom.pixels.apply_windowing(rescaled, data, index=0)
  _check(content, _scaled(windowed, windowed.min(), windowed.max()))


@pytest.mark.parametrize('tags', [{**_WINDOW, 'WindowWidth': 0}, {'WindowCenter': 40}])
@pytest.mark.parametrize('dtype', [np.uint16, np.int16])
def test_rescale_tags_say_the_range_without_a_window(tags, dtype):
  lowest = -2048 if dtype == np.int16 else 0
  values = (_CT.astype(int) + lowest).astype(dtype)
  known = {'RescaleSlope': 0.5, 'RescaleIntercept': -100, 'BitsStored': 12}
  for own in (tags, {}):
    _check(_file(values, **known, **own), _scaled(values, lowest, lowest + 4095))


def test_a_table_and_a_window_of_a_series_have_ranges_of_their_own(tmp_path):
  values = _BYTES.astype(np.uint16)
  table = _file(values, **_SQUARES)
  window = _file(values, WindowCenter=50.5, WindowWidth=101)
  found, _, notes = _of_folder(tmp_path, window, table, table)
  expected = [_scaled(values, 0, 100), _scaled(values.astype(int) ** 2, 0, 65535)]
  np.testing.assert_allclose(found[:2], expected, atol=0.51)
  assert notes == {dicom.WINDOW: ['0.dcm'], dicom.TABLE: ['1.dcm', '2.dcm']}


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16])
def test_monochrome1_is_inverted(dtype):
  values = (np.arange(64).reshape(8, 8) * (4 if dtype == np.uint8 else 65)).astype(
    dtype
  )
  plain, inverted = (
    pictures.decode(_file(values, PhotometricInterpretation=kind), 8).astype(int)
    for kind in ('MONOCHROME2', 'MONOCHROME1')
  )
  np.testing.assert_array_equal(inverted, 255 - plain)


def _palette(indices, colours):
  tags = {'PhotometricInterpretation': 'PALETTE COLOR'}
  for k, name in enumerate(('Red', 'Green', 'Blue')):
    tags[f'{name}PaletteColorLookupTableDescriptor'] = [len(colours), 0, 8]
    tags[f'{name}PaletteColorLookupTableData'] = colours[:, k].tobytes()
  return _file(indices, **tags)


def test_colours_planes_and_palettes():
  rgb = np.random.default_rng(0).integers(0, 256, (8, 8, 3)).astype(np.uint8)
  planes = np.ascontiguousarray(rgb.transpose(2, 0, 1))
  by_plane = _file(rgb, pixels=planes.tobytes(), PlanarConfiguration=1)
  indices = (np.arange(64) % 4).astype(np.uint8).reshape(8, 8)
  for content, expected in (
    (_file(rgb), rgb),
    (by_plane, rgb),
    (_palette(indices, rgb[0, :4]), rgb[0, :4][indices]),
  ):
    np.testing.assert_array_equal(pictures.decode(content, 8), expected)


def test_ybr_is_converted_to_rgb():
  flat = np.full((8, 8, 3), (200, 60, 90), np.uint8)
  # PS3.3 C.7.6.3.1.2, by hand.
  red, green, blue = (int(v) for v in flat[0, 0])
  y = 0.299 * red + 0.587 * green + 0.114 * blue
  cb = -0.1687 * red - 0.3313 * green + 0.5 * blue + 128
  cr = 0.5 * red - 0.4187 * green - 0.0813 * blue + 128
  ybr = np.full((8, 8, 3), np.rint([y, cb, cr]), np.uint8)
  content = _file(ybr, PhotometricInterpretation='YBR_FULL')
  np.testing.assert_allclose(pictures.decode(content, 8).astype(int), flat, atol=2)


@pytest.mark.parametrize(('frames', 'middle'), [(3, 1), (4, 2)])
def test_middle_frame_of_several_is_read(frames, middle):
  values = np.stack([np.full((8, 8), 40 * k + 40, np.uint8) for k in range(frames)])
  picture = images.read(_file(values), 8, images.AS_USUAL, lambda n: n.stated)
  np.testing.assert_array_equal(picture.pixels, 40 * middle + 40)
  assert picture.notes == (dicom.FRAMES,)


def test_tags_of_a_frame_come_before_those_of_all():
  def group(low, high):
    window = {'WindowCenter': (low + high) / 2 + 0.5, 'WindowWidth': high - low + 1}
    rescale = {'RescaleSlope': 2, 'RescaleIntercept': -10}
    return _group(FrameVOILUTSequence=window, PixelValueTransformationSequence=rescale)

  content = _file(
    np.stack([_CT, _CT, _CT]),
    PerFrameFunctionalGroupsSequence=Sequence([group(0, 9), group(50, 950), Dataset()]),
    SharedFunctionalGroupsSequence=Sequence([group(0, 99)]),
  )
  _check(content, _scaled(2 * _CT.astype(int) - 10, 50, 950))


def test_a_series_has_one_range(tmp_path):
  windows = [{'WindowCenter': center, 'WindowWidth': 401} for center in (40, 60, 900)]
  other = {'WindowCenter': 500, 'WindowWidth': 1001, 'SeriesInstanceUID': '1.2.9'}
  found, measured, notes = _of_folder(
    tmp_path, *(_file(_CT, **own, **_HU) for own in (*windows, other))
  )
  # The middle window, 60 +- 200, less the half unit.
  expected = [_scaled(_UNITS, -140.5, 259.5)] * 3 + [_scaled(_UNITS, -0.5, 999.5)]
  np.testing.assert_allclose(found, expected, atol=0.51)
  # The median is of several files, and so of several clients if they share a series.
  assert measured == [(-140.5, 259.5)]
  assert notes == {dicom.WINDOW: [f'{k}.dcm' for k in range(4)]}


@pytest.mark.parametrize(
  'tags',
  [
    # No series: each file is one by itself.
    [{'SeriesInstanceUID': ''}, {'SeriesInstanceUID': ''}],
    # One series of two patients, as some tools that take ids out write it.
    [{'PatientID': 'a'}, {'PatientID': 'b'}],
  ],
)
@pytest.mark.parametrize(
  ('known', 'ends'),
  [
    # PS3.3 C.11.2.1.2, or the ends of 12 bits.
    (
      [
        {'WindowCenter': 0.5, 'WindowWidth': 201},
        {'WindowCenter': 500.5, 'WindowWidth': 1001},
      ],
      [(-100, 100), (0, 1000)],
    ),
    ([{'RescaleIntercept': -1000}, {'RescaleIntercept': 500}], [(0, 4095)] * 2),
  ],
)
def test_a_series_spans_neither_patients_nor_files_that_name_none(
  tmp_path, tags, known, ends
):
  files = [
    _file(_CT, BitsStored=12, **{'RescaleSlope': 1, **known[k], **tags[k]})
    for k in range(2)
  ]
  found, _, _ = _of_folder(tmp_path, *files)
  expected = [_scaled(_CT, *own) for own in ends]
  np.testing.assert_allclose(found, expected, atol=0.51)


def test_files_of_a_series_have_one_range_whatever_their_slopes(tmp_path):
  """A slope of PET may be a whole number by chance."""
  slopes = (0.5, 1, 2)
  found, measured, _ = _of_folder(
    tmp_path, *(_file(_CT, RescaleSlope=slope) for slope in slopes)
  )
  assert measured == [(0, 8190)]
  expected = [_scaled(_CT * slope, 0, 8190) for slope in slopes]
  np.testing.assert_allclose(found, expected, atol=0.51)


def _changed(content, change):
  """The bytes of a file after a change of its data set."""
  data = pydicom.dcmread(io.BytesIO(content))
  change(data)
  buffer = io.BytesIO()
  data.save_as(buffer)
  return buffer.getvalue()


def test_floating_point_numbers_are_in_units_too(tmp_path):
  values = np.linspace(0, 0.003, 64, dtype=np.float32).reshape(8, 8)

  def change(data):
    del data.PixelData, data.BitsStored, data.HighBit, data.PixelRepresentation
    data.FloatPixelData = values.tobytes()

  found, _, _ = _of_folder(tmp_path, _changed(_file(values), change))
  np.testing.assert_allclose(found[0], _scaled(values, 0, 0.003), atol=0.51)


_SECRETS = (*scans.SECRET.values(), scans.SERIES)


def _unreadable():
  """Yields files, and what is said of each."""
  small = np.zeros((8, 8), np.uint8)
  frame = encaps.encapsulate([b'\0' * 16])
  yield _file(small, uid.JPEGLosslessSV1, frame), 'compressed by JPEG Lossless'
  # A frame that unpacks to more than the file says.
  large = encaps.encapsulate([pictures.of(Image.new('L', (4000, 4000)), 'JPEG')])
  bomb = _file(small, uid.JPEGBaseline8Bit, large)
  yield bomb, '8 x 8 pixels with a frame of 4000 x 4000'
  script = b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n'
  frame = encaps.encapsulate([script])
  yield _file(small, uid.JPEGBaseline8Bit, frame), 'cannot decode'
  yield _file(small, uid.DeflatedExplicitVRLittleEndian), 'deflated'
  yield _file(small, pixels=b'\0' * 10), 'cannot decode'
  without = _changed(_file(small), lambda data: data.pop('PixelData'))
  yield without, 'without a picture'
  yield _file(small)[:200], 'cut off before it'


def test_unreadable_images_show_no_secret_and_start_no_program(monkeypatch):
  started: list[object] = []
  monkeypatch.setattr('subprocess.Popen', lambda *given, **_: started.append(given))
  for content, said in _unreadable():
    with pytest.raises(image_opening.PictureError) as error:
      pictures.decode(content, 8)
    text = images.why_unreadable(error.value)
    assert said in text
    assert not any(secret in text for secret in _SECRETS)
  assert not started
  monkeypatch.setattr(image_opening, 'room', lambda: image_opening.Room(10_000))
  with pytest.raises(image_opening.PictureError, match='60 x 60 pixels take'):
    pictures.decode(_file(np.zeros((60, 60), np.uint8)), 8)


def test_no_tag_that_identifies_is_written_or_printed(tmp_path, capfd, caplog):
  caplog.set_level(logging.DEBUG)
  # Values that pydicom warns of.
  odd = {**_WINDOW, 'PatientAge': 'old'}
  files = [_file(_CT + np.uint16(k), **odd, **_HU) for k in range(3)]
  with warnings.catch_warnings(record=True) as caught:
    _of_folder(tmp_path, *files, _file(_CT, pixels=b'\0'))
    source = sources.open_source(tmp_path)
    for name in source.names:
      dicom.pseudonym(dicom.patient_id(source.read(name)))
  written = [
    path.read_bytes()
    for path in tmp_path.rglob('*')
    if path.is_file() and path.suffix != '.dcm'
  ]
  assert written
  printed = ''.join(capfd.readouterr()) + caplog.text + str([w.message for w in caught])
  for secret in _SECRETS:
    assert secret not in printed
    assert not any(secret.encode() in content for content in written)


def test_size_without_pixels():
  assert images.size_of(_file(np.zeros((8, 12), np.uint8))) == (12, 8)
  with pytest.raises(Image.UnidentifiedImageError):
    masks.decode(_file(_CT), 8)
