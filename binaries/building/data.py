"""What a run reads, and how training examples are dealt to clients."""

import os
import pathlib
import sys

import numpy as np

from binaries.config import data as data_lib
from binaries.config import run_config
from binaries.config import task_defaults
from tasks import ham10000
from tasks import intake
from tasks import registry
from tasks import subset
from tasks import task_types
from tasks import validation
from tff_ssl.evaluation import feature_sets
from tff_ssl.export import encoder_file
from tff_ssl.partition import partitions
from tff_ssl.partition import spec
from tff_ssl.runs import class_names
from tff_ssl.simulation import client_data
from tff_ssl.storage import files

# Stream of the seed that draws a client's kept examples, separate from the partition's.
_AT_MOST = 1


def load_task(config: run_config.RunConfig) -> task_types.Task:
  """Loads the task of a run, and prints what it holds.

  Raises:
    ValueError: If it cannot be read, or `strict` is set and something is lost.
  """
  data = config.data
  task = registry.load(
    config.task,
    data.dir,
    data.image_size,
    data.download,
    seed=0,
    scaling=data.scaling,
    limits=subset.Limits(data.examples, data.test_examples),
    reading=task_defaults.reading(data),
    **task_defaults.arguments(data),
  )
  if data.validation is not None:
    task = validation.hold_out(task, data.validation)
  print(task.describe())
  for line in task.report:
    print(f'  {line}')
  for warning in task.warnings():
    print(f'Warning: {warning}', file=sys.stderr, flush=True)
  if data.strict and task.intake is not None:
    task.intake.check()
  return task


def write_facts(task: task_types.Task, folder: str | os.PathLike[str]) -> None:
  """Writes the names of a task's classes and what became of its files, if it has any.

  Args:
    task: The task.
    folder: The run folder.
  """
  if task.label_names:
    class_names.write(folder, task.label_names)
  if task.intake is not None:
    files.write_json(pathlib.Path(folder) / intake.FILE, task.intake.as_json())


def cohort_size(config: run_config.RunConfig, num_clients: int) -> int:
  """Returns the size of a cohort, given the number of all clients."""
  if config.participation is not None:
    return max(1, round(config.participation * num_clients))
  wanted = config.clients_per_round
  return min(wanted, num_clients) if config.all_if_fewer else wanted


def partition_text(config: run_config.RunConfig, task: task_types.Task) -> str:
  """Returns the partition's specification: the run's, or the task's default."""
  if config.partition == data_lib.HOSPITAL:
    # The holders that `holders` names.
    return 'case'
  if config.partition:
    return config.partition
  if task.train.client is not None:
    return 'client'
  if task.case_level:
    return 'case'
  if not np.any(task.train.label >= 0):
    return 'iid:examples=4'
  return 'dirichlet:alpha=0,examples=4'


def holders(
  config: run_config.RunConfig, task: task_types.Task, examples: task_types.Examples
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Returns who holds each example by nature, and their names in order.

  Args:
    config: The run.
    task: The task of the run.
    examples: The examples of one of its splits.

  Raises:
    ValueError: If hospitals are asked for, but the metadata do not name them.
  """
  if config.partition != data_lib.HOSPITAL:
    return examples.holder, task.holder_names
  names, numbers = np.unique(hospitals(config), return_inverse=True)
  return numbers[examples.example_id].astype(np.int64), tuple(names.tolist())


def hospitals(config: run_config.RunConfig) -> np.ndarray:
  """Returns the hospital of each photograph of HAM10000, by example id."""
  data = config.data
  if data.dir is None:
    raise ValueError(f'data_dir is not given; it must be the folder of {config.task}.')
  return ham10000.hospitals(data.dir, bool(data.follow_links))


def partition(
  config: run_config.RunConfig, task: task_types.Task
) -> partitions.Partition:
  """Deals the training examples to clients; returns the partition.

  Args:
    config: The run, whose seed is that of every draw.
    task: Provides the examples.

  Raises:
    ValueError: If it does not fit the examples, or the encoder cannot be used.
  """
  kind = spec.parse(partition_text(config, task))
  encoded = _encode(config, task) if spec.needs_features(kind) else None
  held_by, names = holders(config, task, task.train)
  seed = config.random_seed
  dealt = spec.build(kind, task.train.label, held_by, seed, encoded, names)
  if config.data.at_most is None:
    return dealt
  rng = np.random.default_rng([seed, _AT_MOST])
  return partitions.at_most(dealt, config.data.at_most, rng)


def client_data_of(
  config: run_config.RunConfig,
  task: task_types.Task,
  dealt: partitions.Partition,
  labelled: bool = False,
) -> client_data.ArrayClientData:
  """Returns the clients' data: every field, with images changed by the partition.

  Args:
    config: The run.
    task: Provides the training examples.
    dealt: The result of `partition`.
    labelled: Whether clients have the labels.
  """
  examples = client_examples(config, task, task.train, dealt, source_of(config, task))
  return client_data.ArrayClientData(
    examples.fields,
    task.train.example_id,
    dealt,
    label=task.train.label if labelled else None,
  )


def source_of(config: run_config.RunConfig, task: task_types.Task) -> np.ndarray | None:
  """Returns the source of each training example; see `spec.source_of`."""
  text = partition_text(config, task)
  return spec.source_of(text, len(task.train.label), config.random_seed)


def client_examples(
  config: run_config.RunConfig,
  task: task_types.Task,
  examples: task_types.Examples,
  dealt: partitions.Partition,
  source: np.ndarray | None,
) -> task_types.Examples:
  """Returns examples as the clients hold them: some partitions change images.

  Args:
    config: The run.
    task: The task of the run.
    examples: The examples of one of its splits.
    dealt: Client id -> positions among the examples.
    source: int [n], the source of each; None if `source_of` returns None.

  Raises:
    ValueError: If the partition changes images, but there are none.
  """
  text = partition_text(config, task)
  if not spec.changes_images(text):
    return examples
  changed = spec.client_images(text, examples.image, dealt, source)
  return examples.with_fields(image=changed)


def _encode(config: run_config.RunConfig, task: task_types.Task) -> np.ndarray:
  """Returns the features of the training images, float32 [n, d]."""
  path = config.data.partition_encoder
  if path is None:
    raise ValueError('partition_encoder is None; it must name an encoder.keras.')
  try:
    encoder = encoder_file.read(path)
  except (OSError, ValueError) as error:
    raise ValueError(
      f'partition_encoder of --data is {path!r}, which cannot be read as an '
      f'encoder.keras: {error}'
    ) from error
  if encoder.input_shape[1:] != task.shapes[task.field]:
    raise ValueError(
      f'partition_encoder of --data is {path!r}, which takes images of shape '
      f'{encoder.input_shape[1:]}, but those of {task.name} are of shape '
      f'{task.shapes[task.field]}.'
    )
  return feature_sets.encode(encoder, task.train[task.field])
