"""Optimizers of the server by name, with schedules over rounds."""

import collections
import dataclasses
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import checks
from tff_ssl.computing import kinds
from tff_ssl.optimization import lars
from tff_ssl.optimization import schedules

NAMES = ('sgd', 'adam', 'adamw', 'lars')
SCHEDULES = ('constant', 'cosine', 'steps')
_DECAYING = ('adamw', 'lars')


@dataclasses.dataclass(frozen=True)
class OptimizerConfig(kinds.Kind):
  """A server optimizer and its schedule.

  Attributes:
    name: 'sgd', 'adam' (DCCO on CIFAR-100), 'adamw' or 'lars' (DCCO on DERM).
    learning_rate: After the warm-up.
    schedule: 'constant', 'cosine' (to 0 at `rounds`) or 'steps'.
    rounds: Length of the cosine; only the cosine needs it.
    warmup_rounds: Linear warm-up, of the cosine schedule.
    momentum: Momentum of SGD and LARS (0.9 in the paper); None: the optimizer's
      default.
    weight_decay: Coefficient of the decay, for LARS and AdamW.
    boundaries: Rounds at which the rate of the steps is multiplied by `factor`.
    factor: Factor of the steps, above 0.
  """

  name: str = 'adam'
  learning_rate: kinds.NotNegative = 1e-3
  schedule: str = 'constant'
  rounds: kinds.Count | None = None
  warmup_rounds: kinds.Natural = 0
  momentum: kinds.BelowOne | None = None
  weight_decay: kinds.NotNegative = 0.0
  boundaries: tuple[kinds.Count, ...] = ()
  factor: kinds.Positive = 0.1

  def __post_init__(self):
    super().__post_init__()
    if self.name not in NAMES:
      raise ValueError(
        f'optimizer is {self.name!r}; it must be one of {", ".join(NAMES)}.'
      )
    if self.schedule not in SCHEDULES:
      raise ValueError(
        f'schedule is {self.schedule!r}; it must be one of {", ".join(SCHEDULES)}.'
      )
    if self.schedule == 'cosine' and self.rounds is None:
      raise ValueError('The cosine schedule needs the number of rounds.')
    if self.schedule != 'cosine' and self.warmup_rounds:
      raise ValueError(
        f'warmup_rounds is {self.warmup_rounds}; only the cosine schedule takes it.'
      )
    if (self.schedule == 'steps') != bool(self.boundaries):
      raise ValueError(
        f'boundaries is {self.boundaries} with the schedule {self.schedule}; the '
        'schedule steps needs boundaries, and no other schedule takes them.'
      )
    if self.name in ('adam', 'adamw') and self.momentum is not None:
      raise ValueError(
        f'momentum is {self.momentum}; only sgd and lars take it, not {self.name}.'
      )
    if self.name not in _DECAYING and self.weight_decay:
      raise ValueError(
        f'weight_decay is {self.weight_decay}; only lars and adamw take it.'
      )
    self.build_schedule()

  def build_schedule(self) -> schedules.Schedule:
    """Returns the learning rate as a function of the round."""
    if self.schedule == 'cosine':
      return schedules.Cosine(self.learning_rate, self.rounds or 0, self.warmup_rounds)
    if self.schedule == 'steps':
      return schedules.Steps(self.learning_rate, self.boundaries, self.factor)
    return schedules.Constant(self.learning_rate)


def build_optimizer(config: OptimizerConfig) -> tff.learning.optimizers.Optimizer:
  """Builds a TFF optimizer; a scheduled one counts the updates that it applied."""
  schedule = config.build_schedule()
  rate = float(schedule(0))
  if config.name == 'adam':
    optimizer = tff.learning.optimizers.build_adam(rate)
  elif config.name == 'adamw':
    optimizer = AdamW(rate, config.weight_decay)
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
    checks.not_negative(learning_rate=learning_rate)
    lars.check_hyperparameters(momentum, weight_decay)
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


class AdamW(tff.learning.optimizers.Optimizer):
  """TFF's Adam, and a decay of the parameters that have more than one dimension.

    w <- w - rate * (adam's step + weight_decay * w)

  Without decay it is 'adam' to the bit, with TFF's epsilon. TFF's own AdamW also decays
  biases and the scales of norm layers.

  Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019,
  Algorithm 2; `optimization.adam` names how this deviates.
  """

  def __init__(self, learning_rate: float, weight_decay: float = 0.0):
    """Initializes the optimizer.

    Args:
      learning_rate: At least 0.
      weight_decay: At least 0; 0: Adam.

    Raises:
      ValueError: If a value is out of its range.
    """
    checks.not_negative(learning_rate=learning_rate, weight_decay=weight_decay)
    self._adam = tff.learning.optimizers.build_adam(learning_rate)
    self._weight_decay = weight_decay

  def initialize(self, specs: Any) -> Any:
    """Returns the state of TFF's Adam: rate, number of steps, zero moments."""
    return self._adam.initialize(specs)

  def next(self, state: Any, weights: Any, gradients: Any) -> tuple[Any, Any]:
    """Takes one step."""
    stepped, moved = self._adam.next(state, weights, gradients)
    if not self._weight_decay:
      return stepped, moved
    decay = state['learning_rate'] * self._weight_decay

    def decayed(after: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
      if after.shape.rank <= 1:
        return after
      return after - tf.cast(decay, after.dtype) * before

    return stepped, tf.nest.map_structure(decayed, moved, weights)
