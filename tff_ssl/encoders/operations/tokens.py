"""Operations on the tokens of an image: the list of its positions, and more tokens."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import parameters
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders.operations import operation

# The equation of the Keras layers that add an array to every example; its product is
# one with ones.
ADDITION = 'ntd,d->ntd'
# Variance of what is trained for each token and unit, as published networks draw it.
_VARIANCE = 0.02**2


@dataclasses.dataclass(frozen=True)
class Tokens(operation.Operation):
  """The positions, row by row: [n, h, w, channels] -> [n, h * w, channels]."""

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Multiplies height and width."""
    return (math.prod(shapes[0][:2]), *shapes[0][2:])

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return tf.reshape(x, [-1, *self.output_shape(tuple(x.shape[1:]))])

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    return tf.keras.layers.Reshape, {'target_shape': self.output_shape(shape)}


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
    kind, options = _addition(shape)
    return kind, {**options, 'trainable': False}

  def keras_weights(self, *values: Any) -> list[Any]:
    """Returns ones and the values."""
    del values
    return [np.ones(self.values.shape[-1:]), self.values]


class _Trained(operation.Operation):
  """An operation with an array of tokens, to which each example adds its gradient."""

  def per_client(self, x: Any, tokens: per_client_gradients.Parameter) -> tf.Tensor:
    """See the base class."""

    def gradient(x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
      del x
      return tf.reduce_sum(self._own(operation.wide(dy)), 1)

    return per_client_gradients.routed(self.compute, x, tokens, gradient)

  def _own(self, dy: tf.Tensor) -> tf.Tensor:
    """Returns what of [..., tokens, units] is behind the array; all by default."""
    return dy


@dataclasses.dataclass(frozen=True)
class Positions(_Trained):
  """The sum of every example [tokens, units] and an array that is trained."""

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """The array."""
    initializer = parameters.scaled_normal(1, _VARIANCE)
    return {'bias': parameters.ParameterSpec(shape, initializer)}

  def compute(self, x: Any, bias: Any) -> tf.Tensor:
    """See the base class."""
    return tf.cast(operation.wide(x) + bias, x.dtype)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """A product with ones, and a bias."""
    return _addition(shape)

  def keras_weights(self, *values: Any) -> list[Any]:
    """Returns ones and the array."""
    return [np.ones(values[0].shape[-1:]), values[0]]


@dataclasses.dataclass(frozen=True)
class Prefix(_Trained):
  """Trained tokens before those of every example, such as a class token.

  Attributes:
    count: how many.
  """

  count: int

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """The tokens."""
    initializer = parameters.scaled_normal(1, _VARIANCE)
    own = (self.count, shape[-1])
    return {'tokens': parameters.ParameterSpec(own, initializer)}

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Adds to the number of tokens."""
    return shapes[0][0] + self.count, shapes[0][1]

  def compute(self, x: Any, tokens: Any) -> tf.Tensor:
    """See the base class."""
    wide = operation.wide(x)
    own = tf.broadcast_to(tokens, [tf.shape(x)[0], *tokens.shape])
    return tf.cast(tf.concat([own, wide], axis=1), x.dtype)

  def _own(self, dy: tf.Tensor) -> tf.Tensor:
    return dy[..., : self.count, :]

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.ZeroPadding1D, {'padding': (self.count, 0)}

  def emit_keras(
    self,
    make: Callable[..., Any],
    shape: parameters.Shape,
    values: Sequence[Any],
    *inputs: Any,
  ) -> Any:
    """Emits zeros in the tokens' place, and an addition of the tokens to them."""
    kind, options = self.keras(shape)
    shape = self.output_shape(shape)
    y = make(kind, part='zeros', **options)(*inputs)
    kind, options = _addition(shape)
    layer = make(kind, **options)
    y = layer(y)
    array = np.zeros(shape)
    array[: self.count] = values[0]
    layer.set_weights([np.ones(shape[-1]), array])
    return y


@dataclasses.dataclass(frozen=True)
class CropTokens(operation.Operation):
  """Some of the tokens, one after another: [n, tokens, units] -> [n, count, units].

  Attributes:
    start: the first one.
    count: how many; None: all that follow.
  """

  start: int
  count: int | None = None

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Replaces the number of tokens."""
    rest = shapes[0][0] - self.start
    return rest if self.count is None else self.count, shapes[0][1]

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return x[:, self.start :][:, : self.count]

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    behind = shape[0] - self.start - self.output_shape(shape)[0]
    return tf.keras.layers.Cropping1D, {'cropping': (self.start, behind)}


def _addition(shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
  """Returns the Keras layer that adds an array to every example."""
  return tf.keras.layers.EinsumDense, {
    'equation': ADDITION,
    'output_shape': shape,
    'bias_axes': 'td',
  }
