"""Two meanings of `Operations`: the parameters described, and tensors computed."""

import collections
from collections.abc import Mapping, MutableMapping
import math
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import attention
from tff_ssl.encoders import normalization
from tff_ssl.encoders import ops
from tff_ssl.encoders import parameters


class Describe(ops.Operations):
  """Collects the parameters' specs. A value is the shape of one example.

  Attributes:
    specs: name -> spec, in the order of use.
    taps: name -> shape of one example.
  """

  def __init__(self) -> None:
    super().__init__()
    self.specs: collections.OrderedDict[str, parameters.ParameterSpec] = (
      collections.OrderedDict()
    )
    self.taps: dict[str, tuple[int, ...]] = {}

  def shape(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Returns `x`."""
    return x

  def parameter(
    self,
    name: str,
    shape: tuple[int, ...],
    initializer: parameters.Initializer,
    transform: parameters.Transform | None = None,
  ) -> None:
    """Records the spec."""
    del transform
    path = self.path(name)
    if path in self.specs:
      raise ValueError(f'parameter names must be unique, got {path!r} twice')
    self.specs[path] = parameters.ParameterSpec(shape, initializer)

  def relu(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Keeps the shape."""
    return x

  def gelu(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Keeps the shape."""
    return x

  def add(self, x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    """Keeps the shape, which must be the same for both."""
    if x != y:
      raise ValueError(f'add in {self.path()!r} needs equal shapes, got {x} and {y}')
    return x

  def offset(
    self, x: tuple[int, ...], name: str, values: np.ndarray
  ) -> tuple[int, ...]:
    """Keeps the shape, which must be that of the values."""
    if x != values.shape:
      raise ValueError(
        f'offset {self.path(name)!r} needs values of shape {x}, got {values.shape}'
      )
    return x

  def tokens(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Multiplies height and width."""
    height, width, channels = x
    return (height * width, channels)

  def max_pool(self, x: tuple[int, ...], *, size: int, strides: int) -> tuple[int, ...]:
    """Divides height and width by the strides, rounding up."""
    del size
    height, width, channels = x
    return (math.ceil(height / strides), math.ceil(width / strides), channels)

  def global_average_pool(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Keeps the channels."""
    return x[-1:]

  def tap(self, x: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Records the shape."""
    self.taps[self.path(name)] = x
    return x

  def _conv2d(
    self, x: tuple[int, ...], kernel: Any, bias: Any, strides: int
  ) -> tuple[int, ...]:
    # The channels of the result are those of the kernel just recorded.
    del kernel, bias
    filters = self.specs[self.path('kernel')].shape[-1]
    return (math.ceil(x[0] / strides), math.ceil(x[1] / strides), filters)

  def _dense(self, x: tuple[int, ...], kernel: Any, bias: Any) -> tuple[int, ...]:
    del kernel, bias
    return (*x[:-1], self.specs[self.path('kernel')].shape[-1])

  def _group_norm(
    self, x: tuple[int, ...], gamma: Any, beta: Any, groups: int
  ) -> tuple[int, ...]:
    del gamma, beta, groups
    return x

  def _layer_norm(self, x: tuple[int, ...], gamma: Any, beta: Any) -> tuple[int, ...]:
    del gamma, beta
    return x

  def _attention(
    self, x: tuple[int, ...], qkv: Any, output: Any, heads: int
  ) -> tuple[int, ...]:
    del qkv, output, heads
    return x


class Apply(ops.Operations):
  """Computes with given parameters. A value is a tensor."""

  def __init__(
    self, params: Mapping[str, Any], taps: MutableMapping[str, tf.Tensor]
  ) -> None:
    """Builds the interpreter.

    Args:
      params: name -> value.
      taps: receives the tapped tensors by name.
    """
    super().__init__()
    self._params = params
    self._taps = taps

  def shape(self, x: tf.Tensor) -> tuple[int, ...]:
    """Returns the static shape after the batch axis."""
    return tuple(x.shape[1:])

  def parameter(
    self,
    name: str,
    shape: tuple[int, ...],
    initializer: parameters.Initializer,
    transform: parameters.Transform | None = None,
  ) -> Any:
    """Looks the value up."""
    del shape, initializer
    value = self._params[self.path(name)]
    return value if transform is None else transform(value)

  def relu(self, x: tf.Tensor) -> tf.Tensor:
    """Returns max(x, 0)."""
    return tf.nn.relu(x)

  def gelu(self, x: tf.Tensor) -> tf.Tensor:
    """Returns GELU, by the error function."""
    return tf.nn.gelu(x)

  def add(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns x + y."""
    return x + y

  def offset(self, x: tf.Tensor, name: str, values: np.ndarray) -> tf.Tensor:
    """Returns x + values."""
    del name
    return x + tf.constant(values, x.dtype)

  def tokens(self, x: tf.Tensor) -> tf.Tensor:
    """Merges height and width."""
    _, height, width, channels = x.shape
    return tf.reshape(x, [-1, height * width, channels])

  def max_pool(self, x: tf.Tensor, *, size: int, strides: int) -> tf.Tensor:
    """Returns the maxima of windows."""
    return tf.nn.max_pool2d(x, size, strides, 'SAME')

  def global_average_pool(self, x: tf.Tensor) -> tf.Tensor:
    """Averages over all axes between the first and the last."""
    return tf.reduce_mean(x, list(range(1, x.shape.rank - 1)))

  def tap(self, x: tf.Tensor, name: str) -> tf.Tensor:
    """Hands `x` to the caller."""
    self._taps[self.path(name)] = x
    return x

  def _conv2d(self, x: tf.Tensor, kernel: Any, bias: Any, strides: int) -> tf.Tensor:
    y = tf.nn.conv2d(x, kernel, strides, 'SAME')
    return y if bias is None else tf.nn.bias_add(y, bias)

  def _dense(self, x: tf.Tensor, kernel: Any, bias: Any) -> tf.Tensor:
    return attention.dense(x, kernel, bias)

  def _group_norm(self, x: tf.Tensor, gamma: Any, beta: Any, groups: int) -> tf.Tensor:
    return normalization.group_norm(x, gamma, beta, groups)

  def _layer_norm(self, x: tf.Tensor, gamma: Any, beta: Any) -> tf.Tensor:
    return normalization.layer_norm(x, gamma, beta)

  def _attention(
    self, x: tf.Tensor, qkv: tuple[Any, Any], output: tuple[Any, Any], heads: int
  ) -> tf.Tensor:
    return attention.self_attention(x, qkv, output, heads)
