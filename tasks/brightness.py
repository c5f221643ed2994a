"""The range of numbers from black to white, for pictures of more than 8 bits.

A file says how many bits a number takes, not how many are used: scanners leave 12 bits
in 16, and floating-point numbers have any scale. A range is therefore stated by the
user, by the files (DICOM), or measured over all files of a data set, so that the same
number has the same brightness in each.

A measured range does not depend on a few pixels. Of each file, the thousandth of the
pixels that is brightest and the one that is darkest are ignored, and so is a burnt-in
marker: at most 2 % of the pixels, most of them of one number, more than twice as bright
as all others. Of 100 files, one is ignored at each end. The range is then the least
usual one that holds the rest, with a tolerance of 1 %: 8, 10, 12, 14, 16, 24 or 32
bits; for floating-point numbers 0..1, 0..255 or 0..65535, beyond that from 0 to the
largest. In units of any scale, as of DICOM, no range is usual: it is from 0 to the
largest. If numbers are negative, as in CT, it is the range of the rest itself.

If the files fill less than a tenth of that range, as those of thermal cameras do, it
would leave 25 of 256 greys: then it is their own ends. These ignore dead pixels and
what stands for no data: numbers beyond a gap of more than half of the range, most of
which are one number. Numbers above 255 that begin near 0 fill a quarter of 10 to 16
bits, so that their range is a usual one.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from tasks import image_opening
from tff_ssl.computing import kinds

Range = tuple[float, float]
# Ranges with the keys of their files.
Ranges = tuple[tuple[str, Range], ...]

WHOLE, FLOATING, UNITS = 'whole', 'floating', 'units'
# Keys of ranges that are measured, if there is no other.
MEASURED = (WHOLE, FLOATING, UNITS)
_FULL = {
  WHOLE: tuple(2.0**bits - 1 for bits in (8, 10, 12, 14, 16, 24, 32)),
  FLOATING: (1.0, 255.0, 65535.0),
  UNITS: (),
}
_TOLERANCE = 0.01
# Share of a range below which files have their own ends, and below which it is said.
_FILLED, _LITTLE = 0.1, 0.25
# One of so many files differs from most.
_MOST = 10
# One of so many pixels of a file, or files of a data set, is ignored at each end.
_PIXELS, _FILES = 1000, 100
# Share of the pixels that a marker has at most; of those that no scanner filled, which
# have a number far below all others.
_MARKER, _UNFILLED = 0.02, 0.5
# Pixels of a file that are looked at, evenly spread.
_SAMPLE = 2**20


@dataclasses.dataclass(frozen=True)
class Summary:
  """The range of one file.

  Attributes:
    key: Files with the same key have one range: one of `MEASURED`, or a name for a
      series of files that state their range.
    low: The smallest number.
    high: The largest number.
    stated: Whether the file says so.
    own: Both without dead pixels and what stands for no data, if they were measured.
  """

  key: str
  low: float
  high: float
  stated: bool = False
  own: Range | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Numbers:
  """The numbers of a picture, before they are brightness.

  Attributes:
    values: [height, width, channels], of any type of numbers. Of 2 or 4 channels the
      last one is opacity, uint16.
    key: See `Summary`.
    slope: What the numbers mean is `slope` x number + `intercept`.
    intercept: See there.
    stated: The range that the file states, of what the numbers mean; None: none.
    inverted: Whether the smallest number is white.
    notes: What must be said of the file.
  """

  values: np.ndarray
  key: str
  slope: float = 1.0
  intercept: float = 0.0
  stated: Range | None = None
  inverted: bool = False
  notes: tuple[str, ...] = ()

  def summary(self) -> Summary:
    """Returns the range that the file states, or else that of its pixels.

    Raises:
      PictureError: A number is not finite.
    """
    if self.stated is not None:
      return Summary(self.key, *self.stated, stated=True)
    ends, own = (
      sorted(self.slope * end + self.intercept for end in each)
      for each in measured(self.values)
    )
    return Summary(self.key, ends[0], ends[1], own=(own[0], own[1]))

  def scaled(self, top: int, bottom: int, ends: Range) -> tuple[np.ndarray, int]:
    """Returns rows as brightness, and how many pixels are outside of the range.

    Args:
      top: The first row.
      bottom: The row after the last one.
      ends: What is black and what is white.

    Returns:
      uint8, of the shape of the rows; and a number.

    Raises:
      PictureError: A number is not finite.
    """
    low, high = ends
    # One band of rows: whole pictures would take eight bytes a number.
    rows = self.values[top:bottom]
    colours = rows[..., :-1] if has_opacity(rows) else rows
    values = colours.astype(np.float64) * self.slope + self.intercept
    _check_finite(values)
    beyond = np.any((values < low) | (values > high), axis=2)
    bright = np.clip(np.rint((values - low) * (255 / (high - low))), 0, 255)
    bright = (255 - bright if self.inverted else bright).astype(np.uint8)
    if has_opacity(rows):
      bright = np.concatenate([bright, (rows[..., -1:] >> 8).astype(np.uint8)], axis=2)
    return bright, int(np.count_nonzero(beyond))


def key_of(values: np.ndarray) -> str:
  """Returns the key of numbers whose file states no range."""
  return FLOATING if np.issubdtype(values.dtype, np.floating) else WHOLE


def measured(values: np.ndarray) -> tuple[Range, Range]:
  """Returns the range of a file's pixels without a few of them, and its own ends.

  Args:
    values: As in `Numbers`.

  Raises:
    PictureError: A number is not finite.
  """
  # What is not finite is the smallest or the largest.
  _check_finite(np.array([np.min(values), np.max(values)], np.float64))
  step = max(1, int(np.ceil(np.sqrt(values.shape[0] * values.shape[1] / _SAMPLE))))
  sample = values[::step, ::step]
  if has_opacity(values):
    # What nobody sees does not matter.
    sample = sample[sample[..., -1] > 0][..., :-1]
  ordered = np.sort(sample, axis=None)
  if not len(ordered):
    return (0.0, 0.0), (0.0, 0.0)
  own = _own(ordered)
  ordered = _without_marker(ordered)
  low, high = _ends(ordered)
  above = ordered[np.searchsorted(ordered, low, 'right') :]
  if len(above) >= (1 - _UNFILLED) * len(ordered):
    second = float(above[0])
    if (low + high) / 2 < second < high:
      low = second
  return (low, high), own


def _ends(ordered: np.ndarray) -> Range:
  """Returns the ends of sorted numbers, without a few."""
  few = len(ordered) // _PIXELS
  return float(ordered[few]), float(ordered[-1 - few])


def _own(ordered: np.ndarray) -> Range:
  """Returns the ends of sorted numbers without dead pixels and those of no data."""
  few = len(ordered) // _PIXELS
  ordered = ordered[few : len(ordered) - few].astype(np.float64)
  most = _MARKER * len(ordered)
  while ordered[0] < ordered[-1]:
    gaps = np.diff(ordered)
    place = int(np.argmax(gaps))
    if 2 * gaps[place] <= ordered[-1] - ordered[0]:
      break
    parts = ordered[: place + 1], ordered[place + 1 :]
    small, large = sorted(parts, key=len)
    same = np.max(np.unique(small, return_counts=True)[1])
    is_one = 2 * same >= len(small)
    if is_one and (len(small) <= most or (same > 1 and large[0] < large[-1])):
      ordered = large
    elif large[0] == large[-1] and small[0] < small[-1]:
      ordered = small
    else:
      break
  return float(ordered[0]), float(ordered[-1])


def _without_marker(ordered: np.ndarray) -> np.ndarray:
  """Returns sorted numbers without those of a burnt-in marker.

  Its edges may have numbers in between, so most of it has to have one number.
  """
  low, high = _ends(ordered)
  count = np.searchsorted(ordered, (min(low, 0.0) + high) / 2, 'right')
  bright = ordered[count:]
  is_marker = len(bright) <= _MARKER * len(ordered)
  is_marker &= 2 * np.count_nonzero(bright == high) >= len(bright)
  return ordered[:count] if count and is_marker else ordered


def has_opacity(values: np.ndarray) -> bool:
  """Returns whether the last channel of numbers is opacity; see `Numbers`."""
  return values.shape[2] in (2, 4)


def _check_finite(values: np.ndarray) -> None:
  if not np.all(np.isfinite(values)):
    raise image_opening.PictureError('a number is infinite or not a number (NaN)')


def of_data_set(summaries: Sequence[Summary]) -> dict[str, Range]:
  """Returns one range for each key.

  Args:
    summaries: The ranges of all files.
  """
  ranges = {}
  for key in sorted({each.key for each in summaries}):
    of_key = [each for each in summaries if each.key == key]
    lows = np.sort([each.low for each in of_key])
    highs = np.sort([each.high for each in of_key])
    if all(each.stated for each in of_key):
      # The window of the middle slice, if an operator moved it within a series.
      place = len(of_key) // 2
      ranges[key] = _apart(float(lows[place]), float(highs[place]))
      continue
    ignored = len(of_key) // _FILES
    low, high = float(lows[ignored]), float(highs[len(highs) - 1 - ignored])
    ranges[key] = _usual(low, high, _FULL[key])
    own, (black, white) = _own_ends(of_key, ignored), ranges[key]
    if 0 < own[1] - own[0] < _FILLED * (white - black):
      ranges[key] = own
  return ranges


def shown(ends: Range, summaries: Sequence[Summary] = ()) -> str:
  """Returns a range as its flag, and how little of it most of its files fill."""
  text = f'--data=pixel_range={kinds.value_text(ends)}'
  own = _own_ends(summaries, -(-len(summaries) // _MOST))
  share = (own[1] - own[0]) / (ends[1] - ends[0])
  if not 0 < share < _LITTLE:
    return text
  return f'{text}; most of them fill {share:.1%} of that range: {shown(own)}'


def _own_ends(summaries: Sequence[Summary], ignored: int) -> Range:
  """Returns the own ends of files of several numbers, without some at each end."""
  own = [each.own for each in summaries if each.own and each.own[0] < each.own[1]]
  if not own:
    return 0.0, 0.0
  lows, highs = np.sort(own, axis=0).T
  place = min(ignored, (len(own) - 1) // 2)
  low, high = float(lows[place]), float(highs[-1 - place])
  # A person has to type them: of four digits, but whole numbers stay as they are.
  digits = max(0, 3 - int(np.floor(np.log10(high - low)))) if high > low else 0
  return round(low, digits), round(high, digits)


def of_several(summaries: Sequence[Summary]) -> list[str]:
  """Returns the keys whose range depends on more than one file, sorted.

  They are those that are measured, and those of a series whose files state different
  ranges.

  Args:
    summaries: The ranges of all files.
  """
  ends: dict[str, set[Range]] = {}
  for each in summaries:
    ends.setdefault(each.key, set()).add((each.low, each.high))
  return sorted(key for key in ends if key in MEASURED or len(ends[key]) > 1)


def _usual(low: float, high: float, usual: Sequence[float]) -> Range:
  """Returns the least usual range that holds numbers, or their own."""
  if low < -_TOLERANCE * max(high, 0.0):
    return _apart(low, high)
  return next(
    ((0.0, full) for full in usual if high <= (1 + _TOLERANCE) * full),
    _apart(0.0, high),
  )


def _apart(low: float, high: float) -> Range:
  return low, high if high > low else low + 1.0
