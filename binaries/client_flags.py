"""Flags of local training, for every binary whose clients take more than one step."""

from absl import flags

from binaries import common
from binaries import optimizer_flags
from tff_ssl.federated import local_training
from tff_ssl.optimization import local
from tff_ssl.optimization import schedules

_SCHEDULES = ('constant', 'cosine', 'steps')

EPOCHS = flags.DEFINE_integer(
  'local_epochs', 1, 'Epochs of a client in a round.', lower_bound=1
)
BATCH_SIZE = flags.DEFINE_integer(
  'batch_size', None, 'Examples of a gradient; by default all.', lower_bound=1
)
_ACCUMULATE = flags.DEFINE_integer(
  'accumulate',
  1,
  'Gradients of a step: 8 of 32 examples are one of 256.',
  lower_bound=1,
)
OPTIMIZER = flags.DEFINE_enum('client_optimizer', 'sgd', local.NAMES, 'Of the clients.')
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


def plan() -> local_training.LocalPlan:
  """Returns how a client trains, as the flags say.

  Raises:
    ValueError: If a flag is out of range, or does nothing.
  """
  optimizer = local.LocalOptimizer(
    OPTIMIZER.value, _MOMENTUM.value, _NESTEROV.value, _WEIGHT_DECAY.value
  )
  return local_training.LocalPlan(
    EPOCHS.value, BATCH_SIZE.value, _ACCUMULATE.value, PROXIMAL.value, optimizer
  )


def schedule() -> schedules.Schedule:
  """Returns the clients' learning rate over rounds, as the flags say.

  Raises:
    ValueError: If a flag is out of range, or does nothing.
  """
  common.refuse_stray('client_schedule_steps', 'client_schedule', ('steps',))
  if _SCHEDULE.value == 'cosine':
    return schedules.Cosine(optimizer_flags.CLIENT_RATE.value, common.ROUNDS.value)
  if _SCHEDULE.value == 'constant':
    return schedules.Constant(optimizer_flags.CLIENT_RATE.value)
  if not _BOUNDARIES.value or not all(b.isdecimal() for b in _BOUNDARIES.value):
    raise ValueError(
      f'client_schedule_steps is {",".join(_BOUNDARIES.value)!r}; with '
      '--client_schedule=steps it must be rounds, as in 60,90.'
    )
  return schedules.Steps(
    optimizer_flags.CLIENT_RATE.value, tuple(map(int, _BOUNDARIES.value))
  )
