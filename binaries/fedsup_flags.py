"""The flags of `binaries.fedsup`, and the configurations that they stand for."""

from collections.abc import Collection

from absl import flags

from binaries import client_flags
from binaries import common
from binaries import evaluation_flags
from binaries import experiment
from binaries import optimizer_flags
from binaries import partition_flags
from tff_ssl.aggregators import groupwise
from tff_ssl.algorithms import fedavg
from tff_ssl.augment import byol as augment
from tff_ssl.augment import weak_strong
from tff_ssl.federated import grouping
from tff_ssl.federated import local_training
from tff_ssl.federated import server_training
from tff_ssl.optimization import local
from tff_ssl.optimization import schedules

FINETUNED = ('fixmatch', 'simclr', 'simsiam', 'byol', 'supervised')
METHODS = (
  'fedsup',
  *FINETUNED[:-1],
  'fedrgd',
  'fedmatch',
  'supervised',
  'labelled_only',
)
_WITH_CLIENTS = METHODS[:-1]
_IN_GROUPS = ('fedsup', 'fedrgd')
_AVERAGING = ('groupwise', 'fedavg')

METHOD = flags.DEFINE_enum('method', 'fedsup', METHODS, 'What is run.')
SERVER_LABELS = flags.DEFINE_float(
  'server_labels',
  0.1,
  'Share of the labelled training examples that the server has; of a task that comes '
  'with unlabelled ones 1 is all.',
)
SERVER_HOSPITAL = flags.DEFINE_string(
  'server_hospital', None, 'The hospital of ham10000 whose lesions the server has.'
)
_SERVER_EPOCHS = flags.DEFINE_integer(
  'server_epochs', 1, 'Epochs of the server in a round.', lower_bound=1
)
_SERVER_BATCH = flags.DEFINE_integer(
  'server_batch_size', 128, "Examples of the server's gradients.", lower_bound=1
)
_SERVER_RATE = flags.DEFINE_float(
  'server_training_rate', 1e-3, "Rate of the server's training."
)
_AVERAGE = flags.DEFINE_enum(
  'averaging', 'groupwise', _AVERAGING, "How the clients' models are averaged."
)
_SERVER_WEIGHT = flags.DEFINE_float(
  'server_weight', 1.0, "What the server's model counts in a group, in clients."
)
CONSISTENCY = flags.DEFINE_bool(
  'consistency', True, 'Whether FedSup has its consistency loss.'
)
STAGES = flags.DEFINE_integer(
  'stages',
  None,
  'Stages whose feature maps FedSup compares; by default all, 0: none.',
  lower_bound=0,
)
_FEATURE_WEIGHT = flags.DEFINE_float(
  'feature_weight', 1e-4, 'lambda_s of the weight lambda_s^(t/T) of the feature maps.'
)
_THRESHOLD = flags.DEFINE_float(
  'threshold', None, "Least probability of a pseudo-label; by default the method's."
)
TEMPERATURE = flags.DEFINE_float('temperature', 0.5, 'Of simclr.')
PREDICTOR = flags.DEFINE_integer(
  'predictor_width', 128, 'Hidden units of the predictor.', lower_bound=1
)
MOMENTUM = flags.DEFINE_float('target_momentum', 0.99, "Of byol's target.")
HELPERS = flags.DEFINE_integer('helpers', 2, "Of fedmatch's clients.", lower_bound=1)
HELPER_INTERVAL = flags.DEFINE_integer(
  'helper_interval', 10, 'Rounds between those with helpers.', lower_bound=1
)
ACCURACY_EVERY = flags.DEFINE_integer(
  'accuracy_every',
  1,
  'Rounds between tests of the classifiers of teacher and student; 0: at the end.',
  lower_bound=0,
)
flags.set_default(common.CLIENTS_PER_ROUND, 5)
flags.set_default(partition_flags.PARTITION, 'iid:clients=100')
flags.set_default(client_flags.EPOCHS, 5)
flags.set_default(client_flags.BATCH_SIZE, 128)
flags.set_default(client_flags.OPTIMIZER, 'adam')
flags.set_default(optimizer_flags.CLIENT_RATE, 1e-3)
flags.set_default(evaluation_flags.METHODS, ['knn', 'logistic', 'finetune'])
flags.set_default(evaluation_flags.FRACTIONS, ['1'])

_PROJECTED = ('fedsup', 'simclr', 'simsiam', 'byol')
_TAKEN_BY: dict[str, Collection[str]] = {
  'averaging': _IN_GROUPS,
  'server_weight': _IN_GROUPS,
  'consistency': ('fedsup',),
  'stages': ('fedsup',),
  'feature_weight': ('fedsup',),
  'threshold': ('fixmatch', 'fedrgd', 'fedmatch'),
  'temperature': ('simclr',),
  'predictor_width': ('fedsup', 'simsiam', 'byol'),
  'target_momentum': ('byol',),
  'helpers': ('fedmatch',),
  'helper_interval': ('fedmatch',),
  'projector': _PROJECTED,
  **dict.fromkeys(
    (
      'packs',
      'partition',
      'clients_per_round',
      'participation',
      'local_epochs',
      'batch_size',
      'accumulate',
      'client_optimizer',
      'client_momentum',
      'client_nesterov',
      'client_weight_decay',
      'client_schedule',
      'client_learning_rate',
      'proximal_weight',
    ),
    _WITH_CLIENTS,
  ),
}


def check() -> None:
  """Refuses what can be seen to be wrong without data.

  Raises:
    ValueError: If a flag is missing, out of range, not taken by the chosen method, or
      not that of the run in the folder.
  """
  experiment.refuse_strays(_TAKEN_BY, 'method')
  common.refuse_stray('server_hospital', 'task', ('ham10000',))
  for name in optimizer_flags.SERVER_NAMES:
    if flags.FLAGS[name].present:
      raise ValueError(
        f'--{name} is given; here the server takes the average as it is, and trains by '
        '--server_training_rate.'
      )
  if SERVER_HOSPITAL.value is not None and flags.FLAGS[SERVER_LABELS.name].present:
    raise ValueError(
      '--server_hospital and --server_labels are both given; the server has either.'
    )
  if not 0 < SERVER_LABELS.value <= 1:
    raise ValueError(f'server_labels is {SERVER_LABELS.value}; it must be in (0, 1].')
  if METHOD.value in _IN_GROUPS:
    averaging(2)
  server_plan()
  client_config()
  feature_weight()
  experiment.check_flags()


def server_plan() -> server_training.ServerPlan:
  """Returns how the server trains, by Adam."""
  plan = local_training.LocalPlan(
    _SERVER_EPOCHS.value,
    _SERVER_BATCH.value,
    optimizer=local.LocalOptimizer('adam'),
  )
  return server_training.ServerPlan(plan, _SERVER_RATE.value)


def client_config() -> fedavg.FedAvgConfig:
  """Returns how clients train."""
  return fedavg.FedAvgConfig(
    client_flags.plan(), client_flags.schedule(), seed=common.SEED.value
  )


def averaging(clients_per_round: int) -> grouping.Grouping:
  """Returns how the models of so many clients are averaged.

  Raises:
    ValueError: If the server's weight is negative, or would do nothing.
  """
  if METHOD.value not in _IN_GROUPS:
    return grouping.FEDAVG
  if _AVERAGE.value == 'groupwise':
    return grouping.Grouping(
      groupwise.num_groups(clients_per_round), _SERVER_WEIGHT.value
    )
  if METHOD.value == 'fedrgd':
    # Its labels reach the model through the average alone.
    return grouping.Grouping(1, _SERVER_WEIGHT.value)
  if flags.FLAGS[_SERVER_WEIGHT.name].present:
    raise ValueError(
      '--server_weight is given with --averaging=fedavg; it is for groupwise only.'
    )
  return grouping.FEDAVG


def feature_weight() -> schedules.Schedule:
  """Returns lambda_s^(t/T)."""
  return schedules.Exponential(1.0, _FEATURE_WEIGHT.value, common.ROUNDS.value)


def threshold(default: float) -> float:
  """Returns the least probability of a pseudo-label, a method's own by default."""
  return default if _THRESHOLD.value is None else _THRESHOLD.value


def view() -> augment.AugmentConfig:
  """Returns how a labelled image is seen: mirrored only if the clients' views are."""
  mirrored = augment.by_name(common.AUGMENTATION.value).flip_probability > 0
  return augment.by_name('flip' if mirrored else 'none')


def weak_strong_views() -> weak_strong.WeakStrongConfig:
  """Returns how weak and strong views are made; mirrored only if other views are."""
  mirrored = augment.by_name(common.AUGMENTATION.value).flip_probability
  return weak_strong.WeakStrongConfig(flip_probability=mirrored)
