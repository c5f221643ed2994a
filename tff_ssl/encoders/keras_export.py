"""The interpreter that emits Keras layers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import normalization
from tff_ssl.encoders import ops
from tff_ssl.encoders import parameters


class ToKeras(ops.Operations):
  """Emits standard Keras layers that hold given values. A value is a Keras tensor.

  Transforms are applied once: the layers hold standardized kernels, and training them
  further means training without weight standardization.
  """

  def __init__(self, params: Mapping[str, Any], dtype: tf.DType) -> None:
    """Builds the interpreter.

    Args:
      params: name -> value, with concrete values (not symbolic).
      dtype: of the layers.
    """
    super().__init__()
    self._params = params
    self._dtype = dtype
    self._num_plain_layers = 0

  def shape(self, x: Any) -> tuple[int, ...]:
    """Returns the static shape after the batch axis."""
    return tuple(x.shape[1:])

  def parameter(
    self,
    name: str,
    shape: tuple[int, ...],
    initializer: parameters.Initializer,
    transform: parameters.Transform | None = None,
  ) -> np.ndarray:
    """Looks the value up."""
    del shape, initializer
    value = self._params[self.path(name)]
    return np.asarray(value if transform is None else transform(value))

  def statistic(
    self, name: str, shape: tuple[int, ...], initializer: parameters.Initializer
  ) -> np.ndarray:
    """Looks the value up."""
    return self.parameter(name, shape, initializer)

  def relu(self, x: Any) -> Any:
    """Emits ReLU."""
    return self._plain(tf.keras.layers.ReLU)(x)

  def gelu(self, x: Any) -> Any:
    """Emits an activation."""
    return self._plain(tf.keras.layers.Activation, activation='gelu')(x)

  def add(self, x: Any, y: Any) -> Any:
    """Emits Add."""
    return self._plain(tf.keras.layers.Add)([x, y])

  def offset(self, x: Any, name: str, values: np.ndarray) -> Any:
    """Emits a product with ones whose bias is the values and which is not trained."""
    layer = self._named(
      tf.keras.layers.EinsumDense,
      name,
      equation='ntd,d->ntd',
      output_shape=values.shape,
      bias_axes='td',
      trainable=False,
    )
    return _with_values(layer, x, np.ones(values.shape[-1:]), values)

  def tokens(self, x: Any) -> Any:
    """Emits Reshape."""
    _, height, width, channels = x.shape
    layer = self._plain(
      tf.keras.layers.Reshape, target_shape=(height * width, channels)
    )
    return layer(x)

  def max_pool(self, x: Any, *, size: int, strides: int) -> Any:
    """Emits MaxPooling2D."""
    layer = tf.keras.layers.MaxPooling2D
    return self._plain(layer, pool_size=size, strides=strides, padding='same')(x)

  def global_average_pool(self, x: Any) -> Any:
    """Emits GlobalAveragePooling2D, or 1D for tokens."""
    if len(x.shape) == 3:
      return self._plain(tf.keras.layers.GlobalAveragePooling1D)(x)
    return self._plain(tf.keras.layers.GlobalAveragePooling2D)(x)

  def tap(self, x: Any, name: str) -> Any:
    """Emits an identity with the tap's name, so that `get_layer` finds it."""
    return self._named(tf.keras.layers.Activation, name, activation='linear')(x)

  def _conv2d(self, x: Any, kernel: Any, bias: Any, strides: int) -> Any:
    layer = self._named(
      tf.keras.layers.Conv2D,
      filters=kernel.shape[-1],
      kernel_size=kernel.shape[:2],
      strides=strides,
      padding='same',
      use_bias=bias is not None,
    )
    return _with_values(layer, x, kernel, bias)

  def _dense(self, x: Any, kernel: Any, bias: Any) -> Any:
    layer = self._named(
      tf.keras.layers.Dense, units=kernel.shape[-1], use_bias=bias is not None
    )
    return _with_values(layer, x, kernel, bias)

  def _group_norm(self, x: Any, gamma: Any, beta: Any, groups: int) -> Any:
    layer = self._named(
      tf.keras.layers.GroupNormalization,
      groups=groups,
      epsilon=normalization.NORM_EPSILON,
    )
    return _with_values(layer, x, gamma, beta)

  def _batch_norm(self, x: Any, gamma: Any, beta: Any, mean: Any, square: Any) -> Any:
    layer = self._named(
      tf.keras.layers.BatchNormalization, epsilon=normalization.NORM_EPSILON
    )
    variance = np.asarray(normalization.variance(mean, square))
    return _with_values(layer, x, gamma, beta, mean, variance)

  def _layer_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
    layer = self._named(
      tf.keras.layers.LayerNormalization, epsilon=normalization.NORM_EPSILON
    )
    return _with_values(layer, x, gamma, beta)

  def _attention(
    self, x: Any, qkv: tuple[Any, Any], output: tuple[Any, Any], heads: int
  ) -> Any:
    units = x.shape[-1]
    by_head = (heads, units // heads)
    layer = self._named(
      tf.keras.layers.MultiHeadAttention, num_heads=heads, key_dim=by_head[1]
    )
    y = layer(x, x)
    kernels = np.split(qkv[0].reshape([units, -1, *by_head]), 3, axis=1)
    biases = np.split(qkv[1].reshape([-1, *by_head]), 3)
    values = []
    for kernel, bias in zip(kernels, biases, strict=True):
      values += [kernel[:, 0], bias[0]]
    layer.set_weights([*values, output[0].reshape([*by_head, units]), output[1]])
    return y

  def _named(self, layer: Any, name: str = '', **config: Any) -> Any:
    return layer(
      name=self.path(name).replace('/', '_'), dtype=self._dtype.name, **config
    )

  def _plain(self, layer: Any, **config: Any) -> Any:
    # Counted here: Keras counts over the whole process, so that two exports of one
    # network would differ.
    self._num_plain_layers += 1
    name = f'{layer.__name__.lower()}_{self._num_plain_layers}'
    return layer(name=name, dtype=self._dtype.name, **config)


def _with_values(layer: Any, x: Any, *values: np.ndarray | None) -> Any:
  """Calls a layer, which creates its weights, and gives them their values."""
  y = layer(x)
  layer.set_weights([value for value in values if value is not None])
  return y
