"""scikit-learn's bundled digits: 1,797 handwritten digits, 8 x 8, no download."""

import dataclasses

import numpy as np

from tasks import array_tasks
from tasks import images
from tasks import splits
from tasks import task_types

_TEST_FRACTION = 0.2
# The split is fixed, whatever the seed of a run.
_SPLIT_SEED = 0
_LARGEST_VALUE = 16


def load_halves(image_size: int | None = None) -> task_types.Task:
  """Loads the digits as two modalities: upper halves are `left`, lower ones `right`.

  Args:
    image_size: Height and width of a whole digit, in pixels, even; None for 8.

  Raises:
    ValueError: The size is odd.
  """
  if image_size is not None and image_size % 2:
    raise ValueError(
      f'image_size is {image_size}; it must be even, because the digits are cut into '
      'halves.'
    )
  whole = load(image_size)

  def halves(examples: task_types.Examples) -> task_types.Examples:
    left, right = np.split(examples.image, 2, axis=1)
    return dataclasses.replace(examples, fields={'left': left, 'right': right})

  return dataclasses.replace(
    whole, name='digits_halves', train=halves(whole.train), test=halves(whole.test)
  )


def load(image_size: int | None = None) -> task_types.Task:
  """Loads the digits.

  Args:
    image_size: Height and width, in pixels; None for 8.

  Returns:
    The task, greyscale; a fifth of every digit is the test split.
  """
  # Imported here: it takes seconds, for which the other tasks need not wait.
  from sklearn import datasets

  digits = datasets.load_digits()
  pixels = np.rint(digits.images * (255 / _LARGEST_VALUE)).astype(np.uint8)
  examples = array_tasks.numbered(
    {task_types.IMAGE: images.resize(pixels[..., np.newaxis], image_size)},
    digits.target,
  )
  held_out = splits.hold_out_cases(
    examples.case, examples.label, _TEST_FRACTION, _SPLIT_SEED
  )
  names = [str(name) for name in digits.target_names]
  return array_tasks.split_task('digits', names, examples, held_out)
