"""LARS: layer-wise adaptive rate scaling.

You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks", 2017
(arXiv:1708.03888), Algorithm 1. For a parameter tensor w with gradient g:

  ratio <- 0.001 * |w| / (|g| + weight_decay * |w|)
  v     <- momentum * v + learning_rate * ratio * (g + weight_decay * w)
  w     <- w - v

Deviations:
  The ratio is 1 where |w| or |g| is zero. The paper leaves both cases open: a
    parameter that starts at zero could otherwise never move.
  Parameters of at most one dimension (biases, scales of a norm) take plain momentum
    SGD, without decay, as is usual since SimCLR (Chen et al., 2020).
"""

from typing import Any

import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.optimization import scalars

# A tensor, or a (nested) dict or sequence of tensors.
Structure = Any

# eta of the paper.
_TRUST = 0.001


def init(params: Structure) -> Structure:
  """Returns the velocities before the first step: zeros in the shape of `params`."""
  return tf.nest.map_structure(tf.zeros_like, params)


def trust_ratio(
  param: tf.Tensor, grad: tf.Tensor, weight_decay: float | tf.Tensor = 0.0
) -> tf.Tensor:
  """Local learning rate of one parameter tensor, a scalar of its dtype.

  Source: You et al. 2017, Eq. 6; 1 where either norm is zero.
  """
  weight_decay = scalars.as_dtype(weight_decay, param.dtype)
  param_norm, grad_norm = tf.norm(param), tf.norm(grad)
  defined = (param_norm > 0) & (grad_norm > 0)
  # The inner where keeps the branch not taken free of 0 / 0.
  denominator = tf.where(
    defined, grad_norm + weight_decay * param_norm, tf.ones_like(grad_norm)
  )
  ratio = scalars.as_dtype(_TRUST, param.dtype) * param_norm / denominator
  return tf.where(defined, ratio, tf.ones_like(ratio))


def update(
  params: Structure,
  state: Structure,
  grads: Structure,
  learning_rate: float | tf.Tensor,
  momentum: float | tf.Tensor = 0.9,
  weight_decay: float | tf.Tensor = 0.0,
) -> tuple[Structure, Structure]:
  """Takes one step.

  Args:
    params: Structure of floating tensors.
    state: Velocities, from `init` or the step before; the structure of `params`.
    grads: Gradients; the structure of `params`.
    learning_rate: Global rate of this step.
    momentum: Share of the velocity that is kept, in [0, 1).
    weight_decay: Coefficient of the l2 penalty's gradient, at least 0.

  Returns:
    The new params and the new state.
  """

  def step(
    param: tf.Tensor, velocity: tf.Tensor, grad: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    rate = scalars.as_dtype(learning_rate, param.dtype)
    if param.shape.rank > 1:
      rate *= trust_ratio(param, grad, weight_decay)
      grad += scalars.as_dtype(weight_decay, param.dtype) * param
    velocity = scalars.as_dtype(momentum, param.dtype) * velocity + rate * grad
    return param - velocity, velocity

  stepped = [
    step(param, velocity, grad)
    for param, velocity, grad in zip(
      tf.nest.flatten(params),
      tf.nest.flatten(state),
      tf.nest.flatten(grads),
      strict=True,
    )
  ]
  return (
    tf.nest.pack_sequence_as(params, [param for param, _ in stepped]),
    tf.nest.pack_sequence_as(state, [velocity for _, velocity in stepped]),
  )


def check_hyperparameters(
  momentum: float | tf.Tensor, weight_decay: float | tf.Tensor
) -> None:
  """Raises on a value out of range; a tensor's value is not known at this point."""
  if not tf.is_tensor(momentum):
    checks.below_one(momentum=momentum)
  if not tf.is_tensor(weight_decay):
    checks.not_negative(weight_decay=weight_decay)
