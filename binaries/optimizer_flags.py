"""Flags of the server's optimizer, and of the clients' rate."""

from typing import Any

from absl import flags

from binaries import common
from tff_ssl.federated import optimizers

SERVER_OPTIMIZER = flags.DEFINE_enum(
  'server_optimizer', 'adam', optimizers.NAMES, 'Applies the averaged update.'
)
RATE = flags.DEFINE_float('server_learning_rate', 2e-3, 'After the warm-up.')
SCHEDULE = flags.DEFINE_enum(
  'server_schedule', 'cosine', optimizers.SCHEDULES, 'Over the rounds.'
)
_WARMUP = flags.DEFINE_integer(
  'server_warmup_rounds', 0, 'Linear warm-up, of the cosine.', lower_bound=0
)
_MOMENTUM = flags.DEFINE_float('server_momentum', None, 'Of sgd and lars.')
_WEIGHT_DECAY = flags.DEFINE_float('server_weight_decay', 0.0, 'Of lars.')
SERVER_NAMES = (
  'server_optimizer',
  'server_learning_rate',
  'server_schedule',
  'server_warmup_rounds',
  'server_momentum',
  'server_weight_decay',
)
CLIENT_RATE = flags.DEFINE_float(
  'client_learning_rate', 1.0, "Of the clients' optimizer."
)


def server_config() -> optimizers.OptimizerConfig:
  """Returns what the flags say.

  Raises:
    ValueError: If one is out of range.
  """
  return optimizers.OptimizerConfig(
    SERVER_OPTIMIZER.value,
    RATE.value,
    SCHEDULE.value,
    common.ROUNDS.value,
    _WARMUP.value,
    _MOMENTUM.value,
    _WEIGHT_DECAY.value,
  )


def build_server_optimizer() -> Any:
  """Builds the server's optimizer."""
  return optimizers.build_optimizer(server_config())
