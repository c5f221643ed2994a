"""Operations on each number by itself, and the list of an image's positions."""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import parameters
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders.operations import operation


@dataclasses.dataclass(frozen=True)
class Relu(operation.Operation):
  """max(x, 0)."""

  torch_call = 'F.relu({0})'

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return tf.nn.relu(x)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.ReLU, {}


@tf.custom_gradient
def _half_gelu(x: tf.Tensor) -> Any:
  """Computes Gelu of a bfloat16 map in float32, and so its derivative.

  In bfloat16, each of the function's dozen operations would round to 8 bits, and take
  longer than in float32. The derivative is written out, because TensorFlow's adds two
  parts in bfloat16.
  """
  wide = operation.wide(x)
  scaled = wide * math.sqrt(0.5)
  below = 0.5 * tf.math.erf(scaled) + 0.5

  def gradient(dy: tf.Tensor) -> tf.Tensor:
    density = tf.exp(-0.5 * math.log(2.0 * math.pi) - tf.square(scaled))
    return tf.cast(operation.wide(dy) * (below + wide * density), dy.dtype)

  return tf.cast(wide * below, x.dtype), gradient


@dataclasses.dataclass(frozen=True)
class Gelu(operation.Operation):
  """x times the standard normal distribution function of x."""

  torch_call = 'F.gelu({0})'

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return _half_gelu(x) if x.dtype == tf.bfloat16 else tf.nn.gelu(x)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.Activation, {'activation': 'gelu'}


@dataclasses.dataclass(frozen=True)
class Add(operation.Operation):
  """The sum of two inputs of one shape."""

  torch_call = '{0} + {1}'

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Checks that both shapes are equal."""
    if shapes[0] != shapes[1]:
      raise ValueError(
        f'the second shape is {shapes[1]}; it must be the first, {shapes[0]}'
      )
    return shapes[0]

  def compute(self, x: Any, y: Any) -> tf.Tensor:
    """See the base class."""
    return x + y

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.Add, {}

  def call_keras(self, layer: Any, *inputs: Any) -> Any:
    """Calls the layer, which takes a list."""
    return layer(list(inputs))


@dataclasses.dataclass(frozen=True)
class Offset(operation.Operation):
  """The sum of every example [tokens, units] and an array, which is not trained.

  Attributes:
    values: [tokens, units].
  """

  values: np.ndarray

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Checks that the values have the shape of an example."""
    if shapes[0] != self.values.shape:
      raise ValueError(
        f'the shape of values is {self.values.shape}; it must be {shapes[0]}'
      )
    return shapes[0]

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return x + tf.constant(self.values, x.dtype)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """A product with ones whose bias is the values and which is not trained."""
    return tf.keras.layers.EinsumDense, {
      'equation': 'ntd,d->ntd',
      'output_shape': shape,
      'bias_axes': 'td',
      'trainable': False,
    }

  def keras_weights(self, *values: Any) -> list[Any]:
    """Returns ones and the values."""
    del values
    return [np.ones(self.values.shape[-1:]), self.values]

  def torch(
    self, shape: parameters.Shape, weights: operation.KerasWeights
  ) -> operation.TorchCode:
    """See the base class."""
    del weights
    sizes = ', '.join(map(str, shape))
    module = f'nn.Parameter(torch.zeros({sizes}), requires_grad=False)'
    return operation.TorchCode('{0} + {module}', module, {'': self.values})


@dataclasses.dataclass(frozen=True)
class LayerScale(operation.Operation):
  """The product with a trained factor for each channel or unit.

  Source: Touvron et al.: Going deeper with Image Transformers. ICCV 2021. Section 2.

  Attributes:
    initial: the factors' value before training.
  """

  initial: float = 1e-6

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """The factors, by the name that Keras gives them."""
    initializer = parameters.Constant(self.initial)
    return {'kernel': parameters.ParameterSpec(shape[-1:], initializer)}

  def compute(self, x: Any, kernel: Any) -> tf.Tensor:
    """See the base class."""
    return tf.cast(operation.wide(x) * kernel, x.dtype)

  def per_client(self, x: Any, kernel: per_client_gradients.Parameter) -> tf.Tensor:
    """See the base class."""
    rows = kernel.rows(x)
    return self.compute(
      x, tf.reshape(rows, [-1, *[1] * (x.shape.rank - 2), x.shape[-1]])
    )

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    axes = 'abc'[: len(shape) - 1]
    options = {'equation': f'n{axes}d,d->n{axes}d', 'output_shape': shape}
    return tf.keras.layers.EinsumDense, options

  def torch(
    self, shape: parameters.Shape, weights: operation.KerasWeights
  ) -> operation.TorchCode:
    """See the base class."""
    call = '{0} * {module}' + ('[:, None, None]' if len(shape) == 3 else '')
    module = f'nn.Parameter(torch.ones({shape[-1]}))'
    return operation.TorchCode(call, module, {'': weights('')[0]})


@dataclasses.dataclass(frozen=True)
class Tokens(operation.Operation):
  """The positions, row by row: [n, h, w, channels] -> [n, h * w, channels]."""

  torch_call = '{0}.flatten(2).transpose(1, 2)'

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Multiplies height and width."""
    return (math.prod(shapes[0][:2]), *shapes[0][2:])

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return tf.reshape(x, [-1, *self.output_shape(tuple(x.shape[1:]))])

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    return tf.keras.layers.Reshape, {'target_shape': self.output_shape(shape)}
