"""Flags for clients' training between two averages, and for the server's optimizer.

A default here is for methods that do not have their own (`methods.table`); --help shows
each method's default.
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
  'server_optimizer',
  None,
  optimizers.NAMES,
  'Optimizer of the server, which applies the averaged update.',
)
_SERVER_RATE = flags.DEFINE_float(
  'server_learning_rate', None, "Rate of the server's optimizer, after any warm-up."
)
_SERVER_SCHEDULE = flags.DEFINE_enum(
  'server_schedule',
  None,
  optimizers.SCHEDULES,
  "How the server's rate changes over the rounds.",
)
_WARMUP = flags.DEFINE_integer(
  'server_warmup_rounds',
  0,
  'Rounds over which the rate rises from 0, before the cosine.',
  lower_bound=0,
)
_SERVER_BOUNDARIES = flags.DEFINE_list(
  'server_schedule_steps', [], 'Rounds at which the rate of `steps` falls.'
)
_SERVER_FACTOR = flags.DEFINE_float(
  'server_schedule_factor', 0.1, 'Factor by which the rate of `steps` changes there.'
)
_SERVER_MOMENTUM = flags.DEFINE_float(
  'server_momentum', None, "Momentum of the server's sgd or lars."
)
_SERVER_WEIGHT_DECAY = flags.DEFINE_float(
  'server_weight_decay', 0.0, "Weight decay of the server's lars or adamw."
)
OF_SERVER = (
  'server_optimizer',
  'server_learning_rate',
  'server_schedule',
  'server_warmup_rounds',
  'server_momentum',
  'server_weight_decay',
  'server_schedule_steps',
  'server_schedule_factor',
)

CLIENT_RATE = flags.DEFINE_float(
  'client_learning_rate', None, "Rate of the clients' optimizer."
)
EPOCHS = flags.DEFINE_integer(
  'local_epochs', None, 'Epochs per client in a round.', lower_bound=1
)
BATCH_SIZE = flags.DEFINE_integer(
  'batch_size', None, 'Examples per gradient.', lower_bound=1
)
_ACCUMULATE = flags.DEFINE_integer(
  'accumulate',
  1,
  'Batches whose gradients are averaged into one step: 8 batches of 32 examples act '
  'like one of 256.',
  lower_bound=1,
)
DROP_LAST = flags.DEFINE_enum(
  'drop_last_batch',
  local_training.SMALL,
  local_training.DROP_LAST,
  "When the last batch of a client's epoch is left out: small: with batch norm, if it "
  'has fewer than a quarter of --batch_size; always: if it is incomplete; never.',
)
_OPTIMIZER = flags.DEFINE_enum(
  'client_optimizer', None, local.NAMES, 'Optimizer of local training.'
)
_MOMENTUM = flags.DEFINE_float('client_momentum', 0.0, "Momentum of the clients' sgd.")
_NESTEROV = flags.DEFINE_bool(
  'client_nesterov', False, "Whether the clients' momentum is Nesterov's."
)
_WEIGHT_DECAY = flags.DEFINE_float(
  'client_weight_decay',
  0.0,
  'Weight decay of the clients: in the gradient (L2), but for adamw outside it.',
)
_BETA_2 = flags.DEFINE_float(
  'client_beta_2', 0.999, "Decay of the second moment of the clients' adam and adamw."
)
_SCHEDULE = flags.DEFINE_enum(
  'client_schedule',
  'constant',
  _SCHEDULES,
  "How the clients' rate changes over the rounds.",
)
_CLIENT_WARMUP = flags.DEFINE_integer(
  'client_warmup_rounds',
  0,
  'Rounds over which the rate rises from 0, before the cosine.',
  lower_bound=0,
)
_BOUNDARIES = flags.DEFINE_list(
  'client_schedule_steps', [], 'Rounds at which the rate of `steps` falls.'
)
_FACTOR = flags.DEFINE_float(
  'client_schedule_factor', 0.1, 'Factor by which the rate of `steps` changes there.'
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
  'client_schedule_factor',
  'client_warmup_rounds',
  'client_beta_2',
)
_WEIGHTING = flags.DEFINE_enum(
  'weighting',
  'examples',
  tuple(fedavg.WEIGHTINGS),
  'Weight of a client in the mean: its number of examples, or equal for all clients.',
)


def server_config() -> optimizers.OptimizerConfig:
  """Returns the server's optimizer, as the flags say.

  Raises:
    ValueError: If one is out of range.
  """
  for name in (_SERVER_BOUNDARIES.name, _SERVER_FACTOR.name):
    common.refuse_stray(name, _SERVER_SCHEDULE.name, ('steps',))
  is_steps = _SERVER_SCHEDULE.value == 'steps'
  return optimizers.OptimizerConfig(
    _SERVER_OPTIMIZER.value,
    _SERVER_RATE.value,
    _SERVER_SCHEDULE.value,
    common.ROUNDS.value,
    _WARMUP.value,
    _SERVER_MOMENTUM.value,
    _SERVER_WEIGHT_DECAY.value,
    _boundaries(_SERVER_BOUNDARIES) if is_steps else (),
    _factor(_SERVER_FACTOR),
  )


def build_server_optimizer() -> Any:
  """Builds the server's optimizer."""
  return optimizers.build_optimizer(server_config())


def settle() -> None:
  """Drops a method's default momentum if an optimizer other than SGD is given.

  `plan` refuses a momentum that is given with such an optimizer.
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
    _OPTIMIZER.value,
    _MOMENTUM.value,
    _NESTEROV.value,
    _WEIGHT_DECAY.value,
    _BETA_2.value,
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
  for name in (_BOUNDARIES.name, _FACTOR.name):
    common.refuse_stray(name, _SCHEDULE.name, ('steps',))
  common.refuse_stray(_CLIENT_WARMUP.name, _SCHEDULE.name, ('cosine',))
  if _SCHEDULE.value == 'cosine':
    return schedules.Cosine(
      CLIENT_RATE.value, common.ROUNDS.value, _CLIENT_WARMUP.value
    )
  if _SCHEDULE.value == 'constant':
    return schedules.Constant(CLIENT_RATE.value)
  return schedules.Steps(CLIENT_RATE.value, _boundaries(_BOUNDARIES), _factor(_FACTOR))


def _boundaries(flag: flags.FlagHolder[list[str]]) -> tuple[int, ...]:
  """Returns the rounds at which a schedule of steps lowers the rate, from a list."""
  text = ','.join(flag.value)
  if not flag.value or not all(b.isdecimal() for b in flag.value):
    raise ValueError(
      f'{flag.name} is {text!r}; with --{flag.name.removesuffix("_steps")}=steps it '
      'must be rounds, as in 60,90.'
    )
  boundaries = tuple(map(int, flag.value))
  if boundaries[0] < 1 or boundaries[-1] >= common.ROUNDS.value:
    raise ValueError(
      f'{flag.name} is {text!r}; of {common.ROUNDS.value} rounds, which count from 0, '
      f'each must be in [1, {common.ROUNDS.value - 1}].'
    )
  return boundaries


def _factor(flag: flags.FlagHolder[float]) -> float:
  """Returns the factor that lowers a rate."""
  if not 0 < flag.value < 1:
    raise ValueError(f'{flag.name} is {flag.value}; it must be in (0, 1).')
  return flag.value


def client_config() -> fedavg.FedAvgConfig:
  """Returns how clients train and how they are weighted, as the flags say."""
  return fedavg.FedAvgConfig(
    plan(), schedule(), _WEIGHTING.value, common.SEED.value, common.ROUNDS.value
  )
