"""The optimizers of clients; each step is given its rate.

A client's optimizer starts afresh in every round; the server schedules its rate.
"""

import collections
from typing import Any

import tensorflow as tf

from tff_ssl.optimization import adam
from tff_ssl.optimization import scalars
from tff_ssl.optimization import sgd
from tff_ssl.settings import learning

# A tensor, or a (nested) dict or sequence of tensors.
Structure = Any
State = collections.OrderedDict[str, Structure]


def first_step_is_affine(clients: learning.AnyClients) -> bool:
  """Returns whether the mean of first steps is the first step of the mean gradient."""
  return isinstance(clients, learning.SgdClients)


def init(clients: learning.AnyClients, params: Structure) -> State:
  """Returns the state of the clients' optimizer before the first step."""
  if isinstance(clients, learning.SgdClients):
    return sgd.init(params, clients.momentum)
  return adam.init(params)


def update(
  clients: learning.AnyClients,
  params: Structure,
  state: State,
  grads: Structure,
  rate: float | tf.Tensor,
) -> tuple[Structure, State]:
  """Takes one step.

  Args:
    clients: How clients train.
    params: Structure of floating tensors.
    state: What `init` or the step before returned.
    grads: Gradients; the structure of `params`.
    rate: Learning rate of the step.

  Returns:
    The new params and the new state.
  """
  decay = clients.weight_decay
  if isinstance(clients, learning.AdamClients) and clients.kind == 'adamw':
    return adam.update(
      params, state, grads, rate, beta_2=clients.beta_2, weight_decay=decay
    )
  if decay:
    grads = tf.nest.map_structure(
      lambda g, p: g + scalars.as_dtype(decay, p.dtype) * p, grads, params
    )
  if isinstance(clients, learning.AdamClients):
    return adam.update(params, state, grads, rate, beta_2=clients.beta_2)
  return sgd.update(params, state, grads, rate, clients.momentum)
