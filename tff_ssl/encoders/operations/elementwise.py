"""Operations on each number, or each channel, by itself."""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any

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


@dataclasses.dataclass(frozen=True)
class Relu6(operation.Operation):
  """min(max(x, 0), 6)."""

  torch_call = 'F.relu6({0})'

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return tf.nn.relu6(x)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.ReLU, {'max_value': 6.0}


@tf.custom_gradient
def _gelu(x: tf.Tensor) -> Any:
  """Computes Gelu, and its derivative, which is written out.

  The derivative that TensorFlow makes takes twice as many passes, and adds two parts in
  bfloat16. Of a bfloat16 map both are computed in float32 and rounded once: each of a
  dozen operations would round to 8 bits, and take longer.
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
    return _gelu(x)

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
class Rescale(operation.Operation):
  """The product with a factor and the sum with an offset, neither of which is trained.

  Attributes:
    factors: of each channel.
    offsets: of each channel.
  """

  factors: tuple[float, ...]
  offsets: tuple[float, ...]

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Checks the number of channels."""
    if shapes[0][-1] != len(self.factors):
      raise ValueError(
        f'the number of channels is {shapes[0][-1]}; it must be {len(self.factors)}'
      )
    return shapes[0]

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    wide = operation.wide(x)
    return tf.cast(wide * [*self.factors] + [*self.offsets], x.dtype)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    options = {'scale': [*self.factors], 'offset': [*self.offsets]}
    return tf.keras.layers.Rescaling, options

  def torch(
    self, shape: parameters.Shape, weights: operation.KerasWeights
  ) -> operation.TorchCode:
    """See the base class."""
    del shape, weights
    factors, offsets = (
      f'{{0}}.new_tensor({[*each]})[:, None, None]'
      for each in (self.factors, self.offsets)
    )
    return operation.TorchCode(f'{{0}} * {factors} + {offsets}')


@dataclasses.dataclass(frozen=True)
class RepeatChannels(operation.Operation):
  """The channels several times, one after another.

  Attributes:
    count: how often.
  """

  count: int

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Multiplies the channels."""
    return (*shapes[0][:-1], self.count * shapes[0][-1])

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return tf.concat([x] * self.count, axis=-1)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.Concatenate, {}

  def call_keras(self, layer: Any, *inputs: Any) -> Any:
    """Calls the layer, which takes a list."""
    return layer([*inputs] * self.count)

  def torch(
    self, shape: parameters.Shape, weights: operation.KerasWeights
  ) -> operation.TorchCode:
    """See the base class."""
    del shape, weights
    return operation.TorchCode(f'torch.cat([{{0}}] * {self.count}, 1)')


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
