"""Maxima and means over positions."""

from collections.abc import Mapping
import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import parameters
from tff_ssl.encoders.operations import operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaxPool(operation.Operation):
  """The maxima of square windows.

  Attributes:
    size: height and width of a window.
    strides: step, in both directions.
    padding: 'same', which no maximum counts, or 'valid'.
  """

  size: int
  strides: int
  padding: str = operation.SAME

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Divides height and width by the strides, rounding up."""
    options = self.strides, self.size, self.padding
    return (*operation.strided_sides(shapes[0], *options), shapes[0][-1])

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return tf.nn.max_pool2d(x, self.size, self.strides, self.padding.upper())

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.MaxPooling2D, {
      'pool_size': self.size,
      'strides': self.strides,
      'padding': self.padding,
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class AveragePool(MaxPool):
  """The means of square windows, as in `MaxPool`."""

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    sizes = self.size, self.strides
    y = tf.nn.avg_pool2d(operation.wide(x), *sizes, self.padding.upper())
    return tf.cast(y, x.dtype)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    return tf.keras.layers.AveragePooling2D, super().keras(shape)[1]


@dataclasses.dataclass(frozen=True)
class GlobalAveragePool(operation.Operation):
  """The mean over positions: [n, height, width, channels] -> [n, channels].

  Tokens are positions too: [n, tokens, units] -> [n, units].
  """

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Keeps the channels."""
    return shapes[0][-1:]

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    return tf.reduce_mean(operation.wide(x), list(range(1, x.shape.rank - 1)))

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    layers = tf.keras.layers
    if len(shape) == 2:
      return layers.GlobalAveragePooling1D, {}
    return layers.GlobalAveragePooling2D, {}
