"""Flags of how clients train between two averages, and of the server's optimizer.

Where a flag has no default here, it is the method's (`methods.table`).
"""

from typing import Any

from absl import flags

from binaries.flags import common
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import local_training
from tff_ssl.federated import optimizers
from tff_ssl.optimization import local
from tff_ssl.optimization import schedules

_SCHEDULES = ('constant', 'cosine', 'steps')

_SERVER_OPTIMIZER = flags.DEFINE_enum(
  'server_optimizer', None, optimizers.NAMES, 'Applies the averaged update.'
)
_SERVER_RATE = flags.DEFINE_float('server_learning_rate', None, 'After the warm-up.')
_SERVER_SCHEDULE = flags.DEFINE_enum(
  'server_schedule', None, optimizers.SCHEDULES, 'Over the rounds.'
)
_WARMUP = flags.DEFINE_integer(
  'server_warmup_rounds', 0, 'Linear warm-up, of the cosine.', lower_bound=0
)
_SERVER_MOMENTUM = flags.DEFINE_float('server_momentum', None, 'Of sgd and lars.')
_SERVER_WEIGHT_DECAY = flags.DEFINE_float('server_weight_decay', 0.0, 'Of lars.')
OF_SERVER = (
  'server_optimizer',
  'server_learning_rate',
  'server_schedule',
  'server_warmup_rounds',
  'server_momentum',
  'server_weight_decay',
)

CLIENT_RATE = flags.DEFINE_float(
  'client_learning_rate', None, "Of the clients' optimizer."
)
EPOCHS = flags.DEFINE_integer(
  'local_epochs', None, 'Epochs of a client in a round.', lower_bound=1
)
BATCH_SIZE = flags.DEFINE_integer(
  'batch_size', None, "Examples of a gradient; by default the method's.", lower_bound=1
)
_ACCUMULATE = flags.DEFINE_integer(
  'accumulate',
  1,
  'Gradients of a step: 8 of 32 examples are one of 256.',
  lower_bound=1,
)
DROP_LAST = flags.DEFINE_enum(
  'drop_last_batch',
  local_training.SMALL,
  local_training.DROP_LAST,
  "When the last batch of a client's epoch is left out: small: with batch norm, where "
  'it has fewer than a quarter of --batch_size; always: where it is incomplete; never.',
)
_OPTIMIZER = flags.DEFINE_enum('client_optimizer', None, local.NAMES, 'Of the clients.')
_MOMENTUM = flags.DEFINE_float('client_momentum', 0.0, "Of the clients' sgd.")
_NESTEROV = flags.DEFINE_bool('client_nesterov', False, "Of the clients' momentum.")
_WEIGHT_DECAY = flags.DEFINE_float('client_weight_decay', 0.0, 'Of the clients, L2.')
_SCHEDULE = flags.DEFINE_enum(
  'client_schedule', 'constant', _SCHEDULES, 'Of the rate, over rounds.'
)
_BOUNDARIES = flags.DEFINE_list(
  'client_schedule_steps', [], 'Rounds at which the rate of `steps` falls to a tenth.'
)
PROXIMAL = flags.DEFINE_float('proximal_weight', 0.0, 'mu of FedProx.')
OF_CLIENTS = (
  'client_learning_rate',
  'local_epochs',
  'batch_size',
  'accumulate',
  'drop_last_batch',
  'client_optimizer',
  'client_momentum',
  'client_nesterov',
  'client_weight_decay',
  'client_schedule',
  'client_schedule_steps',
)
_WEIGHTING = flags.DEFINE_enum(
  'weighting', 'examples', tuple(fedavg.WEIGHTINGS), 'By what clients count.'
)


def server_config() -> optimizers.OptimizerConfig:
  """Returns the server's optimizer, as the flags say.

  Raises:
    ValueError: If one is out of range.
  """
  return optimizers.OptimizerConfig(
    _SERVER_OPTIMIZER.value,
    _SERVER_RATE.value,
    _SERVER_SCHEDULE.value,
    common.ROUNDS.value,
    _WARMUP.value,
    _SERVER_MOMENTUM.value,
    _SERVER_WEIGHT_DECAY.value,
  )


def build_server_optimizer() -> Any:
  """Builds the server's optimizer."""
  return optimizers.build_optimizer(server_config())


def settle() -> None:
  """Leaves out a method's momentum where another optimizer than SGD is given.

  One that is given with it is refused, by `plan`.
  """
  momentum = flags.FLAGS[_MOMENTUM.name]
  if _OPTIMIZER.value not in (None, 'sgd') and not momentum.present:
    momentum.value = 0.0


def plan() -> local_training.LocalPlan:
  """Returns how a client trains, as the flags say.

  Raises:
    ValueError: If a flag is out of range, or does nothing.
  """
  optimizer = local.LocalOptimizer(
    _OPTIMIZER.value, _MOMENTUM.value, _NESTEROV.value, _WEIGHT_DECAY.value
  )
  return local_training.LocalPlan(
    EPOCHS.value,
    BATCH_SIZE.value,
    _ACCUMULATE.value,
    PROXIMAL.value,
    optimizer,
    DROP_LAST.value,
  )


def schedule() -> schedules.Schedule:
  """Returns the clients' learning rate over rounds, as the flags say.

  Raises:
    ValueError: If a flag is out of range, or does nothing.
  """
  common.refuse_stray('client_schedule_steps', 'client_schedule', ('steps',))
  if _SCHEDULE.value == 'cosine':
    return schedules.Cosine(CLIENT_RATE.value, common.ROUNDS.value)
  if _SCHEDULE.value == 'constant':
    return schedules.Constant(CLIENT_RATE.value)
  if not _BOUNDARIES.value or not all(b.isdecimal() for b in _BOUNDARIES.value):
    raise ValueError(
      f'client_schedule_steps is {",".join(_BOUNDARIES.value)!r}; with '
      '--client_schedule=steps it must be rounds, as in 60,90.'
    )
  return schedules.Steps(CLIENT_RATE.value, tuple(map(int, _BOUNDARIES.value)))


def client_config() -> fedavg.FedAvgConfig:
  """Returns how clients train and by what they count, as the flags say."""
  return fedavg.FedAvgConfig(
    plan(), schedule(), _WEIGHTING.value, common.SEED.value, common.ROUNDS.value
  )
