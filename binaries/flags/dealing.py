"""How training examples are dealt to clients: the flags, and what they build."""

from absl import flags
import numpy as np

from binaries.flags import own_data
from binaries.flags import paths
from tasks import ham10000
from tasks import registry
from tasks import task_types
from tasks import validation
from tff_ssl.evaluation import feature_sets
from tff_ssl.export import encoder_file
from tff_ssl.partition import classes
from tff_ssl.partition import partitions
from tff_ssl.partition import shares
from tff_ssl.partition import skew
from tff_ssl.partition import spec
from tff_ssl.simulation import client_data

PARTITION = flags.DEFINE_string(
  'partition',
  None,
  'Clients: iid:examples=4, dirichlet:alpha=0,examples=4, shares:alpha=0.1,clients=5 '
  '(of one size: ,balanced=true), skew:beta=0.5,clients=5, '
  'classes:per_client=2,clients=5, quantity:alpha=0.5,clients=10, '
  'clusters:clients=5 (,whiten=true,balanced=true), rotation:clients=5, '
  'style:clients=5 (these three mixed: ,alpha=0.1 or ,beta=0.5), or client (or case): '
  'each client of the data, or each case if they name no clients. By default client if '
  'the task has clients or cases, iid:examples=4 if nothing is labelled, and otherwise '
  'dirichlet:alpha=0,examples=4. For ham10000 also hospital: where a photograph was '
  'taken, according to Dataverse.',
)
# The partition by a column of HAM10000's metadata, and the tasks that have these.
HOSPITAL = 'hospital'
_WITH_HOSPITALS = ('ham10000', 'ham10000_records')
ENCODER = paths.define(
  'partition_encoder',
  None,
  'The encoder.keras of a run, next to its encoder.json: the partition clusters its '
  'features.',
)

MOST = flags.DEFINE_integer(
  'examples_per_client_at_most',
  None,
  'Clients with more training examples keep this many, at random; by default all.',
  lower_bound=1,
)
VALIDATION = flags.DEFINE_float(
  'validation',
  None,
  'Share of the training examples (cases, or clients if the data name them) to hold '
  'out as a validation split. No client holds it, and it is evaluated in addition to '
  'the test split. By default only the validation split of the data, if they have one.',
)
# Kinds of partitions, among the programs' defaults, that need labels.
_BY_LABEL = (shares.SharesConfig, skew.SkewConfig, classes.ClassesConfig)
# Stream of the seed that draws a client's kept examples, separate from the partition's.
_KEEPING = 1


def text(task: task_types.Task) -> str:
  """Returns the partition's specification: the flag, or the task's default."""
  if PARTITION.value == HOSPITAL:
    # The holders that `holders` names.
    return 'case'
  if PARTITION.value:
    return PARTITION.value
  if task.train.client is not None:
    return 'client'
  if task.case_level:
    return 'case'
  if not np.any(task.train.label >= 0):
    return 'iid:examples=4'
  return 'dirichlet:alpha=0,examples=4'


def natural(outline: registry.Outline, default: object) -> str | None:
  """Returns the default partition if it follows from the data.

  Args:
    outline: Outline of the task.
    default: Default of the program; None: it has none.

  Returns:
    'client' if the data name clients. If nothing is labelled and the program's default
    needs labels: 'case', or IID with as many clients. None: the program's default
    remains.
  """
  if outline.has_clients:
    return 'client'
  if outline.has_labels or default is None:
    return None
  config = spec.parse(str(default))
  if not isinstance(config, _BY_LABEL):
    return None
  return 'case' if outline.has_cases else f'iid:clients={config.clients}'


def check() -> None:
  """Checks the flags as far as possible without data.

  Raises:
    ValueError: If the specification is malformed, or the encoder is missing or would
      do nothing.
  """
  name = flags.FLAGS['task'].value
  if PARTITION.value == HOSPITAL and name not in _WITH_HOSPITALS:
    raise ValueError(
      f'--partition={HOSPITAL} is given with --task={name}; it is for '
      f'{", ".join(_WITH_HOSPITALS)} only.'
    )
  if needs_features():
    if not ENCODER.value:
      raise ValueError(
        f'--partition={PARTITION.value} is given without --partition_encoder; it must '
        'name the encoder.keras of a run.'
      )
  elif ENCODER.value is not None:
    raise ValueError(
      '--partition_encoder is given without a --partition of clusters; it is for such '
      'partitions only.'
    )


def needs_features() -> bool:
  """Returns whether the flag's partition is made from an encoder's features."""
  if PARTITION.value is None or PARTITION.value == HOSPITAL:
    return False
  return spec.needs_features(spec.parse(PARTITION.value))


def holders(
  task: task_types.Task, examples: task_types.Examples
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Returns who holds each example by nature, and their names in order.

  Args:
    task: The task of the run.
    examples: The examples of one of its splits.

  Raises:
    ValueError: If hospitals are asked for, but the metadata do not name them.
  """
  if PARTITION.value != HOSPITAL:
    return examples.holder, task.holder_names
  follow_links = bool(own_data.FOLLOW_LINKS.value)
  places = ham10000.hospitals(flags.FLAGS['data_dir'].value, follow_links)
  names, numbers = np.unique(places, return_inverse=True)
  return numbers[examples.example_id].astype(np.int64), tuple(names.tolist())


def hold_out(task: task_types.Task) -> task_types.Task:
  """Returns the task with the validation split that the flag asks for, if any."""
  share = VALIDATION.value
  return task if share is None else validation.hold_out(task, share)


def build(task: task_types.Task, seed: int) -> partitions.Partition:
  """Deals the training examples to clients.

  Args:
    task: Provides the examples.
    seed: Seed of every draw.

  Returns:
    The partition.

  Raises:
    ValueError: If it does not fit the examples, or the encoder cannot be used.
  """
  config = spec.parse(text(task))
  encoded = _encode(task) if spec.needs_features(config) else None
  held_by, names = holders(task, task.train)
  partition = spec.build(config, task.train.label, held_by, seed, encoded, names)
  if MOST.value is None:
    return partition
  rng = np.random.default_rng([seed, _KEEPING])
  return partitions.at_most(partition, MOST.value, rng)


def build_client_data(
  task: task_types.Task, partition: partitions.Partition, labelled: bool = False
) -> client_data.ArrayClientData:
  """Returns the clients' data: every field, with images changed by the partition.

  Args:
    task: Provides the training examples.
    partition: The result of `build`.
    labelled: Whether clients have the labels.
  """
  return client_data.ArrayClientData(
    held(task, task.train, partition, source_of(task)).fields,
    task.train.example_id,
    partition,
    label=task.train.label if labelled else None,
  )


def source_of(task: task_types.Task) -> np.ndarray | None:
  """Returns the source of each training example; see `spec.source_of`."""
  # Read by name: `common`, which defines it, imports this module.
  seed = flags.FLAGS['seed'].value
  return spec.source_of(text(task), len(task.train.label), seed)


def held(
  task: task_types.Task,
  examples: task_types.Examples,
  partition: partitions.Partition,
  source: np.ndarray | None,
) -> task_types.Examples:
  """Returns examples as the clients hold them: some partitions change images.

  Args:
    task: The task of the run.
    examples: The examples of one of its splits.
    partition: Client id -> positions among the examples.
    source: int [n], the source of each; None if `source_of` returns None.

  Raises:
    ValueError: If the partition changes images, but there are none.
  """
  if not spec.changes_images(text(task)):
    return examples
  images = spec.client_images(text(task), examples.image, partition, source)
  return examples.with_fields(image=images)


def _encode(task: task_types.Task) -> np.ndarray:
  """Returns the features of the training images, float32 [n, d]."""
  try:
    encoder = encoder_file.read(ENCODER.value)
  except (OSError, ValueError) as error:
    raise ValueError(
      f'--partition_encoder is {ENCODER.value!r}, which cannot be read as an '
      f'encoder.keras: {error}'
    ) from error
  if encoder.input_shape[1:] != task.shapes[task.field]:
    raise ValueError(
      f'--partition_encoder={ENCODER.value} takes images of shape '
      f'{encoder.input_shape[1:]}, but those of {task.name} are of shape '
      f'{task.shapes[task.field]}.'
    )
  return feature_sets.encode(encoder, task.train[task.field])
