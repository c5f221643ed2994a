"""Which pixels of a mask's file show the object: a rule for each kind of file.

In this order, the first kind that fits:

1. Transparency that varies: what is at least half opaque.
2. Two numbers, the larger one at least twice the smaller: the larger one, unless they
   may be labels of two objects, as 7 and 40.
3. Labels, in areas: a palette of colours; at most 64 colours with black among them; at
   most 64 whole numbers up to 126. All of them but black, or 0, are objects, except the
   void value of PASCAL VOC: 255 (65535 of 16 bits), the colour (224, 224, 192). In a
   palette without black, the first entry is background.
4. Two colours: the brighter one.
5. Anything else is brightness: at least half of what the file's bits can hold, 128 of
   8 bits. JPEG, whose values are never exact, is always of this kind.

A single number is the whole object, unless it is 0.
"""

import dataclasses

import numpy as np
from PIL import Image

from tasks import brightness
from tasks import colour
from tasks import high_bit_depth

_MOST_VALUES, _MOST_LABEL, _VOIDS = 64, 126, (255, 65535)
# Bytes of a pixel of the copies that are made here, for colours.
COPIES = 32
# Red, green and blue as the bytes of one number.
_CODE = np.array([2**16, 2**8, 1], np.int32)
_VOID_CODE = int(_CODE @ np.array([224, 224, 192]))
# Labels come in areas: of neighbouring pixels with a label, this share has the same.
_ALIKE = 0.4
_LOSSY = ('JPEG', 'MPO')


def of_object(content: bytes, image: Image.Image) -> np.ndarray:
  """Returns which pixels show the object, bool [height, width].

  Args:
    content: The file.
    image: The same, opened but not loaded.

  Raises:
    PictureError: A number is not finite.
  """
  exact = image.format not in _LOSSY
  if high_bit_depth.is_deep(image):
    numbers = high_bit_depth.numbers(content, image)
    values = numbers.values
    if brightness.has_opacity(values):
      deep_opacity = values[..., -1]
      if np.min(deep_opacity) != np.max(deep_opacity):
        return deep_opacity >= 2**15
      values = values[..., :-1]
    # Refuses what is not finite. What the bits can hold, however little a mask fills.
    whole = dataclasses.replace(numbers.summary(), own=None)
    ends = brightness.of_data_set([whole])[numbers.key]
    levels = np.max(values, axis=2)
    if numbers.inverted:
      levels = np.max(levels) - levels
    return _of_levels(levels, sum(ends) / 2, exact)
  full = (
    None
    if high_bit_depth.has_unknown_channel(content, image)
    else colour.with_opacity(image)
  )
  if full is not None:
    opacity = np.asarray(full.getchannel('A'))
    if np.min(opacity) != np.max(opacity):
      return opacity >= 128
  if image.mode == 'P':
    return _of_palette(image)
  if image.mode in ('1', 'L', 'LA', 'La'):
    grey = image.convert('LA') if image.mode == 'La' else image
    return _of_levels(np.asarray(grey.convert('L')), 127.5, exact)
  return _of_colours(np.asarray(image.convert('RGB')), exact)


def _of_palette(image: Image.Image) -> np.ndarray:
  """Returns the object of a palette: by its labels, unless all its colours are grey."""
  indices = np.asarray(image)
  used = np.flatnonzero(np.bincount(indices.ravel(), minlength=256))
  table = np.zeros([256, 3], np.uint8)
  listed = np.array(image.getpalette('RGB'), np.uint8).reshape(-1, 3)
  table[: len(listed)] = listed
  if np.all(table[used] == table[used, :1]):
    return _of_levels(table[indices, 0], 127.5, exact=True)
  black = used[np.all(table[used] == 0, axis=1)]
  background = black[0] if len(black) == 1 else 0
  return (indices != background) & ~np.isin(indices, _VOIDS)


def _of_colours(colours: np.ndarray, exact: bool) -> np.ndarray:
  """Returns the object of uint8 [height, width, 3]."""
  levels = np.max(colours, axis=2)
  if np.all(colours == colours[..., :1]):
    return _of_levels(levels, 127.5, exact)
  codes = colours.astype(np.int32) @ _CODE
  values = np.unique(codes) if exact else ()
  if 0 < len(values) <= _MOST_VALUES and values[0] == 0 and _in_areas(codes):
    return (codes != 0) & (codes != _VOID_CODE)
  if len(values) == 2:
    return codes == max(values, key=_light)
  return levels >= 128


def _light(code: np.int32) -> float:
  """Returns the brightness of a colour, as Pillow has it."""
  red, green, blue = int(code) >> 16, (int(code) >> 8) & 255, int(code) & 255
  return 0.299 * red + 0.587 * green + 0.114 * blue


def _of_levels(levels: np.ndarray, half: float, exact: bool) -> np.ndarray:
  """Returns the object of one number a pixel, [height, width].

  Args:
    levels: The numbers.
    half: Half of what the file's bits can hold.
    exact: Whether the file's values are those that were written.
  """
  values = _few_values(levels) if exact else None
  if values is None:
    return levels > half
  if len(values) == 1:
    return np.full(levels.shape, bool(values[0]))
  are_labels = values[0] > 1 and values[-1] <= _MOST_LABEL
  if len(values) == 2 and values[0] <= values[1] / 2 and not are_labels:
    return levels == values[1]
  labels = [value for value in values if value not in _VOIDS]
  small = max(labels) <= _MOST_LABEL and all(value % 1 == 0 for value in labels)
  if labels[0] >= 0 and small and _in_areas(levels):
    void = np.isin(levels, _VOIDS)
    labelled = (levels > 0) & ~void
    # What is void lies around objects. Where it is the larger part, it is the object,
    # and the small numbers are its rim.
    if np.count_nonzero(void) < np.count_nonzero(labelled):
      return labelled
  return levels > half


def _few_values(levels: np.ndarray) -> np.ndarray | None:
  """Returns the different numbers, None if there are more than labels have."""
  if levels.dtype == np.uint8 or levels.dtype == bool:
    counts = np.bincount(levels.astype(np.uint8, copy=False).ravel(), minlength=256)
    values = np.flatnonzero(counts)
  else:
    values = np.unique(levels)
  return values if len(values) <= _MOST_VALUES else None


def _in_areas(labels: np.ndarray) -> bool:
  """Returns whether neighbouring pixels mostly have the same label, unlike noise."""
  alike = pairs = 0
  for one, other in (
    (labels[1:], labels[:-1]),
    (labels[:, 1:], labels[:, :-1]),
  ):
    alike += int(np.count_nonzero((one == other) & (one != 0)))
    pairs += int(np.count_nonzero((one != 0) | (other != 0)))
  return not pairs or alike >= _ALIKE * pairs
