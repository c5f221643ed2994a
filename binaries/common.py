"""What every binary shares: the common flags, and how errors reach a person.

The common flags are the same words in every binary. A binary may set other defaults
(`set_defaults`), and builds frozen configurations from the flags; library code never
sees a flag.
"""

from collections.abc import Callable, Sequence
import sys
from typing import Any

from absl import app
from absl import flags

from tasks import registry
from tasks import task as task_lib
from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import projector as projector_lib
from tff_ssl.encoders import resnet
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import clients as partition_lib
from tff_ssl.partition import spec

TASK = flags.DEFINE_enum('task', 'digits', registry.TASKS, 'Data set.')
DATA_DIR = flags.DEFINE_string(
  'data_dir',
  None,
  'Where the data are: the TFDS folder (cifar10, cifar100), or the folder or .tar file '
  '(ham10000, cases).',
)
DOWNLOAD = flags.DEFINE_bool(
  'download', True, 'Whether TFDS may download a data set that is not prepared.'
)
IMAGE_SIZE = flags.DEFINE_integer(
  'image_size', None, "Height and width of the images; by default the task's own."
)
PARTITION = flags.DEFINE_string(
  'partition',
  None,
  'Clients: iid:examples=4, dirichlet:alpha=0,examples=4, shares:alpha=0.1,clients=5, '
  'or case. By default case where the task has cases, else dirichlet:alpha=0,examples=4.',
)
ENCODER = flags.DEFINE_enum('encoder', 'resnet8', resnet.NAMES, 'Encoder.')
WIDTH = flags.DEFINE_float('encoder_width', 1.0, "Factor on the encoder's channels.")
STEM = flags.DEFINE_enum(
  'encoder_stem', 'cifar', resnet.STEMS, 'First layers, for small or large images.'
)
PROJECTOR = flags.DEFINE_list(
  'projector', None, "Widths of the projector's layers; by default the algorithm's."
)
AUGMENTATION = flags.DEFINE_enum(
  'augmentation', 'byol_no_blur', tuple(byol.CONFIGS), 'How the views are made.'
)
ROUNDS = flags.DEFINE_integer('rounds', 100, 'Rounds.', lower_bound=1)
CLIENTS_PER_ROUND = flags.DEFINE_integer(
  'clients_per_round', 64, 'Clients of a cohort.', lower_bound=1
)
EVALUATE_EVERY = flags.DEFINE_integer(
  'evaluate_every', 0, 'Rounds between evaluations; 0: only at the end.', lower_bound=0
)
CHECKPOINT_EVERY = flags.DEFINE_integer(
  'checkpoint_every', 10, 'Rounds between checkpoints.', lower_bound=1
)
SEED = flags.DEFINE_integer(
  'seed',
  0,
  'Of everything random: partition, weights, cohorts, views, label subsets.',
  lower_bound=0,
)
RUN_DIR = flags.DEFINE_string(
  'run_dir', None, 'Folder of the run; the same command goes on where it stopped.'
)
WORKER_ADDRESS = flags.DEFINE_string(
  'worker_address', None, 'host:port of a TFF worker that runs elsewhere.'
)


def set_defaults(**defaults: Any) -> None:
  """Sets other defaults for a binary; to be called when its module is imported."""
  for name, value in defaults.items():
    flags.set_default(flags.FLAGS[name], value)


def run(main: Callable[[], None]) -> None:
  """Runs a binary: bad input is one sentence on stderr and exit status 1."""

  def checked(argv: Sequence[str]) -> None:
    if len(argv) > 1:
      _fail(f'Unexpected argument {argv[1]!r}; everything is a --flag=value.')
    try:
      main()
    except (ValueError, OSError) as error:
      _fail(' '.join(str(error).split()))

  # TFF and absl log through Python's logging; only what a person should act on is shown.
  app.run(checked)


def _fail(message: str) -> None:
  print(f'Error: {message}', file=sys.stderr)
  sys.exit(1)


def flag_values() -> dict[str, object]:
  """Returns the value of every flag that a module of ours defines."""
  by_module = flags.FLAGS.flags_by_module_dict()
  # The main module is known by the path it was started with.
  ours = [m for m in by_module if m.startswith('binaries') or m.endswith('.py')]
  values = {flag.name: flag.value for m in ours for flag in by_module[m]}
  return dict(sorted(values.items()))


def load_task() -> task_lib.Task:
  """Loads the task that the flags name, and prints what it holds."""
  task = registry.load(
    TASK.value, DATA_DIR.value, IMAGE_SIZE.value, DOWNLOAD.value, seed=0
  )
  print(task.describe())
  for line in task.report:
    print(f'  {line}')
  return task


def build_partition(task: task_lib.Task) -> partition_lib.Partition:
  """Deals the training examples to clients; returns the partition."""
  text = PARTITION.value or (
    'case' if task.case_level else 'dirichlet:alpha=0,examples=4'
  )
  return spec.build(spec.parse(text), task.train.label, task.train.case, SEED.value)


def build_encoder(task: task_lib.Task) -> network.Network:
  """Builds the encoder for the task's images."""
  return resnet.build_encoder(
    ENCODER.value, task.image_shape, width=WIDTH.value, stem=STEM.value
  )


def build_siamese(
  encoder: network.Network, default_projector: Sequence[int]
) -> dual_encoder.Siamese:
  """Builds the dual encoder of one image's two views."""
  widths = projector_widths(default_projector)
  return dual_encoder.Siamese(
    encoder,
    projector_lib.build_projector(encoder.output_dim, widths),
    byol.by_name(AUGMENTATION.value),
  )


def projector_widths(default: Sequence[int]) -> tuple[int, ...]:
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
