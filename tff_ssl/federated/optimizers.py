"""Optimizers of the server, with schedules over rounds."""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import checks
from tff_ssl.optimization import lars
from tff_ssl.optimization import schedules
from tff_ssl.settings import learning


def build_optimizer(
  settings: learning.Server, rounds: int | None = None
) -> tff.learning.optimizers.Optimizer:
  """Builds a TFF optimizer; a scheduled one counts the updates that it applied.

  Args:
    settings: The optimizer and its schedule.
    rounds: R, rounds of the run, which the cosine needs; None: unknown.

  Raises:
    ValueError: If the rounds are unknown, or too few, for the schedule.
  """
  schedule = schedules.of(settings, rounds)
  rate = float(schedule(0))
  if isinstance(settings, learning.AdamWServer):
    optimizer = AdamW(rate, settings.weight_decay)
  elif isinstance(settings, learning.LarsServer):
    momentum = 0.9 if settings.momentum is None else settings.momentum
    optimizer = Lars(rate, momentum, settings.weight_decay)
  elif isinstance(settings, learning.SgdServer):
    optimizer = tff.learning.optimizers.build_sgdm(rate, settings.momentum or None)
  else:
    optimizer = tff.learning.optimizers.build_adam(rate)
  if settings.schedule == 'constant':
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
