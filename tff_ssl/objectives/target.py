"""The target network of BYOL and MoCo: a copy of a model that follows it slowly.

It is never trained by gradients and, by default, never leaves the client. Its tensors
have the names of the model's parameters under 'target/'.
"""

import collections
from collections.abc import Mapping

import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.encoders import parameter_names
from tff_ssl.objectives import base
from tff_ssl.optimization import scalars

TARGET = 'target'
# What a client's target is in its first round: a copy of the networks that the client
# is given, which follows the online ones from there; or the online networks themselves.
COPY, ONLINE = 'copy', 'online'
FIRST = (COPY, ONLINE)


def check_first(objective: base.Objective, first_target: str) -> None:
  """Refuses an unknown first target, or one that the objective cannot have.

  Args:
    objective: What a client minimises.
    first_target: One of `FIRST`.

  Raises:
    ValueError: If it is none of them, or 'online' without a target that can be that.
  """
  checks.one_of(FIRST, first_target=first_target)
  if first_target == ONLINE and not objective.can_tie:
    raise ValueError(
      f'first_target is {first_target!r}; with {type(objective).__name__}, which has '
      f'no target that can be the online network, it must be {COPY!r}.'
    )


def in_round(
  objective: base.Objective, first_target: str, is_new: tf.Tensor
) -> base.Objective:
  """Returns what a client minimises in a round.

  Args:
    objective: What it minimises in any other.
    first_target: One of `FIRST`.
    is_new: bool scalar; whether this is the client's first round.
  """
  return objective.tied(is_new) if first_target == ONLINE else objective


def copy(params: Mapping[str, tf.Tensor], prefixes: tuple[str, ...]) -> base.State:
  """Returns the initial target: a copy of some networks' parameters, renamed.

  Args:
    params: Parameters of all networks.
    prefixes: The networks that have a target.
  """
  own = parameter_names.of_networks(params, prefixes)
  return parameter_names.with_prefix(
    {n: tf.identity(v) for n, v in own.items()}, TARGET
  )


def follow(
  target: Mapping[str, tf.Tensor],
  online: Mapping[str, tf.Tensor],
  momentum: float | tf.Tensor,
) -> base.State:
  """Returns the target after a step: m * target + (1 - m) * online.

  Args:
    target: From `copy` or from this function; only what is under 'target/' is used.
    online: The parameters after the optimizer's step.
    momentum: m, in [0, 1]: with 0 the target is a copy of the online networks, with 1
      it never changes. A floating scalar if the objective follows a schedule.
  """
  moved = collections.OrderedDict()
  for name, value in parameter_names.select(target, TARGET).items():
    keep, move = (scalars.as_dtype(m, value.dtype) for m in (momentum, 1.0 - momentum))
    moved[name] = keep * value + move * tf.convert_to_tensor(online[name])
  return parameter_names.with_prefix(moved, TARGET)
