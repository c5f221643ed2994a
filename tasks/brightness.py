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
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from tasks import opening

Range = tuple[float, float]

WHOLE, FLOATING, UNITS = 'whole', 'floating', 'units'
# Keys of ranges that are measured, if there is no other.
MEASURED = (WHOLE, FLOATING, UNITS)
_FULL = {
  WHOLE: tuple(2.0**bits - 1 for bits in (8, 10, 12, 14, 16, 24, 32)),
  FLOATING: (1.0, 255.0, 65535.0),
  UNITS: (),
}
_TOLERANCE = 0.01
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
  """

  key: str
  low: float
  high: float
  stated: bool = False


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
    ends = self.slope * np.array(measured(self.values), np.float64) + self.intercept
    return Summary(self.key, float(min(ends)), float(max(ends)))

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


def measured(values: np.ndarray) -> Range:
  """Returns the range of a file's pixels without a few of them.

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
    return 0.0, 0.0
  ordered = _without_marker(ordered)
  low, high = _ends(ordered)
  above = ordered[np.searchsorted(ordered, low, 'right') :]
  if len(above) >= (1 - _UNFILLED) * len(ordered):
    second = float(above[0])
    if (low + high) / 2 < second < high:
      low = second
  return low, high


def _ends(ordered: np.ndarray) -> Range:
  """Returns the ends of sorted numbers, without a few."""
  few = len(ordered) // _PIXELS
  return float(ordered[few]), float(ordered[-1 - few])


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
    raise opening.PictureError('a number is infinite or not a number (NaN)')


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
  return ranges


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
