"""The interpreter that computes a network's output.

The maps have the type of the input. If that is bfloat16, which has 8 significant bits,
TensorFlow's sums have 8 bits too: the mean of 65,536 numbers of 1.2 is 0.008, and the
gradient of a bias over 16,384 rows is 256. Only kernels are therefore cast to bfloat16,
for convolutions and matrix products, which sum in float32. Everything else that sums is
computed in float32: norms, biases (for their gradients), softmax, means over positions.
With other types nothing is cast.
"""

import collections
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import normalization
from tff_ssl.encoders import ops
from tff_ssl.encoders import parameters

# Floats of an AVX-512 register: for fewer channels oneDNN uses other kernels.
_CHANNELS = 16


class Apply(ops.Operations):
  """Computes with given parameters. A value is a tensor.

  Attributes:
    moments: in training, the batch's own, by the names of the population statistics.
  """

  def __init__(
    self,
    params: Mapping[str, Any],
    taps: MutableMapping[str, tf.Tensor],
    *,
    training: bool = True,
    batches: int = 1,
  ) -> None:
    """Builds the interpreter.

    Args:
      params: name -> value, including population statistics unless in training.
      taps: receives the tapped tensors by name.
      training: whether batch norm normalizes by the batch, not by the population.
      batches: how many batches the input holds, one after another, in training.
    """
    super().__init__()
    self.moments: collections.OrderedDict[str, tf.Tensor] = collections.OrderedDict()
    self._params = params
    self._taps = taps
    self._training = training
    self._batches = batches

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

  def statistic(
    self, name: str, shape: tuple[int, ...], initializer: parameters.Initializer
  ) -> Any:
    """Looks the value up; there is none in training."""
    del shape, initializer
    return None if self._training else self._params[self.path(name)]

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
    return tf.reduce_mean(wide(x), list(range(1, x.shape.rank - 1)))

  def tap(self, x: tf.Tensor, name: str) -> tf.Tensor:
    """Hands `x` to the caller."""
    self._taps[self.path(name)] = x
    return x

  def _conv2d(self, x: tf.Tensor, kernel: Any, bias: Any, strides: int) -> tf.Tensor:
    if strides > 1 and kernel.shape[:2] == (1, 1) and kernel.shape[2] < _CHANNELS:
      # A kernel of size 1 sees only these positions. With a stride, oneDNN's gradient
      # (TensorFlow 2.14), divided among threads, overwrites other memory, and the
      # program crashes.
      x, strides = strided(x, strides), 1
    # In bfloat16, with a stride and a side of 1, oneDNN leaves a part of a kernel's
    # gradient unset.
    maps = wide(x) if strides > 1 and 1 in x.shape[1:3] else x
    y = tf.nn.conv2d(maps, tf.cast(kernel, maps.dtype), strides, 'SAME')
    return tf.cast(with_bias(y, bias), x.dtype)

  def _dense(self, x: tf.Tensor, kernel: Any, bias: Any) -> tf.Tensor:
    return dense(x, kernel, bias)

  def _group_norm(self, x: tf.Tensor, gamma: Any, beta: Any, groups: int) -> tf.Tensor:
    y = normalization.group_norm(wide(x), gamma, beta, groups)
    return tf.cast(y, x.dtype)

  def _batch_norm(
    self, x: tf.Tensor, gamma: Any, beta: Any, mean: Any, square: Any
  ) -> tf.Tensor:
    if not self._training:
      return normalization.by_moments(x, gamma, beta, mean, square)
    y, mean, square = normalization.batch_norm(wide(x), gamma, beta, self._batches)
    self.moments[self.path(normalization.POPULATION_MEAN)] = mean
    self.moments[self.path(normalization.POPULATION_SQUARE)] = square
    return tf.cast(y, x.dtype)

  def _layer_norm(self, x: tf.Tensor, gamma: Any, beta: Any) -> tf.Tensor:
    return tf.cast(normalization.layer_norm(wide(x), gamma, beta), x.dtype)

  def _attention(
    self, x: tf.Tensor, qkv: tuple[Any, Any], output: tuple[Any, Any], heads: int
  ) -> tf.Tensor:
    return self_attention(x, qkv, output, heads)


def strided(x: tf.Tensor, strides: int) -> tf.Tensor:
  """Returns every `strides`-th position of maps, starting with the first.

  If the strides divide the sides, the maps consist of blocks of one shape, and the
  first position of each block is kept. Reshaping then selects these positions. With the
  gradient it takes a sixth of the time of TensorFlow's strided slices (256 maps of
  16 x 16 x 8), and the result is the same to the bit.

  Args:
    x: [n, height, width, channels], static except for n.
    strides: step, in both directions.

  Returns:
    [n, ceil(height / strides), ceil(width / strides), channels].
  """
  _, height, width, channels = x.shape
  if height % strides or width % strides:
    return x[:, ::strides, ::strides]
  kept = (height // strides, width // strides)
  # Axis 2 is a block's rows; the last axis is its columns, each with its channels.
  blocks = tf.reshape(x, [-1, kept[0], strides, kept[1], strides * channels])
  first = tf.slice(blocks, [0] * 5, [-1, kept[0], 1, kept[1], channels])
  return tf.reshape(first, [-1, *kept, channels])


def not_empty(x: tf.Tensor, least: int) -> tf.Tensor:
  """Returns `x`, with `least` examples of zeros if it has none.

  oneDNN's convolution (TensorFlow 2.14) gives an empty batch the shape of the input
  instead of the output, and the next layer fails on it: a client without examples would
  end the round. Batches with a size above 0 that is known when the graph is built do
  not come here.
  """
  missing = least * tf.cast(tf.equal(tf.shape(x)[0], 0), tf.int32)
  padded = tf.pad(x, [[0, missing]] + [[0, 0]] * (x.shape.rank - 1))
  return tf.ensure_shape(padded, [None, *x.shape[1:]])


def wide(x: tf.Tensor) -> tf.Tensor:
  """Returns `x` in a type that can be summed: bfloat16 as float32, else unchanged."""
  return tf.cast(x, tf.float32) if x.dtype == tf.bfloat16 else x


def with_bias(x: tf.Tensor, bias: Any | None) -> tf.Tensor:
  """Adds a bias to the last axis, if there is one, in a type that can sum its gradient.

  Args:
    x: [n, ..., units].
    bias: [units], or None.
  """
  return x if bias is None else tf.cast(tf.nn.bias_add(wide(x), bias), x.dtype)


def dense(x: Any, kernel: Any, bias: Any | None) -> tf.Tensor:
  """Multiplies the last axis by a matrix.

  Args:
    x: [n, ..., inputs], static except for n.
    kernel: [inputs, units].
    bias: [units], or None.

  Returns:
    [n, ..., units].
  """
  # One product of two matrices: with more axes, TensorFlow makes a batch of products
  # that all read the kernel, and sums as many gradients of the kernel.
  rows = x if x.shape.rank == 2 else tf.reshape(x, [-1, x.shape[-1]])
  y = with_bias(tf.linalg.matmul(rows, tf.cast(kernel, x.dtype)), bias)
  return y if x.shape.rank == 2 else tf.reshape(y, [-1, *x.shape[1:-1], y.shape[-1]])


def self_attention(
  x: Any,
  qkv: tuple[Any, Any],
  output: tuple[Any, Any],
  heads: int,
  dense: Callable[[Any, Any, Any], tf.Tensor] = dense,
) -> tf.Tensor:
  """Lets every token of an example attend to all its tokens.

  Source: Vaswani et al.: Attention Is All You Need. NeurIPS 2017. Section 3.2.

  Args:
    x: [n, tokens, units].
    qkv: kernel [units, 3 * units] and bias [3 * units]: queries, keys and values side
      by side, and within each the heads.
    output: kernel [units, units] and bias [units] after the heads.
    heads: number of heads, a divisor of units.
    dense: multiplies by a kernel and adds a bias, as `dense` does.

  Returns:
    [n, tokens, units].
  """
  tokens, units = x.shape[1:]
  size = units // heads
  projected = tf.reshape(dense(x, *qkv), [-1, tokens, 3, heads, size])
  q, k, v = tf.unstack(tf.transpose(projected, [2, 0, 3, 1, 4]))
  scores = tf.linalg.matmul(q * size**-0.5, k, transpose_b=True)
  weights = tf.cast(tf.nn.softmax(wide(scores)), x.dtype)
  mixed = tf.transpose(tf.linalg.matmul(weights, v), [0, 2, 1, 3])
  return dense(tf.reshape(mixed, [-1, tokens, units]), *output)
