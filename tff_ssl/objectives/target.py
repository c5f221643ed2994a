"""The target network of BYOL and MoCo: a copy of a model that follows it slowly.

It is never trained by gradients and, by default, never leaves the client. Its tensors
have the names of the model's parameters under 'target/'.
"""

import collections
from collections.abc import Mapping

import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.encoders import network
from tff_ssl.objectives import base
from tff_ssl.optimization import scalars

TARGET = 'target'


def check_momentum(momentum: float) -> None:
  """Raises ValueError if the momentum is not in [0, 1]."""
  checks.fraction(momentum=momentum)


def copy(params: Mapping[str, tf.Tensor], prefixes: tuple[str, ...]) -> base.State:
  """Returns the initial target: a copy of some networks' parameters, renamed.

  Args:
    params: Parameters of all networks.
    prefixes: The networks that have a target.
  """
  own = network.of_networks(params, prefixes)
  return network.with_prefix({n: tf.identity(v) for n, v in own.items()}, TARGET)


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
  for name, value in network.select(target, TARGET).items():
    keep, move = (scalars.as_dtype(m, value.dtype) for m in (momentum, 1.0 - momentum))
    moved[name] = keep * value + move * tf.convert_to_tensor(online[name])
  return network.with_prefix(moved, TARGET)
