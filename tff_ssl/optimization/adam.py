"""Adam, and AdamW, which decays weights directly and not through the gradient.

Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.
Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, Algorithm 2:

  w <- w - rate * (m_hat / (sqrt(v_hat) + epsilon) + weight_decay * w)

Deviations:
  The decay is multiplied by the full rate, as in the usual programs. The paper
    multiplies it only by the schedule's factor: its lambda is rate * weight_decay.
  Parameters of at most one dimension (biases, scales of a norm) take no decay, as in
    MAE (He et al., 2022) and in `lars`.
"""

import collections
from typing import Any

import tensorflow as tf

from tff_ssl.optimization import scalars

# A tensor, or a (nested) dict or sequence of tensors.
Structure = Any

# Decay of the first moment, and what is added to the root of the second: the paper's.
_BETA_1, _EPSILON = 0.9, 1e-8


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
  beta_2: float = 0.999,
  weight_decay: float = 0.0,
) -> tuple[Structure, collections.OrderedDict[str, Structure]]:
  """Takes one step.

  Args:
    params: Structure of floating tensors.
    state: What `init` or the step before returned.
    grads: Gradients; the structure of `params`.
    learning_rate: alpha of the paper.
    beta_2: Decay of the second moment, in [0, 1).
    weight_decay: AdamW's, at least 0; 0: Adam.

  Returns:
    The new params and the new state.
  """
  count = state['step'] + 1
  first = tf.nest.map_structure(
    lambda m, g: _BETA_1 * m + (1 - _BETA_1) * g, state['first_moment'], grads
  )
  second = tf.nest.map_structure(
    lambda v, g: beta_2 * v + (1 - beta_2) * tf.square(g), state['second_moment'], grads
  )

  def step(param: tf.Tensor, m: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    t = tf.cast(count, param.dtype)
    m_hat = m / (1 - scalars.as_dtype(_BETA_1, param.dtype) ** t)
    v_hat = v / (1 - scalars.as_dtype(beta_2, param.dtype) ** t)
    rate = scalars.as_dtype(learning_rate, param.dtype)
    moved = param - rate * m_hat / (tf.sqrt(v_hat) + _EPSILON)
    if not weight_decay or param.shape.rank <= 1:
      return moved
    return moved - rate * scalars.as_dtype(weight_decay, param.dtype) * param

  return (
    tf.nest.map_structure(step, params, first, second),
    collections.OrderedDict(step=count, first_moment=first, second_moment=second),
  )
