"""Adam.

Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.

Deviations: none.
"""

import collections
from typing import Any

import tensorflow as tf

from tff_ssl.optimization import scalars

# A tensor, or a (nested) dict or sequence of tensors.
Structure = Any


def init(params: Structure) -> collections.OrderedDict[str, Structure]:
  """Returns the state before the first step: count and both moments, all zero."""
  return collections.OrderedDict(
    step=tf.constant(0, tf.int64),
    first_moment=tf.nest.map_structure(tf.zeros_like, params),
    second_moment=tf.nest.map_structure(tf.zeros_like, params),
  )


def update(
  params: Structure,
  state: collections.OrderedDict[str, Structure],
  grads: Structure,
  learning_rate: float | tf.Tensor,
  beta_1: float = 0.9,
  beta_2: float = 0.999,
  epsilon: float = 1e-8,
) -> tuple[Structure, collections.OrderedDict[str, Structure]]:
  """Takes one step.

  Args:
    params: Structure of floating tensors.
    state: From `init` or the step before.
    grads: Gradients; the structure of `params`.
    learning_rate: alpha of the paper.
    beta_1: Decay of the first moment, in [0, 1).
    beta_2: Decay of the second moment, in [0, 1).
    epsilon: Added to the root of the second moment, above 0.

  Returns:
    The new params and the new state.

  Raises:
    ValueError: A hyperparameter is out of its range.
  """
  for name, beta in (('beta_1', beta_1), ('beta_2', beta_2)):
    if not 0 <= beta < 1:
      raise ValueError(f'Adam {name} is {beta}; it must be in [0, 1).')
  if not epsilon > 0:
    raise ValueError(f'Adam epsilon is {epsilon}; it must be above 0.')
  count = state['step'] + 1
  first = tf.nest.map_structure(
    lambda m, g: beta_1 * m + (1 - beta_1) * g, state['first_moment'], grads
  )
  second = tf.nest.map_structure(
    lambda v, g: beta_2 * v + (1 - beta_2) * tf.square(g), state['second_moment'], grads
  )

  def step(param: tf.Tensor, m: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    t = tf.cast(count, param.dtype)
    m_hat = m / (1 - scalars.as_dtype(beta_1, param.dtype) ** t)
    v_hat = v / (1 - scalars.as_dtype(beta_2, param.dtype) ** t)
    rate = scalars.as_dtype(learning_rate, param.dtype)
    return param - rate * m_hat / (tf.sqrt(v_hat) + epsilon)

  return (
    tf.nest.map_structure(step, params, first, second),
    collections.OrderedDict(step=count, first_moment=first, second_moment=second),
  )
