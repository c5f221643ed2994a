"""Products of the last axis with a matrix, and attention, which is made of them."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import parameters
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders.operations import kernels
from tff_ssl.encoders.operations import operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dense(kernels.Kernel):
  """A product of the last axis with a matrix: [n, ..., inputs] -> [n, ..., units].

  Attributes:
    units: outputs.
    standardize: whether the kernel is weight standardized before use.
  """

  units: int
  use_bias: bool = True
  standardize: bool = False

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """Kernel and bias."""
    kernel = (shape[-1], self.units)
    return kernels.specs(kernel, self.use_bias, self.gain, self.standardize)

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Replaces the last axis."""
    return (*shapes[0][:-1], self.units)

  def multiply(self, x: Any, kernel: Any) -> tf.Tensor:
    """See the base class."""
    # One product of two matrices: with more axes, TensorFlow makes a batch of products
    # that all read the kernel, and sums as many gradients of the kernel.
    rows = x if x.shape.rank == 2 else tf.reshape(x, [-1, x.shape[-1]])
    y = tf.linalg.matmul(rows, tf.cast(kernel, x.dtype))
    return y if x.shape.rank == 2 else tf.reshape(y, [-1, *x.shape[1:-1], self.units])

  def gradient(self, x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
    """See the base class."""
    return per_client_gradients.products([x], dy)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    options = {'units': self.units, 'use_bias': self.use_bias}
    return tf.keras.layers.Dense, options

  def torch(
    self, shape: parameters.Shape, weights: operation.KerasWeights
  ) -> operation.TorchCode:
    """A convolution of each position, if there are maps."""
    kernel, *bias = weights('')
    is_maps = len(shape) == 3
    kind, size = ('nn.Conv2d', ', 1') if is_maps else ('nn.Linear', '')
    no_bias = '' if self.use_bias else ', bias=False'
    module = f'{kind}({shape[-1]}, {self.units}{size}{no_bias})'
    weight = kernel.T[..., np.newaxis, np.newaxis] if is_maps else kernel.T
    state = {'weight': weight, **dict(zip(['bias'], bias, strict=False))}
    return operation.TorchCode('{module}({0})', module, state)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention(operation.Operation):
  """Multi-head self-attention: [n, tokens, units] -> [n, tokens, units].

  The result is the heads' softmax(q k^T / sqrt(units / heads)) v, side by side, times a
  matrix.

  Source: Vaswani et al.: Attention Is All You Need. NeurIPS 2017. Section 3.2.

  Attributes:
    heads: number of heads, a divisor of units.
  """

  heads: int

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """Queries, keys and values side by side, within each the heads; and the output."""
    units = shape[-1]
    if units % self.heads:
      raise ValueError(f'heads is {self.heads}; it must divide the {units} units')
    return {
      f'{part}/{name}': spec
      for part, outputs in (('qkv', 3 * units), ('output', units))
      for name, spec in kernels.specs((units, outputs), True, gain=1.0).items()
    }

  def compute(self, x: Any, *values: Any) -> tf.Tensor:
    """See the base class."""
    return self._attend(Dense.compute, x, *values)

  def per_client(self, x: Any, *values: per_client_gradients.Parameter) -> tf.Tensor:
    """See the base class."""
    return self._attend(Dense.per_client, x, *values)

  def _attend(
    self,
    multiply: Callable[..., tf.Tensor],
    x: Any,
    qkv: Any,
    qkv_bias: Any,
    output: Any,
    output_bias: Any,
  ) -> tf.Tensor:
    """Attends; `multiply` is the method of `Dense` that computes the products."""
    tokens, units = x.shape[1:]
    size = units // self.heads
    projected = multiply(Dense(units=3 * units), x, qkv, qkv_bias)
    projected = tf.reshape(projected, [-1, tokens, 3, self.heads, size])
    q, k, v = tf.unstack(tf.transpose(projected, [2, 0, 3, 1, 4]))
    scores = tf.linalg.matmul(q * size**-0.5, k, transpose_b=True)
    weights = tf.cast(tf.nn.softmax(operation.wide(scores)), x.dtype)
    mixed = tf.transpose(tf.linalg.matmul(weights, v), [0, 2, 1, 3])
    mixed = tf.reshape(mixed, [-1, tokens, units])
    return multiply(Dense(units=units), mixed, output, output_bias)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.Attention, {}

  def emit_keras(
    self,
    make: Callable[..., Any],
    shape: parameters.Shape,
    values: Sequence[Any],
    *inputs: Any,
  ) -> Any:
    """Emits layers of each head, whose queries are scaled.

    Keras's own layer of all heads cannot be in one file for Keras 2, which needs the
    shapes in its options, and for Keras 3, which refuses them.
    """
    qkv, qkv_bias, *output = values
    kind, options = self.keras(shape)
    scales = (shape[-1] // self.heads) ** -0.5, 1.0, 1.0
    mixed = []
    for head in range(self.heads):
      q, k, v = (
        _emit_dense(make, f'{part}{head}', inputs[0], kernel * scale, bias * scale)
        for part, scale, kernel, bias in zip(
          ('query', 'key', 'value'),
          scales,
          np.split(qkv, 3 * self.heads, axis=1)[head :: self.heads],
          np.split(qkv_bias, 3 * self.heads)[head :: self.heads],
          strict=True,
        )
      )
      mixed.append(make(kind, part=f'head{head}', **options)([q, v, k]))
    y = mixed[0]
    if self.heads > 1:
      y = make(tf.keras.layers.Concatenate, part='heads')(mixed)
    return _emit_dense(make, 'output', y, *output)

  def join(self, weights: operation.KerasWeights) -> list[np.ndarray]:
    """Returns the values that `emit_keras` has laid out as weights of each head."""
    parts = [
      weights(f'{part}{head}')
      for part in ('query', 'key', 'value')
      for head in range(self.heads)
    ]
    # Queries are scaled.
    scale = np.float32(parts[0][0].shape[1] ** -0.5)
    for index in range(self.heads):
      parts[index] = [value / scale for value in parts[index]]
    joined = [np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)]
    return [*joined, *weights('output')]

  def torch(
    self, shape: parameters.Shape, weights: operation.KerasWeights
  ) -> operation.TorchCode:
    """See the base class."""
    kernel, bias, output, output_bias = self.join(weights)
    return operation.TorchCode(
      '{module}({0}, {0}, {0}, need_weights=False)[0]',
      f'nn.MultiheadAttention({shape[-1]}, {self.heads}, batch_first=True)',
      {
        'in_proj_weight': kernel.T,
        'in_proj_bias': bias,
        'out_proj.weight': output.T,
        'out_proj.bias': output_bias,
      },
    )


def _emit_dense(
  make: Callable[..., Any], part: str, x: Any, kernel: np.ndarray, bias: np.ndarray
) -> Any:
  """Emits a dense layer with given values."""
  layer = make(tf.keras.layers.Dense, part=part, units=len(bias))
  y = layer(x)
  layer.set_weights([kernel, bias])
  return y
