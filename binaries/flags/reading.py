"""The flags of how pictures and tables are read."""

from absl import flags

from binaries.flags import paths
from tasks import images

IMAGE_SIZE = flags.DEFINE_integer(
  'image_size', None, "Height and width of the images; by default the task's own."
)
_FIT = flags.DEFINE_enum(
  'fit',
  None,
  images.FITS,
  'How pictures become squares: cropped to the centre (crop, the default), with black '
  'bars (pad), or in other proportions (stretch).',
)
_PIXEL_RANGE = flags.DEFINE_list(
  'pixel_range',
  None,
  'Numbers that are black and white in pictures of more than 8 bits, as in -1000,400; '
  'by default what DICOM files state, or what is measured over all pictures.',
)
SCALING = paths.define(
  'scaling',
  None,
  'For tables: a CSV of column,center,scale by which features are scaled, or none: '
  'they stay as they are. By default they are standardised by the training examples, '
  'which a private run refuses.',
)
# Those that only tasks of picture files take.
NAMES = (_FIT.name, _PIXEL_RANGE.name)
WHERE_GIVEN = (*NAMES, SCALING.name)


def value() -> images.Reading:
  """Returns how picture files are read.

  Raises:
    ValueError: If `--pixel_range` is not two numbers, the first one smaller.
  """
  ends = None
  if _PIXEL_RANGE.value is not None:
    try:
      low, high = map(float, _PIXEL_RANGE.value)
    except ValueError:
      raise ValueError(
        f'pixel_range is {",".join(_PIXEL_RANGE.value)!r}; it must be two numbers, as '
        'in -1000,400.'
      ) from None
    ends = low, high
  return images.Reading(_FIT.value or images.CROP, ends)
