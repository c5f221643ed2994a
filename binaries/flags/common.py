"""The flags that all binaries that train or evaluate have in common.

Every binary builds frozen configurations from the same flags; no library sees a flag.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import contextlib
import sys

from absl import flags

from binaries.flags import dealing
from binaries.flags import own_data
from binaries.flags import paths
from binaries.flags import program
from binaries.flags import reading
from tasks import registry
from tasks import task_types
from tff_ssl.augment import multiview
from tff_ssl.encoders import network
from tff_ssl.encoders import registry as encoders
from tff_ssl.encoders import resnet
from tff_ssl.execution import contexts
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import partitions

TASK = flags.DEFINE_enum('task', 'digits', registry.TASKS, 'Data set.')
DATA_DIR = paths.define(
  'data_dir',
  None,
  'Where the data are: the TFDS folder (cifar10, cifar100, stl10), the folder or .tar '
  'file (ham10000, ham10000_records, emoji, cases, folder, tiny_imagenet), the .npz, '
  ".csv or .parquet file (features), or TFF's cache folder (gld23k).",
)
DOWNLOAD = flags.DEFINE_bool(
  'download', True, 'Whether TFDS may download a data set that is not prepared.'
)
ENCODER = flags.DEFINE_enum(
  'encoder', 'resnet8', encoders.NAMES, 'Encoder; for tabular tasks mlp by default.'
)
WIDTH = flags.DEFINE_float(
  'encoder_width', 1.0, "Factor on the encoder's channels or units."
)
STEM = flags.DEFINE_enum(
  'encoder_stem', 'cifar', resnet.STEMS, 'First layers, for small or large images.'
)
NORM = flags.DEFINE_enum(
  'encoder_norm',
  'group',
  ('group', 'batch'),
  'Norm of a ResNet or an MLP and its heads; in a ResNet, group comes with weight '
  'standardization.',
)
PATCH = flags.DEFINE_integer(
  'encoder_patch',
  None,
  "Side of a ViT's patches in pixels; by default there are at most 16 on each side.",
  lower_bound=1,
)
PRECISION = flags.DEFINE_enum(
  'precision',
  network.FLOAT32,
  network.PRECISIONS,
  "Precision of the encoder's maps in training; bfloat16 is for GPUs and some CPUs.",
)
PROJECTOR = flags.DEFINE_list(
  'projector', None, "Widths of the projector's layers; by default the algorithm's."
)
AUGMENTATION = flags.DEFINE_enum(
  'augmentation',
  'byol_no_blur',
  tuple(multiview.CONFIGS),
  'How the views are made; for digits mild by default, for tabular tasks noise_mask.',
)
ROUNDS = flags.DEFINE_integer(
  'rounds', None, 'Rounds; by default 100, in benchmark 10.', lower_bound=1
)
CLIENTS_PER_ROUND = flags.DEFINE_integer(
  'clients_per_round',
  None,
  "Clients in a cohort; by default the program's number, or all if there are fewer.",
  lower_bound=1,
)
PARTICIPATION = flags.DEFINE_float(
  'participation',
  None,
  'Share p of all clients that a cohort has, in place of --clients_per_round.',
)
EVALUATE_EVERY = flags.DEFINE_integer(
  'evaluate_every', 0, 'Rounds between evaluations; 0: only at the end.', lower_bound=0
)
PACKS = flags.DEFINE_integer(
  'packs',
  None,
  'Number of TFF values into which the simulated clients of a round are packed; by '
  'default one per core; 0: one per client.',
  lower_bound=0,
)
CHECKPOINT_EVERY = flags.DEFINE_integer(
  'checkpoint_every', 10, 'Rounds between checkpoints.', lower_bound=1
)
SEED = flags.DEFINE_integer(
  'seed',
  0,
  'Seed of everything random: partition, weights, cohorts, views, label subsets.',
  lower_bound=0,
  # Seeds are int64 in TensorFlow.
  upper_bound=2**63 - 1,
)
RUN_DIR = paths.define(
  'run_dir', None, 'Folder of the run; the same command resumes where it stopped.'
)
WORKER, IN_PROCESS, HOSTS = 'worker', 'in_process', 'hosts'
RUNTIME = flags.DEFINE_enum(
  'runtime',
  IN_PROCESS,
  (IN_PROCESS, WORKER, HOSTS),
  "What executes TFF's computations: this process, on the GPUs that TensorFlow sees or "
  "otherwise on the CPU; TFF's worker, a separate process here or at --worker_address, "
  'whose numbers differ in their last digits; or workers on many hosts, at '
  '--worker_addresses, any of which may die.',
)
WORKER_ADDRESS = flags.DEFINE_string(
  'worker_address',
  None,
  'host:port of a TFF worker that runs elsewhere; implies --runtime=worker.',
)

# Defaults if neither a program nor a method has another.
DEFAULTS = {'rounds': 100, 'clients_per_round': 64}

# Flags that may change when a run is resumed, because they do not change its numbers.
MAY_DIFFER = (
  'checkpoint_every',
  'data_dir',
  'download',
  'run_dir',
  'strict',
  'worker_address',
)

# Flags that the configuration of a run includes only if they are given.
WHERE_GIVEN = (*own_data.TAKERS, *reading.WHERE_GIVEN, 'knn_every', 'validation')

# Tasks that take --data_dir, and those that take --download.
DOWNLOADED = registry.DOWNLOADED
WITH_DATA_DIR = (*DOWNLOADED, *registry.OF_FILES)


def run(main: Callable[[], None], taken: Collection[str] | None = None) -> None:
  """Runs a binary that opens a TFF context, and ends the process; see `program.run`.

  Args:
    main: Does the work; raises ValueError or OSError for bad input.
    taken: Flags that --help lists; None: all flags of the imported modules.
  """
  contexts.remove_default()
  program.run(main, taken)


def refuse_stray(name: str, chooser: str, takers: Collection[str]) -> None:
  """Refuses a flag that was given although it would do nothing.

  Args:
    name: The flag.
    chooser: The flag whose value decides whether `name` does something.
    takers: The values of `chooser` with which it does something.

  Raises:
    ValueError: If `name` is on the command line and `chooser` has no such value.
  """
  value = flags.FLAGS[chooser].value
  if flags.FLAGS[name].present and value not in takers:
    raise ValueError(
      f'--{name} is given with --{chooser}={value}; it is for {", ".join(takers)} only.'
    )


def check_flags() -> None:
  """Checks the common flags as far as possible without data.

  Raises:
    ValueError: If one is malformed, or does nothing for the task.
  """
  refuse_stray('data_dir', 'task', WITH_DATA_DIR)
  refuse_stray('download', 'task', DOWNLOADED)
  for name, takers in own_data.TAKERS.items():
    refuse_stray(name, 'task', takers)
  for name in reading.NAMES:
    refuse_stray(name, 'task', registry.OF_PICTURES)
  own_data.arguments()
  refuse_stray('encoder_stem', 'encoder', encoders.with_option('stem'))
  refuse_stray('encoder_norm', 'encoder', encoders.with_option('normalization'))
  refuse_stray('encoder_patch', 'encoder', encoders.with_option('patch_size'))
  dealing.check()
  projector_widths()
  if PARTICIPATION.value is not None:
    if flags.FLAGS[CLIENTS_PER_ROUND.name].present:
      raise ValueError(
        '--participation and --clients_per_round are both given; a cohort has one size.'
      )
    if not 0 < PARTICIPATION.value <= 1:
      raise ValueError(f'participation is {PARTICIPATION.value}; it must be in (0, 1].')


def cohort_size(num_clients: int) -> int:
  """Returns the size of a cohort, given the number of all clients."""
  if PARTICIPATION.value is not None:
    return max(1, round(PARTICIPATION.value * num_clients))
  wanted = CLIENTS_PER_ROUND.value
  # Unless more clients than exist are asked for, a cohort then has all of them.
  given = flags.FLAGS[CLIENTS_PER_ROUND.name].present
  return wanted if given else min(wanted, num_clients)


def flag_values() -> dict[str, object]:
  """Returns the value of every flag that one of our modules defines."""
  names = sorted(name for own in program.flags_by_module().values() for name in own)
  return {name: flags.FLAGS[name].value for name in names}


def given() -> list[str]:
  """Returns those of our flags that the command line gives."""
  return [name for name in flag_values() if flags.FLAGS[name].present]


def fill(values: Mapping[str, object]) -> None:
  """Sets flags that the command line does not give.

  Args:
    values: Value by name; names that this program does not have are ignored.
  """
  for name, value in values.items():
    if name in flags.FLAGS and not flags.FLAGS[name].present:
      flags.FLAGS[name].value = value


def of_task(known: Mapping[str, object]) -> dict[str, object]:
  """Returns defaults of flags that follow from the task.

  Args:
    known: Values that the program has by default, by name.
  """
  values: dict[str, object] = {}
  if TASK.value in registry.TABLES:
    values['encoder'] = 'mlp'
  if TASK.value in registry.VIEWS:
    values[AUGMENTATION.name] = registry.VIEWS[TASK.value]
  try:
    outline = registry.outline(TASK.value, DATA_DIR.value, **own_data.arguments())
  except (ValueError, OSError):
    # Raised again when the data are read, after the flags have been checked.
    return values
  partition = dealing.natural(outline, known.get(dealing.PARTITION.name))
  if partition is not None:
    values[dealing.PARTITION.name] = partition
  return values


@contextlib.contextmanager
def restored() -> Iterator[None]:
  """Restores all flags when it ends; for a run that sets its own."""
  before = {name: flags.FLAGS[name] for name in flag_values()}
  values = {name: (flag.value, flag.present) for name, flag in before.items()}
  try:
    yield
  finally:
    for name, flag in before.items():
      flag.value, flag.present = values[name]


def load_task() -> task_types.Task:
  """Loads the task that the flags name, and prints what it holds."""
  task = registry.load(
    TASK.value,
    DATA_DIR.value,
    reading.IMAGE_SIZE.value,
    DOWNLOAD.value,
    seed=0,
    scaling=reading.SCALING.value,
    reading=reading.value(),
    **own_data.arguments(),
  )
  task = dealing.hold_out(task)
  print(task.describe())
  for line in task.report:
    print(f'  {line}')
  for warning in task.warnings():
    print(f'Warning: {warning}', file=sys.stderr, flush=True)
  own_data.check_intake(task)
  return task


def build_partition(task: task_types.Task) -> partitions.Partition:
  """Deals the training examples to clients; returns the partition."""
  return dealing.build(task, SEED.value)


def build_encoder(task: task_types.Task) -> network.Network:
  """Builds the encoder of the field that the task evaluates."""
  return build_encoder_of_shape(task.shapes[task.field], task.field)


def build_encoder_of_shape(
  shape: Sequence[int], field: str = network.IMAGE
) -> network.Network:
  """Builds the encoder of a field of examples.

  Args:
    shape: Shape of one example of the field: (height, width, channels) of images.
    field: Name of the field.
  """
  # Encoders without a stem or a norm refuse any value for it, even the default.
  stem, norm = (
    flag.value
    if ENCODER.value in encoders.with_option(option) or flags.FLAGS[flag.name].present
    else None
    for flag, option in ((STEM, 'stem'), (NORM, 'normalization'))
  )
  return encoders.build_encoder(
    ENCODER.value, shape, WIDTH.value, stem, PATCH.value, norm, field
  ).with_precision(PRECISION.value)


def build_siamese(
  encoder: network.Network, default: Sequence[int] = (), output_bias: bool = True
) -> dual_encoder.Siamese:
  """Builds the dual encoder for two views of one image."""
  views = multiview.by_name(AUGMENTATION.value)
  return dual_encoder.build_siamese(
    encoder, projector_widths(default), views, output_bias
  )


def projector_widths(default: Sequence[int] = ()) -> tuple[int, ...]:
  """Returns the widths of `--projector`, or a default."""
  if PROJECTOR.value is None:
    return tuple(default)
  try:
    return tuple(int(width) for width in PROJECTOR.value)
  except ValueError:
    raise ValueError(
      f'projector is {",".join(PROJECTOR.value)!r}; it must be whole numbers, as in '
      '1024,1024,1024.'
    ) from None
