"""The range from black to white: usual ranges, few pixels, and few files."""

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from tasks import brightness
from tasks import images
from tests.worlds import pictures

_SETTINGS = hypothesis.settings(
  max_examples=60, derandomize=True, deadline=None, database=None
)


def _numbers(values, **known):
  values = np.asarray(values)[..., np.newaxis]
  return brightness.Numbers(values, brightness.key_of(values), **known)


def _range(*files):
  summaries = [_numbers(values).summary() for values in files]
  (ends,) = brightness.of_data_set(summaries).values()
  return ends


@pytest.mark.parametrize(
  ('dtype', 'low', 'high', 'expected'),
  [
    (np.uint16, 0, 200, (0, 255)),
    (np.uint16, 3, 1023, (0, 1023)),
    (np.uint16, 0, 4095, (0, 4095)),
    # One and 40 more than 12 bits hold are within a hundredth.
    (np.uint16, 0, 4096, (0, 4095)),
    (np.uint16, 0, 4135, (0, 4095)),
    (np.uint16, 0, 4137, (0, 16383)),
    (np.uint16, 0, 65535, (0, 65535)),
    (np.int16, -1024, 3071, (-1024, 3071)),
    (np.float32, 0, 1, (0, 1)),
    (np.float32, -0.003, 1.003, (0, 1)),
    (np.float32, 0, 25, (0, 25)),
    (np.float32, 0, 26, (0, 255)),
    (np.float32, 0, 256, (0, 255)),
    (np.float32, 0, 1e6, (0, 1e6)),
    (np.float32, -1, 1, (-1, 1)),
    (np.float32, -5, -5, (-5, -4)),
    # A tenth of 4095 is 409.5: raw numbers and degrees of thermal cameras are below.
    (np.uint16, 1000, 1409, (1000, 1409)),
    (np.uint16, 1000, 1410, (0, 4095)),
    (np.float32, 20.5, 32, (20.5, 32)),
    (np.int32, 0, 70_000, (0, 70_000)),
    (np.uint16, 7, 7, (0, 255)),
  ],
)
def test_least_usual_range_that_holds_the_numbers(dtype, low, high, expected):
  np.testing.assert_allclose(_range(np.array([[low, high]], dtype)), expected)


def _odd():
  """Yields files in which few pixels, or few files, are odd; the range, how exactly."""
  draw = np.random.default_rng(0).integers
  for side, expected in ((14, (0, 4095)), (20, (100, 4000))):
    # By hand: 14 x 14 of 10,000 pixels are 1.96 %, 20 x 20 are 4 %: 0 to 65535, of
    # which the rest fills 6 %.
    values = draw(100, 4000, (100, 100)).astype(np.uint16)
    values[:side, :side] = 65535
    yield [values], expected, 5
  # Edges of a marker belong to it.
  values = draw(100, 4000, (200, 200)).astype(np.uint16)
  values[10:30, 10:30] = 65535
  values[9, 10:30] = values[10:30, 9] = 50_000
  values[30, 10:20] = 9000
  yield [values], (0, 4095), 0
  # Bright points of many values are none: few stars are what the picture is of.
  values = np.full((200, 200), 300, np.uint16)
  values[::20, ::20] = np.linspace(30_000, 65_000, 100).reshape(10, 10)
  yield [values], (0, 65535), 0
  # Pixels that no scanner filled do not count.
  values = draw(-1000, 2000, (100, 100)).astype(np.int16)
  expected = np.quantile(values, [0.001, 0.999])
  values[:40] = -30000
  yield [values], expected, 10
  # One file of a hundred does not decide.
  usual = [np.full((2, 2), 3000 + k, np.uint16) for k in range(100)]
  other = np.full((2, 2), 60000, np.uint16)
  yield [*usual, other], (0, 4095), 0
  yield [*usual[:50], other], (0, 65535), 0


def test_odd_pixels_and_files_are_told_from_the_others():
  for files, expected, most in _odd():
    np.testing.assert_allclose(_range(*files), expected, atol=most)


@_SETTINGS
@hypothesis.given(
  strategies.sampled_from([(np.uint16, 51_000), (np.int16, 2900), (np.float32, 20)]),
  strategies.dictionaries(
    strategies.sampled_from([0, -9999, -32768, 65535]), strategies.integers(1, 350)
  ),
)
def test_dead_pixels_and_no_data_do_not_undo_the_ends_of_thermal_pictures(kind, bad):
  dtype, low = kind
  values = np.linspace(low, low + 12, 576).astype(dtype)
  left = values[max(bad.values(), default=0) :].copy()
  for number, count in bad.items():
    # int16 reads 65535 as -1.
    values[:count] = np.int64(number).astype(dtype)
  ends = _range(values.reshape(24, 24))
  np.testing.assert_allclose(ends, (left[0], left[-1]), atol=0.01)


def test_file_unlike_the_others_is_said_to_hide_them():
  thermal = [np.array([[51_000, 52_000]], np.uint16)] * 11
  other, blank = np.array([[2000, 3500]], np.uint16), np.zeros((2, 2), np.uint16)
  assert _range(*thermal, blank) == (51_000, 52_000)
  assert _range(*thermal, other) == (0, 65535)
  summaries = [_numbers(values).summary() for values in (*thermal, other)]
  # By hand: 1000 of 65535 numbers.
  assert brightness.shown((0, 65535), summaries) == (
    '--data=pixel_range=0/65535; most of them fill 1.5% of that range: '
    '--data=pixel_range=51000/52000'
  )
  assert brightness.shown((0, 4095), summaries[-1:]) == '--data=pixel_range=0/4095'


def test_whole_and_floating_numbers_have_ranges_of_their_own():
  summaries = [
    _numbers(np.array([[0, 4000]], np.uint16)).summary(),
    _numbers(np.array([[0, 0.9]], np.float32)).summary(),
  ]
  assert brightness.of_data_set(summaries) == {
    brightness.WHOLE: (0, 4095),
    brightness.FLOATING: (0, 1),
  }


def test_stated_ranges_have_their_median_whatever_the_pixels():
  summaries = [
    brightness.Numbers(np.zeros((1, 1, 1)), 'series', stated=ends).summary()
    for ends in ((-160, 240), (-150, 250), (-1000, 2000))
  ]
  assert brightness.of_data_set(summaries) == {'series': (-160, 250)}
  assert brightness.of_several(summaries) == ['series']
  assert brightness.of_several([summaries[0], summaries[0]]) == []


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
  values = np.float32([[0.5, bad], [0.1, 1.0]])
  content = pictures.tiff(values[..., np.newaxis])
  for ends in (None, (0.0, 1.0)):
    with pytest.raises(ValueError, match=r'infinite or not a number \(NaN\)'):
      pictures.decode(content, 2, images.Reading(pixel_range=ends))


_DTYPES = (np.int8, np.uint16, np.int16, np.int32, np.uint32, np.float32)


@_SETTINGS
@hypothesis.given(
  strategies.sampled_from(_DTYPES),
  strategies.floats(-1e5, 1e5),
  strategies.floats(0.01, 1e5),
  strategies.booleans(),
)
def test_stated_range_maps_all_types_as_numpy_would(dtype, low, width, inverted):
  draw = np.random.default_rng(0)
  raw = draw.uniform(low - width, low + 2 * width, (6, 6))
  if np.issubdtype(dtype, np.integer):
    raw = np.clip(raw, np.iinfo(dtype).min, np.iinfo(dtype).max)
  values = raw.astype(dtype)
  content = pictures.tiff(values[..., np.newaxis])
  decoded = pictures.decode(content, 6, images.Reading(pixel_range=(low, low + width)))
  share = (values.astype(np.float64) - low) / width
  exact = 255 * np.clip(share, 0, 1)
  # The nearest whole number, of a half either.
  np.testing.assert_allclose(decoded[..., 0], exact, rtol=0, atol=0.5 + 1e-9)
  np.testing.assert_array_equal(decoded[..., 0], decoded[..., 2])
  rows, _ = _numbers(values, inverted=inverted).scaled(0, 6, (low, low + width))
  found = 255.0 - rows[..., 0] if inverted else rows[..., 0]
  np.testing.assert_allclose(found, exact, rtol=0, atol=0.5 + 1e-9)


@pytest.mark.parametrize('ends', [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0)])
def test_stated_range_must_be_one(ends):
  with pytest.raises(ValueError, match='two finite numbers, the first one smaller'):
    images.Reading(pixel_range=ends)
