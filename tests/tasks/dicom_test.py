"""DICOM: ranges, photometric interpretations, frames, compression, and privacy."""

import io
import logging
import pathlib
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
from tests.tasks import dicom_files
from tests.tasks import picture_files

_SECRET, _SERIES = dicom_files.SECRET, dicom_files.SERIES
_file = dicom_files.of


def _decoded(content, size, **known):
  return picture_files.decode(content, size, images.Reading(**known))[..., 0].astype(
    float
  )


def _scaled(values, low, high):
  """NumPy's own: the linear map from a range to brightness."""
  return np.clip((np.asarray(values, float) - low) / (high - low), 0, 1) * 255


_CT = np.linspace(0, 4095, 64).astype(np.uint16).reshape(8, 8)
_HU = {'RescaleSlope': 1, 'RescaleIntercept': -1024}


def test_window_is_the_range_in_units_after_rescaling():
  content = _file(_CT, WindowCenter=40, WindowWidth=400, **_HU)
  # PS3.3 C.11.2.1.2.1, Table: from 40 - 0.5 - 399/2 to 40 - 0.5 + 399/2.
  expected = _scaled(_CT.astype(int) - 1024, -160, 239)
  np.testing.assert_allclose(_decoded(content, 8), expected, atol=0.51)
  picture = images.read(content, 8, images.AS_USUAL, lambda numbers: numbers.stated)
  assert picture.notes == (dicom.WINDOW,)


@pytest.mark.parametrize('function', ['LINEAR', 'LINEAR_EXACT'])
def test_window_is_what_pydicom_makes_of_it(function):
  content = _file(
    _CT, WindowCenter=[100, 7], WindowWidth=[900, 9], VOILUTFunction=function, **_HU
  )
  data = pydicom.dcmread(io.BytesIO(content))
  rescaled = pydicom.pixels.apply_rescale(data.pixel_array, data)
  windowed = pydicom.pixels.apply_windowing(rescaled, data, index=0)
  expected = _scaled(windowed, windowed.min(), windowed.max())
  np.testing.assert_allclose(_decoded(content, 8), expected, atol=0.6)


@pytest.mark.parametrize('function', ['LINEAR_EXACT', 'SIGMOID'])
@pytest.mark.parametrize('in_a_group', [False, True])
def test_window_of_less_than_a_unit(function, in_a_group):
  window = {'WindowCenter': 0.5, 'WindowWidth': 0.5, 'VOILUTFunction': function}
  tags = window
  if in_a_group:
    inner, group = Dataset(), Dataset()
    inner.update(window)
    group.FrameVOILUTSequence = Sequence([inner])
    tags = {'SharedFunctionalGroupsSequence': Sequence([group])}
  content = _file(_CT, RescaleSlope=2**-12, RescaleIntercept=0, **tags)
  # PS3.3 C.11.2.1.3: from 0.5 - 0.25 to 0.5 + 0.25.
  expected = _scaled(_CT / 4096, 0.25, 0.75)
  np.testing.assert_allclose(_decoded(content, 8), expected, atol=0.51)


@pytest.mark.parametrize(
  'tags', [{'WindowCenter': 40, 'WindowWidth': 0}, {'WindowCenter': 40}, {}]
)
@pytest.mark.parametrize('dtype', [np.uint16, np.int16])
def test_rescale_tags_say_the_range_without_a_window(tags, dtype):
  values = (_CT.astype(int) - (2048 if dtype == np.int16 else 0)).astype(dtype)
  known = {'RescaleSlope': 0.5, 'RescaleIntercept': -100}
  content = _file(values, BitsStored=12, **known, **tags)
  lowest, highest = (-2048, 2047) if dtype == np.int16 else (0, 4095)
  expected = _scaled(values, lowest, highest)
  np.testing.assert_allclose(_decoded(content, 8), expected, atol=0.51)


def test_stated_range_comes_first_and_is_in_rescaled_units():
  content = _file(_CT, WindowCenter=40, WindowWidth=400, **_HU)
  expected = _scaled(_CT.astype(int) - 1024, -1000, 1000)
  found = _decoded(content, 8, pixel_range=(-1000.0, 1000.0))
  np.testing.assert_allclose(found, expected, atol=0.51)


def test_without_tags_the_numbers_are_measured():
  found = _decoded(_file(_CT), 8)
  np.testing.assert_allclose(found, _scaled(_CT, 0, 4095), atol=0.51)


def _table(numbers):
  """A sequence with a table of 256 numbers of 16 bits, which are also its type."""
  table = Dataset()
  table.LUTDescriptor = [256, 0, 16]
  table.LUTData = np.asarray(numbers, np.uint16).tobytes()
  table.ModalityLUTType = 'US'
  table['LUTDescriptor'].VR, table['LUTData'].VR = 'US', 'OW'
  return Sequence([table])


def test_table_of_values():
  values = np.linspace(0, 255, 64).astype(np.uint16).reshape(8, 8)
  content = _file(values, VOILUTSequence=_table(np.arange(256) ** 2))
  expected = _scaled(values.astype(float) ** 2, 0, 65535)
  np.testing.assert_allclose(_decoded(content, 8), expected, atol=0.51)


def test_table_of_what_numbers_of_few_bits_mean():
  values = np.linspace(0, 255, 64).astype(np.uint8).reshape(8, 8)
  content = _file(values, ModalityLUTSequence=_table(np.arange(256) * 257))
  # Of 16 bits: 257 x 255 is 65535.
  np.testing.assert_allclose(_decoded(content, 8), values, atol=0.51)


def test_a_table_and_a_window_of_a_series_have_ranges_of_their_own(tmp_path):
  values = np.linspace(0, 255, 64).astype(np.uint16).reshape(8, 8)
  tags = {'VOILUTSequence': _table(np.arange(256) ** 2)}
  (tmp_path / '0.dcm').write_bytes(_file(values, WindowCenter=50.5, WindowWidth=101))
  for k in (1, 2):
    (tmp_path / f'{k}.dcm').write_bytes(_file(values, **tags))
  source = sources.open_source(tmp_path)
  decoded = decoding.decode_all(source, source.names, 8)
  expected = [_scaled(values, 0, 100)] + [_scaled(values.astype(float) ** 2, 0, 65535)]
  found = decoded.pixels[:2, ..., 0]
  np.testing.assert_allclose(found.astype(float), expected, atol=0.51)
  assert decoded.notes == {dicom.WINDOW: ['0.dcm'], dicom.TABLE: ['1.dcm', '2.dcm']}


@pytest.mark.parametrize('dtype', [np.uint8, np.uint16])
def test_monochrome1_is_inverted(dtype):
  values = (np.arange(64).reshape(8, 8) * (4 if dtype == np.uint8 else 65)).astype(
    dtype
  )
  plain = _file(values)
  inverted = _file(values, PhotometricInterpretation='MONOCHROME1')
  np.testing.assert_array_equal(_decoded(inverted, 8), 255 - _decoded(plain, 8))


_RGB = np.random.default_rng(0).integers(0, 256, (8, 8, 3)).astype(np.uint8)


def test_colours():
  np.testing.assert_array_equal(picture_files.decode(_file(_RGB), 8), _RGB)
  planes = np.ascontiguousarray(_RGB.transpose(2, 0, 1))
  by_plane = _file(_RGB, pixels=planes.tobytes(), PlanarConfiguration=1)
  np.testing.assert_array_equal(picture_files.decode(by_plane, 8), _RGB)


def test_ybr_is_converted_to_rgb():
  flat = np.full((8, 8, 3), (200, 60, 90), np.uint8)
  # PS3.3 C.7.6.3.1.2, by hand.
  red, green, blue = (int(v) for v in flat[0, 0])
  y = 0.299 * red + 0.587 * green + 0.114 * blue
  cb = -0.1687 * red - 0.3313 * green + 0.5 * blue + 128
  cr = 0.5 * red - 0.4187 * green - 0.0813 * blue + 128
  ybr = np.full((8, 8, 3), np.rint([y, cb, cr]), np.uint8)
  content = _file(ybr, PhotometricInterpretation='YBR_FULL')
  np.testing.assert_allclose(picture_files.decode(content, 8).astype(int), flat, atol=2)


def test_palette():
  indices = (np.arange(64) % 4).astype(np.uint8).reshape(8, 8)
  colours = np.array([[0, 0, 0], [200, 10, 20], [30, 250, 40], [50, 60, 255]], np.uint8)
  tags = {}
  for k, name in enumerate(('Red', 'Green', 'Blue')):
    tags[f'{name}PaletteColorLookupTableDescriptor'] = [4, 0, 8]
    tags[f'{name}PaletteColorLookupTableData'] = colours[:, k].tobytes()
  content = _file(indices, PhotometricInterpretation='PALETTE COLOR', **tags)
  np.testing.assert_array_equal(picture_files.decode(content, 8), colours[indices])


@pytest.mark.parametrize(('frames', 'middle'), [(3, 1), (4, 2)])
def test_middle_frame_of_several_is_read(frames, middle):
  values = np.stack([np.full((8, 8), 40 * k + 40, np.uint8) for k in range(frames)])
  content = _file(values)
  picture = images.read(content, 8, images.AS_USUAL, lambda n: n.stated)
  np.testing.assert_array_equal(picture.pixels, 40 * middle + 40)
  assert picture.notes == (dicom.FRAMES,)


def test_tags_of_a_frame_come_before_those_of_all():
  def group(low, high):
    window, rescale, whole = Dataset(), Dataset(), Dataset()
    window.WindowCenter, window.WindowWidth = (low + high) / 2 + 0.5, high - low + 1
    rescale.RescaleSlope, rescale.RescaleIntercept = 2, -10
    whole.FrameVOILUTSequence = Sequence([window])
    whole.PixelValueTransformationSequence = Sequence([rescale])
    return whole

  values = np.stack([_CT, _CT, _CT])
  content = _file(
    values,
    PerFrameFunctionalGroupsSequence=Sequence([group(0, 9), group(50, 950), Dataset()]),
    SharedFunctionalGroupsSequence=Sequence([group(0, 99)]),
  )
  expected = _scaled(2 * _CT.astype(int) - 10, 50, 950)
  np.testing.assert_allclose(_decoded(content, 8), expected, atol=0.51)


def test_a_series_has_one_range(tmp_path):
  for k, center in enumerate((40, 60, 900)):
    window = {'WindowCenter': center, 'WindowWidth': 401}
    (tmp_path / f'{k}.dcm').write_bytes(_file(_CT, **window, **_HU))
  other = {'WindowCenter': 500, 'WindowWidth': 1001, 'SeriesInstanceUID': '1.2.9'}
  (tmp_path / '3.dcm').write_bytes(_file(_CT, **other, **_HU))
  source = sources.open_source(tmp_path)
  decoded = decoding.decode_all(source, source.names, 8)
  units = _CT.astype(int) - 1024
  for row in decoded.pixels[:3, ..., 0].astype(float):
    # The middle window, 60 +- 200, less the half unit.
    np.testing.assert_allclose(row, _scaled(units, -140.5, 259.5), atol=0.51)
  np.testing.assert_allclose(
    decoded.pixels[3, ..., 0].astype(float), _scaled(units, -0.5, 999.5), atol=0.51
  )
  # The median is of several files, and so of several clients if they share a series.
  assert [ends for _, ends in decoded.measured] == [(-140.5, 259.5)]
  assert decoded.notes == {dicom.WINDOW: ['0.dcm', '1.dcm', '2.dcm', '3.dcm']}


@pytest.mark.parametrize(
  'tags',
  [
    # No series: each file is one by itself.
    [{'SeriesInstanceUID': ''}, {'SeriesInstanceUID': ''}],
    # One series of two patients, as some tools that take ids out write it.
    [{'PatientID': 'a'}, {'PatientID': 'b'}],
  ],
)
@pytest.mark.parametrize('windowed', [True, False])
def test_a_series_spans_neither_patients_nor_files_that_name_none(
  tmp_path, tags, windowed
):
  known = (
    [
      {'WindowCenter': 0.5, 'WindowWidth': 201},
      {'WindowCenter': 500.5, 'WindowWidth': 1001},
    ]
    if windowed
    else [{'RescaleIntercept': -1000}, {'RescaleIntercept': 500}]
  )
  for k in range(2):
    (tmp_path / f'{k}.dcm').write_bytes(
      _file(_CT, BitsStored=12, **{'RescaleSlope': 1, **known[k], **tags[k]})
    )
  source = sources.open_source(tmp_path)
  decoded = decoding.decode_all(source, source.names, 8).pixels[..., 0].astype(float)
  # PS3.3 C.11.2.1.2, or the ends of 12 bits.
  ranges = [(-100, 100), (0, 1000)] if windowed else [(0, 4095)] * 2
  for row, ends in zip(decoded, ranges, strict=True):
    np.testing.assert_allclose(row, _scaled(_CT, *ends), atol=0.51)


def test_of_sixteen_bits_the_range_is_measured_without_a_window(tmp_path):
  values = (_CT.astype(int) - 1024).astype(np.int16)
  content = _file(values, BitsStored=16, RescaleSlope=1, RescaleIntercept=-24)
  (tmp_path / '0.dcm').write_bytes(content)
  source = sources.open_source(tmp_path)
  decoded = decoding.decode_all(source, source.names, 8)
  # In units after rescaling, of all numbers of so few.
  assert [ends for _, ends in decoded.measured] == [(-1048, 3047)]
  expected = _scaled(_CT, 0, 4095)
  np.testing.assert_allclose(decoded.pixels[0, ..., 0], expected, atol=0.51)


@pytest.mark.parametrize(
  ('slope', 'intercept'),
  # PET in SUV, an apparent diffusion coefficient in mm2/s, counts, half a unit.
  [(0.00045778, 0), (9.1556e-08, 0), (2.5, 0), (1, 0.5)],
)
def test_units_of_any_scale_fill_their_range(tmp_path, slope, intercept):
  values = np.linspace(0, 32767, 64).astype(np.uint16).reshape(8, 8)
  content = _file(values, RescaleSlope=slope, RescaleIntercept=intercept)
  (tmp_path / '0.dcm').write_bytes(content)
  source = sources.open_source(tmp_path)
  decoded = decoding.decode_all(source, source.names, 8)
  ((_, ends),) = decoded.measured
  np.testing.assert_allclose(ends, (0, 32767 * slope + intercept))
  found = decoded.pixels[0, ..., 0]
  np.testing.assert_allclose(found, _scaled(values, 0, 32767), atol=0.51)


def test_files_of_a_series_have_one_range_whatever_their_slopes(tmp_path):
  """A slope of PET may be a whole number by chance."""
  for k, slope in enumerate((0.5, 1, 2)):
    (tmp_path / f'{k}.dcm').write_bytes(_file(_CT, RescaleSlope=slope))
  source = sources.open_source(tmp_path)
  decoded = decoding.decode_all(source, source.names, 8)
  assert [ends for _, ends in decoded.measured] == [(0, 8190)]
  for slope, found in zip((0.5, 1, 2), decoded.pixels[..., 0], strict=True):
    np.testing.assert_allclose(found, _scaled(_CT * slope, 0, 8190), atol=0.51)


def test_floating_point_numbers_are_in_units_too(tmp_path):
  values = np.linspace(0, 0.003, 64, dtype=np.float32).reshape(8, 8)
  data = pydicom.dcmread(io.BytesIO(_file(values)))
  del data.PixelData, data.BitsStored, data.HighBit, data.PixelRepresentation
  data.FloatPixelData = values.tobytes()
  data.save_as(tmp_path / '0.dcm')
  source = sources.open_source(tmp_path)
  decoded = decoding.decode_all(source, source.names, 8)
  found = decoded.pixels[0, ..., 0]
  np.testing.assert_allclose(found, _scaled(values, 0, 0.003), atol=0.51)


def _cannot(content):
  with pytest.raises(image_opening.PictureError) as error:
    picture_files.decode(content, 8)
  text = images.why_unreadable(error.value)
  assert not any(secret in text for secret in (*_SECRET.values(), _SERIES))
  return text


def test_unreadable_images_are_reported_in_plain_text():
  small = np.zeros((8, 8), np.uint8)
  frame = encaps.encapsulate([b'\0' * 16])
  lossless = _file(small, uid.JPEGLosslessSV1, frame)
  assert 'compressed by JPEG Lossless' in _cannot(lossless)
  # A frame that unpacks to more than the file says.
  large = encaps.encapsulate([picture_files.of(Image.new('L', (4000, 4000)), 'JPEG')])
  bomb = _file(small, uid.JPEGBaseline8Bit, large)
  assert '8 x 8 pixels with a frame of 4000 x 4000' in _cannot(bomb)
  assert 'deflated' in _cannot(_file(small, uid.DeflatedExplicitVRLittleEndian))
  assert 'cannot decode' in _cannot(_file(small, pixels=b'\0' * 10))
  without = pydicom.dcmread(io.BytesIO(_file(small)))
  del without.PixelData
  buffer = io.BytesIO()
  without.save_as(buffer)
  assert 'without a picture' in _cannot(buffer.getvalue())
  assert 'cut off before it' in _cannot(_file(small)[:200])


def test_a_frame_of_postscript_starts_no_program(monkeypatch):
  started: list[object] = []
  monkeypatch.setattr('subprocess.Popen', lambda *given, **_: started.append(given))
  frame = encaps.encapsulate([b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n'])
  content = _file(np.zeros((8, 8), np.uint8), uid.JPEGBaseline8Bit, frame)
  assert 'cannot decode' in _cannot(content)
  assert not started


def test_oversized_arrays_are_refused(monkeypatch):
  monkeypatch.setattr(image_opening, 'room', lambda: image_opening.Room(10_000))
  content = _file(np.zeros((60, 60), np.uint8))
  assert _cannot(content).startswith('60 x 60 pixels take')


def test_no_tag_that_identifies_is_written_or_printed(tmp_path, capfd, caplog):
  caplog.set_level(logging.DEBUG)
  # Values that pydicom warns of.
  odd = {'WindowCenter': 40, 'WindowWidth': 400, 'PatientAge': 'old'}
  for k in range(3):
    (tmp_path / f'{k}.dcm').write_bytes(_file(_CT + np.uint16(k), **odd, **_HU))
  (tmp_path / 'x.dcm').write_bytes(_file(_CT, pixels=b'\0'))
  source = sources.open_source(tmp_path)
  with warnings.catch_warnings(record=True) as caught:
    decoding.decode_all(source, source.names, 8)
    for name in source.names:
      dicom.pseudonym(dicom.patient_id(source.read(name)))
  written = [
    path.read_bytes()
    for path in pathlib.Path(tmp_path).rglob('*')
    if path.is_file() and path.suffix != '.dcm'
  ]
  assert written
  printed = ''.join(capfd.readouterr()) + caplog.text + str([w.message for w in caught])
  for secret in (*_SECRET.values(), _SERIES):
    assert secret not in printed
    assert not any(secret.encode() in content for content in written)


def test_size_without_pixels():
  assert images.size_of(_file(np.zeros((8, 12), np.uint8))) == (12, 8)
  with pytest.raises(Image.UnidentifiedImageError):
    masks.decode(_file(_CT), 8)
