"""Transfer: a task other than the run's own, on which an encoder is evaluated."""

import dataclasses

import numpy as np

from binaries.config import checks
from binaries.config import evaluations
from binaries.config import run_config
from binaries.config import task_defaults
from tasks import images
from tasks import provenance
from tasks import registry
from tasks import task_types


def check(config: run_config.RunConfig, added: evaluations.Additions) -> None:
  """Checks a transfer, as far as possible without data.

  Args:
    config: The run of the encoder.
    added: What is evaluated.

  Raises:
    ValueError: If there is no such task, one of both tasks has no images, or a folder
      of data does nothing.
  """
  if added.transfer is not None:
    checks.check_task('transfer', added.transfer)
  for task in (added.transfer, config.task) if added.transfer else ():
    if task in (*registry.TABLES, *registry.PAIRS):
      raise ValueError(
        f'--transfer={added.transfer} is given for a run of the task {config.task}; '
        f'both must have one image an example, which {task} has not.'
      )
  if added.new_only and added.transfer not in registry.OF_FILES:
    raise ValueError(
      f'--new_only is given with --transfer={added.transfer}; it is for '
      f'{", ".join(registry.OF_FILES)} only, whose examples a run knows.'
    )
  takers = (*registry.DOWNLOADED, *registry.OF_FILES)
  if added.transfer_dir is not None and added.transfer not in takers:
    raise ValueError(
      f'--transfer_dir is given with --transfer={added.transfer}; it is for '
      f'{", ".join(takers)} only.'
    )


def load(
  config: run_config.RunConfig,
  name: str,
  folder: str | None,
  image_shape: tuple[int, int, int],
  files: provenance.Files | None = None,
) -> task_types.Task:
  """Loads a task in the shape that an encoder takes, and prints what it holds.

  Args:
    config: The run of the encoder.
    name: Name of the task.
    folder: Where its data are; see `Data.dir`.
    image_shape: Height, width and channels of the encoder's images.
    files: Of the run's own task, whose ranges of brightness hold.

  Raises:
    ValueError: If its images cannot get this shape, or its data are missing.
  """
  height, width, _ = image_shape
  if height != width:
    raise ValueError(
      f'The encoder takes images of {height} x {width}; --transfer resizes to squares '
      'only.'
    )
  # Data that have grown since a run are read as the run read them, and any pictures as
  # its encoder knows them.
  own = task_defaults.arguments(config.data) if name == config.task else {}
  reading = images.AS_USUAL
  if name in registry.OF_PICTURES:
    of_run = files.ranges if files else ()
    reading = dataclasses.replace(task_defaults.reading(config.data), of_run=of_run)
  task = registry.load(
    name,
    folder,
    height,
    config.data.download,
    seed=0,
    reading=reading,
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
