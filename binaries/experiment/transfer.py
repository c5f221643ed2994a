"""Transfer: a task other than the run's own, on which an encoder is evaluated."""

import dataclasses

from absl import flags
import numpy as np

from binaries.flags import common
from binaries.flags import own_data
from binaries.flags import paths
from binaries.flags import reading
from tasks import images
from tasks import registry
from tasks import task_types

TASK = flags.DEFINE_enum(
  'transfer_task',
  None,
  registry.TASKS,
  "Data set on which the run's encoder is evaluated, in place of its own.",
)
_DATA_DIR = paths.define(
  'transfer_data_dir', None, 'Where its data are; like --data_dir.'
)
_DOWNLOAD = flags.DEFINE_bool('transfer_download', True, 'Like --download, for it.')
NAMES = ('transfer_task', 'transfer_data_dir', 'transfer_download')


def check() -> None:
  """Checks the flags, without data.

  Raises:
    ValueError: If one does nothing.
  """
  common.refuse_stray('transfer_data_dir', 'transfer_task', common.WITH_DATA_DIR)
  common.refuse_stray('transfer_download', 'transfer_task', common.DOWNLOADED)


def prefix() -> str:
  """Returns the prefix of the numbers' names; it is empty without a transfer."""
  return f'transfer/{TASK.value}/' if TASK.value else ''


def load(image_shape: tuple[int, int, int]) -> task_types.Task:
  """Loads the flags' task in the shape an encoder takes, and prints what it holds.

  Args:
    image_shape: Height, width and channels of the encoder's images.

  Raises:
    ValueError: If its images cannot get this shape, or its data are missing.
  """
  height, width, _ = image_shape
  if height != width:
    raise ValueError(
      f'The encoder takes images of {height} x {width}; --transfer_task resizes to '
      'squares only.'
    )
  # Data that have grown since a run are read as the run read them, and any pictures as
  # its encoder knows them.
  own = own_data.arguments() if TASK.value == common.TASK.value else {}
  usual = TASK.value not in registry.OF_PICTURES
  task = registry.load(
    TASK.value,
    _DATA_DIR.value,
    height,
    _DOWNLOAD.value,
    seed=0,
    reading=images.AS_USUAL if usual else reading.value(),
    **own,
  )
  task = fit(task, image_shape)
  print(f'transfer to {task.describe()}')
  for line in task.report:
    print(f'  {line}')
  return task


def fit(task: task_types.Task, image_shape: tuple[int, int, int]) -> task_types.Task:
  """Returns a task with images of the shape that an encoder takes.

  Args:
    task: Any task.
    image_shape: Height, width and channels of the encoder's images.

  Returns:
    The task itself, or the task with its single channel repeated, without a copy.

  Raises:
    ValueError: If the size differs, or if channels differ and cannot be repeated.
  """
  if task.image_shape == image_shape:
    return task
  if task.image_shape[:2] != image_shape[:2] or task.image_shape[2] != 1:
    raise ValueError(
      f'The task {task.name!r} has images of shape {task.image_shape}, but the encoder '
      f'takes {image_shape}; the sizes must be equal, and so must the channels, '
      'unless the task has only one.'
    )
  repeated = {
    split: examples.with_fields(
      image=np.broadcast_to(examples.image, (len(examples), *image_shape))
    )
    for split, examples in task.splits().items()
  }
  return dataclasses.replace(
    task,
    train=repeated['train'],
    test=repeated['test'],
    validation=repeated.get('validation'),
  )
