"""Learning-rate schedules: frozen dataclasses that map a step to a rate.

A step is counted from 0 and is a Python integer or an integer tensor; the rate is then
a Python float or a float32 scalar, so that one schedule serves a loop in Python, a
`tf.while_loop` and the state of a federated server.
"""

from collections.abc import Callable
import dataclasses
import math
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.settings import learning

Step: TypeAlias = int | tf.Tensor
Rate: TypeAlias = float | tf.Tensor
Schedule = Callable[[Step], Rate]


@dataclasses.dataclass(frozen=True)
class Constant(kinds.Kind):
  """The same rate at every step.

  Attributes:
    rate: The learning rate, at least 0.
  """

  rate: kinds.NotNegative

  def __call__(self, step: Step) -> Rate:
    """Returns the rate of a step."""
    return _scaled(self.rate, step, lambda ops, t: ops.ones_like(t))


@dataclasses.dataclass(frozen=True)
class Cosine(kinds.Kind):
  """Linear warm-up, then half a cosine from `initial` down to 0.

  The rate at step t is initial * (t + 1) / warmup_steps during the warm-up (so that
  step 0 already learns), then
  initial * (1 + cos(pi * (t - warmup_steps) / (total_steps - warmup_steps))) / 2, and
  0 from `total_steps` on.

  Source: Loshchilov and Hutter, "SGDR", ICLR 2017, Eq. 5, without restarts.

  Attributes:
    initial: Rate at the end of the warm-up, at least 0.
    total_steps: Steps in all, warm-up included.
    warmup_steps: Steps of the warm-up; 0 for none.
  """

  initial: kinds.NotNegative
  total_steps: kinds.Count
  warmup_steps: kinds.Natural = 0

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.warmup_steps >= self.total_steps:
      raise ValueError(
        f'warmup_steps is {self.warmup_steps}; it must be below total_steps, which is '
        f'{self.total_steps}.'
      )

  def __call__(self, step: Step) -> Rate:
    """Returns the rate of a step."""

    def factor(ops: Any, t: Any) -> Any:
      decay_steps = self.total_steps - self.warmup_steps
      progress = ops.clip_by_value((t - self.warmup_steps) / decay_steps, 0.0, 1.0)
      cosine = 0.5 * (1.0 + ops.cos(math.pi * progress))
      warmup = (t + 1.0) / max(self.warmup_steps, 1)
      return ops.where(t < self.warmup_steps, warmup, cosine)

    return _scaled(self.initial, step, factor)


@dataclasses.dataclass(frozen=True)
class Steps(kinds.Kind):
  """A rate multiplied by `factor` at each of `boundaries`.

  Attributes:
    initial: Rate before the first boundary, at least 0.
    boundaries: Increasing steps; the rate changes at the boundary itself.
    factor: What the rate is multiplied by, above 0.
  """

  initial: kinds.NotNegative
  boundaries: tuple[kinds.Count, ...]
  factor: kinds.Positive = 0.1

  def __post_init__(self) -> None:
    super().__post_init__()
    if list(self.boundaries) != sorted(set(self.boundaries)):
      raise ValueError(f'boundaries is {self.boundaries}; it must increase.')

  def __call__(self, step: Step) -> Rate:
    """Returns the rate of a step."""

    def factor(ops: Any, t: Any) -> Any:
      result = ops.ones_like(t)
      for boundary in self.boundaries:
        result = ops.where(t >= boundary, result * self.factor, result)
      return result

    return _scaled(self.initial, step, factor)


@dataclasses.dataclass(frozen=True)
class Exponential(kinds.Kind):
  """initial * final^(t / total_steps): from `initial` to `final` times `initial`.

  Source: FedSup (Gill, 2023), Section 4.1.1: the weight lambda_s^(t/T).

  Attributes:
    initial: Value at step 0, at least 0.
    final: Factor at `total_steps`, above 0; 1: the value is constant.
    total_steps: T, at least 1.
  """

  initial: kinds.NotNegative
  final: kinds.Positive
  total_steps: kinds.Count

  def __call__(self, step: Step) -> Rate:
    """Returns the value at a step."""

    def factor(ops: Any, t: Any) -> Any:
      return ops.exp(math.log(self.final) * t / self.total_steps)

    return _scaled(self.initial, step, factor)


def of(settings: learning.Scheduled, rounds: int | None) -> Schedule:
  """Returns the learning rate as a function of the round.

  Args:
    settings: The rate of clients or of a server.
    rounds: R, rounds of the run; None: unknown.

  Raises:
    ValueError: If the rounds are unknown, or too few, for the schedule.
  """
  rate = settings.learning_rate
  if settings.schedule == 'cosine':
    if rounds is None:
      raise ValueError('rounds is None; the cosine schedule needs their number.')
    return Cosine(rate, rounds, settings.warmup_rounds)
  if settings.schedule == 'steps':
    return Steps(rate, settings.steps, settings.factor)
  return Constant(rate)


class _NumpyOps:
  """The few TensorFlow functions that schedules use, for NumPy float64."""

  clip_by_value = staticmethod(np.clip)
  cos = staticmethod(np.cos)
  exp = staticmethod(np.exp)
  ones_like = staticmethod(np.ones_like)
  where = staticmethod(np.where)


def _scaled(initial: float, step: Step, factor: Callable[[Any, Any], Any]) -> Rate:
  """Returns initial * factor(ops, step): float32 for a tensor, else a float."""
  if tf.is_tensor(step):
    return initial * factor(tf, tf.cast(step, tf.float32))
  return float(initial * factor(_NumpyOps, np.float64(step)))
