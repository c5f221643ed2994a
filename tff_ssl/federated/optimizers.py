"""The optimizers of servers and clients, by name, with schedules over rounds."""

import collections
import dataclasses
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.optimization import lars
from tff_ssl.optimization import schedules

NAMES = ('sgd', 'adam', 'lars')
SCHEDULES = ('constant', 'cosine')


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
  """A server optimizer and its schedule.

  Attributes:
    name: 'sgd', 'adam' (DCCO on CIFAR-100) or 'lars' (DCCO on DERM).
    learning_rate: After the warm-up.
    schedule: 'constant' or 'cosine' (to 0 at `rounds`).
    rounds: Length of the cosine; needed by it alone.
    warmup_rounds: Linear warm-up, of the cosine schedule.
    momentum: Of SGD and LARS (0.9 in the paper); None: the optimizer's default.
    weight_decay: Of LARS.
  """

  name: str = 'adam'
  learning_rate: float = 1e-3
  schedule: str = 'constant'
  rounds: int | None = None
  warmup_rounds: int = 0
  momentum: float | None = None
  weight_decay: float = 0.0

  def __post_init__(self):
    if self.name not in NAMES:
      raise ValueError(f'optimizer is {self.name!r}; allowed are {", ".join(NAMES)}.')
    if self.schedule not in SCHEDULES:
      raise ValueError(
        f'schedule is {self.schedule!r}; allowed are {", ".join(SCHEDULES)}.'
      )
    if self.schedule == 'cosine' and self.rounds is None:
      raise ValueError('The cosine schedule needs the number of rounds.')
    if self.schedule == 'constant' and self.warmup_rounds:
      raise ValueError(
        f'warmup_rounds is {self.warmup_rounds}; only the cosine schedule takes it.'
      )
    if self.name == 'adam' and self.momentum is not None:
      raise ValueError(
        f'momentum is {self.momentum}; only sgd and lars take it, not adam.'
      )
    if self.momentum is not None and not 0 <= self.momentum < 1:
      raise ValueError(f'momentum is {self.momentum}; it must be in [0, 1).')
    if self.name != 'lars' and self.weight_decay:
      raise ValueError(f'weight_decay is {self.weight_decay}; only lars takes it.')
    if not 0 <= self.weight_decay < float('inf'):
      raise ValueError(f'weight_decay is {self.weight_decay}; it must be at least 0.')
    self.build_schedule()

  def build_schedule(self) -> schedules.Schedule:
    """Returns the learning rate as a function of the round."""
    if self.schedule == 'cosine':
      return schedules.Cosine(self.learning_rate, self.rounds or 0, self.warmup_rounds)
    return schedules.Constant(self.learning_rate)


def build_optimizer(config: OptimizerConfig) -> tff.learning.optimizers.Optimizer:
  """Builds a TFF optimizer; a scheduled one counts the updates that it applied."""
  schedule = config.build_schedule()
  rate = float(schedule(0))
  if config.name == 'adam':
    optimizer = tff.learning.optimizers.build_adam(rate)
  elif config.name == 'lars':
    optimizer = Lars(
      rate,
      momentum=0.9 if config.momentum is None else config.momentum,
      weight_decay=config.weight_decay,
    )
  else:
    optimizer = tff.learning.optimizers.build_sgdm(rate, config.momentum or None)
  if config.schedule == 'constant':
    return optimizer
  return tff.learning.optimizers.schedule_learning_rate(optimizer, schedule)


class Lars(tff.learning.optimizers.Optimizer):
  """LARS as a TFF optimizer; the arithmetic is `optimization.lars`."""

  def __init__(
    self, learning_rate: float, momentum: float = 0.9, weight_decay: float = 0.0
  ):
    """Initializes the optimizer.

    Args:
      learning_rate: Global rate, at least 0.
      momentum: In [0, 1).
      weight_decay: Coefficient of the l2 penalty's gradient, at least 0.

    Raises:
      ValueError: If a value is out of its range.
    """
    if learning_rate < 0:
      raise ValueError(f'learning_rate is {learning_rate}; it must be at least 0.')
    lars.check_hyperparameters(momentum, weight_decay, trust_coefficient=0.001)
    self._learning_rate = learning_rate
    self._momentum = momentum
    self._weight_decay = weight_decay

  def initialize(self, specs: Any) -> Any:
    """Returns the learning rate and zero velocities."""
    return collections.OrderedDict(
      learning_rate=tf.constant(self._learning_rate, tf.float32),
      velocity=tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype), specs),
    )

  def next(self, state: Any, weights: Any, gradients: Any) -> tuple[Any, Any]:
    """Takes one step; see `optimization.lars.update`."""
    weights, velocity = lars.update(
      weights,
      state['velocity'],
      gradients,
      state['learning_rate'],
      self._momentum,
      self._weight_decay,
    )
    return collections.OrderedDict(
      learning_rate=state['learning_rate'], velocity=velocity
    ), weights
