"""Stochastic gradient descent with momentum.

Momentum as in Sutskever et al., "On the importance of initialization and momentum in
deep learning", ICML 2013, in the form in which the rate multiplies the velocity, so
that a schedule of the rate acts at once.

Deviations: none.
"""

import collections
from typing import Any

import tensorflow as tf

from tff_ssl.optimization import scalars

# A tensor, or a (nested) dict or sequence of tensors.
Structure = Any


def init(
  params: Structure, momentum: float = 0.0
) -> collections.OrderedDict[str, Structure]:
  """Returns the state before the first step: the velocity, zero, if there is one."""
  state: collections.OrderedDict[str, Structure] = collections.OrderedDict()
  if momentum:
    state['velocity'] = tf.nest.map_structure(tf.zeros_like, params)
  return state


def update(
  params: Structure,
  state: collections.OrderedDict[str, Structure],
  grads: Structure,
  learning_rate: float | tf.Tensor,
  momentum: float = 0.0,
) -> tuple[Structure, collections.OrderedDict[str, Structure]]:
  """Takes one step: v <- m v + g, then w <- w - rate v.

  Args:
    params: Structure of floating tensors.
    state: What `init` with the same momentum, or the step before, returned.
    grads: Gradients; the structure of `params`.
    learning_rate: Rate of the step.
    momentum: m, in [0, 1).

  Returns:
    The new params and the new state.
  """
  direction, new_state = grads, state
  if momentum:
    direction = tf.nest.map_structure(
      lambda v, g: scalars.as_dtype(momentum, g.dtype) * v + g, state['velocity'], grads
    )
    new_state = collections.OrderedDict(velocity=direction)
  return (
    tf.nest.map_structure(
      lambda p, d: p - scalars.as_dtype(learning_rate, p.dtype) * d, params, direction
    ),
    new_state,
  )
