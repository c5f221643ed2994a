"""Kernels of convolutions and dense layers, their biases, weight standardization.

Source: Qiao, Wang, Liu, Shen, Yuille: Micro-Batch Training with Batch-Channel
Normalization and Weight Standardization. arXiv:1903.10520.
"""

import abc
import dataclasses
import math
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import parameters
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders.operations import operation

# The gain of a layer followed by relu, which halves the mean square (He et al., 2015).
RELU_GAIN = 2.0
WEIGHT_STANDARDIZATION_EPSILON = 1e-5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kernel(operation.Operation):
  """An operation that is linear in a kernel, and that may add a bias.

  Attributes:
    use_bias: whether a bias is added; a norm behind it makes it useless.
    gain: the kernel is drawn with variance gain / (inputs of an output).
  """

  use_bias: bool = False
  gain: float = RELU_GAIN

  @abc.abstractmethod
  def multiply(self, x: Any, kernel: Any) -> tf.Tensor:
    """Returns the result without bias."""

  @abc.abstractmethod
  def gradient(self, x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
    """Returns each client's gradient by the kernel, in any shape.

    Args:
      x: [K, rows, ...], the input.
      dy: [K, rows, ...], the gradient with respect to the result.
    """

  def compute(self, x: Any, kernel: Any, bias: Any = None) -> tf.Tensor:
    """See the base class."""
    return with_bias(self.multiply(x, kernel), bias)

  def per_client(
    self,
    x: Any,
    kernel: per_client_gradients.Parameter,
    bias: per_client_gradients.Parameter | None = None,
  ) -> tf.Tensor:
    """See the base class."""

    def gradient(x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
      return tf.reshape(self.gradient(x, dy), tf.shape(kernel.slots))

    y = per_client_gradients.routed(self.multiply, x, kernel, gradient)
    if bias is None:
      return y
    return per_client_gradients.routed(
      with_bias, y, bias, lambda _, dy: per_client_gradients.sums(operation.wide(dy))
    )


def specs(
  shape: parameters.Shape,
  use_bias: bool,
  gain: float,
  standardized: bool = False,
) -> parameters.Specs:
  """Returns the specs of 'kernel' and, with a bias, 'bias'.

  Args:
    shape: the kernel's, whose last axis is the outputs.
    use_bias: whether there is a bias.
    gain: see `Kernel`.
    standardized: whether the kernel is weight standardized before use.

  Raises:
    ValueError: weight standardization of one input per output.
  """
  fan_in = math.prod(shape[:-1])
  if standardized and fan_in < 2:
    raise ValueError(
      f'the inputs per output are {fan_in}; they must be at least 2 for weight '
      'standardization'
    )
  initializer = parameters.scaled_normal(fan_in, gain)
  transform = standardize if standardized else None
  kernel = parameters.ParameterSpec(shape, initializer, transform)
  return {'kernel': kernel, **bias_spec(shape[-1], use_bias)}


def bias_spec(units: int, use_bias: bool) -> parameters.Specs:
  """Returns the spec of 'bias'; none without a bias."""
  zeros = parameters.ParameterSpec((units,), parameters.Constant(0.0))
  return {'bias': zeros} if use_bias else {}


def with_bias(x: tf.Tensor, bias: Any | None) -> tf.Tensor:
  """Adds a bias to the last axis, if there is one; its gradient is summed in its type.

  Args:
    x: [n, ..., units].
    bias: [units], or None.
  """
  if bias is None:
    return x
  if x.dtype == bias.dtype:
    return tf.nn.bias_add(x, bias)

  @tf.custom_gradient
  def biased(x: tf.Tensor, bias: tf.Tensor) -> Any:
    def gradient(dy: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      return dy, tf.raw_ops.BiasAddGrad(out_backprop=tf.cast(dy, bias.dtype))

    return tf.nn.bias_add(x, tf.cast(bias, x.dtype)), gradient

  return biased(x, bias)


def standardize(kernel: Any) -> tf.Tensor:
  """Standardizes a kernel over the inputs of each of its outputs.

  The variance is 1 / fan_in, not the paper's 1. A layer then neither grows nor shrinks
  its input, and the epsilon of the group norm behind it, which removes any scale, means
  the same in every layer. The columns thus have length 1.

  Args:
    kernel: [..., outputs]; all other axes together are fan_in, at least 2.

  Returns:
    Same shape: mean 0 and sum of squares 1 for each output.
  """
  inputs = list(range(len(kernel.shape) - 1))

  # As in `group_norm`, the derivative is written out to be cheap on a small client: a
  # projection away from the mean and from the column itself.
  @tf.custom_gradient
  def standardized(kernel: tf.Tensor) -> Any:
    centred = kernel - tf.reduce_mean(kernel, inputs)
    # The epsilon is relative to a variance of 1 / fan_in, hence the sum of squares.
    squares = tf.reduce_sum(tf.square(centred), inputs)
    scale = tf.math.rsqrt(squares + WEIGHT_STANDARDIZATION_EPSILON)
    result = centred * scale

    def gradient(dy: tf.Tensor) -> tf.Tensor:
      along = tf.reduce_sum(dy * result, inputs)
      return scale * (dy - tf.reduce_mean(dy, inputs) - result * along)

    return result, gradient

  return standardized(kernel)
