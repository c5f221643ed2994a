"""Convolutions of all channels and of each by itself, and zeros around maps."""

from collections.abc import Mapping
import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import parameters
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders.operations import kernels
from tff_ssl.encoders.operations import operation

# Floats of an AVX-512 register: for fewer channels oneDNN uses other kernels.
_CHANNELS = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Convolution(kernels.Kernel):
  """What both kinds of convolution share.

  [n, height, width, channels] becomes
  [n, ceil(height / strides), ceil(width / strides), outputs], with padding 'same'.

  Attributes:
    kernel_size: height and width of the kernel.
    strides: step, in both directions.
    padding: 'same' or 'valid'.
  """

  kernel_size: int
  strides: int = 1
  padding: str = operation.SAME

  def _sides(self, shape: parameters.Shape) -> tuple[int, int]:
    """Returns height and width of the result."""
    return operation.strided_sides(shape, self.strides, self.kernel_size, self.padding)

  def _patches(self, x: tf.Tensor, dy: tf.Tensor) -> list[tf.Tensor]:
    """Returns what the kernel sees at each position of the result."""
    sizes = self.kernel_size, self.strides
    return _patches(x, *sizes, dy.shape[2:4], self.padding)

  def _options(self) -> dict[str, Any]:
    """Returns the options of the Keras layer."""
    return {
      'kernel_size': self.kernel_size,
      'strides': self.strides,
      'padding': self.padding,
      'use_bias': self.use_bias,
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conv2d(_Convolution):
  """A convolution of all channels.

  Attributes:
    filters: output channels.
    standardize: whether the kernel is weight standardized before use.
  """

  filters: int
  standardize: bool = False

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """Kernel and bias."""
    kernel = (self.kernel_size, self.kernel_size, shape[-1], self.filters)
    return kernels.specs(kernel, self.use_bias, self.gain, self.standardize)

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Divides height and width by the strides, rounding up."""
    return (*self._sides(shapes[0]), self.filters)

  def multiply(self, x: Any, kernel: Any) -> tf.Tensor:
    """See the base class."""
    dtype, strides = x.dtype, self.strides
    if strides > 1 and kernel.shape[:2] == (1, 1) and kernel.shape[2] < _CHANNELS:
      # A kernel of size 1 sees only these positions. With a stride, oneDNN's gradient
      # (TensorFlow 2.14), divided among threads, overwrites other memory, and the
      # program crashes.
      x, strides = strided(x, strides), 1
    # In bfloat16, with a stride and a side of 1, oneDNN leaves a part of a kernel's
    # gradient unset.
    maps = operation.wide(x) if strides > 1 and 1 in x.shape[1:3] else x
    y = tf.nn.conv2d(maps, tf.cast(kernel, maps.dtype), strides, self.padding.upper())
    return tf.cast(y, dtype)

  def gradient(self, x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
    """See the base class."""
    return per_client_gradients.products(self._patches(x, dy), dy)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.Conv2D, {'filters': self.filters, **self._options()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DepthwiseConv2d(_Convolution):
  """A convolution of each channel by itself, with a kernel of its own."""

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """Kernel, by the name that Keras gives it, and bias."""
    size, channels = self.kernel_size, shape[-1]
    kernel = parameters.ParameterSpec(
      (size, size, channels, 1), parameters.scaled_normal(size * size, self.gain)
    )
    return {'depthwise_kernel': kernel, **kernels.bias_spec(channels, self.use_bias)}

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Divides height and width by the strides, rounding up."""
    return (*self._sides(shapes[0]), shapes[0][-1])

  def multiply(self, x: Any, kernel: Any) -> tf.Tensor:
    """See the base class."""
    # In float32 also where maps are bfloat16: TensorFlow's own kernels sum in the
    # type of the maps.
    step = [1, self.strides, self.strides, 1]
    y = tf.nn.depthwise_conv2d(operation.wide(x), kernel, step, self.padding.upper())
    return tf.cast(y, x.dtype)

  def gradient(self, x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
    """See the base class."""
    # [K, rows, height, width, places * channels], place by place.
    x, dy = operation.wide(x), operation.wide(dy)
    patches = tf.concat(self._patches(x, dy), axis=-1)
    outputs = tf.tile(dy, [1, 1, 1, 1, self.kernel_size**2])
    return per_client_gradients.sums(patches * outputs)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.DepthwiseConv2D, self._options()


@dataclasses.dataclass(frozen=True)
class ZeroPad(operation.Operation):
  """Zeros around maps, as many on each side.

  Behind it, a convolution with padding 'valid' is as in PyTorch. With strides, padding
  'same' puts fewer zeros before maps with even sides than behind them.

  Attributes:
    width: rows and columns of zeros on each side.
  """

  width: int

  def output_shape(self, *shapes: parameters.Shape) -> parameters.Shape:
    """Adds to height and width."""
    height, width, channels = shapes[0]
    return height + 2 * self.width, width + 2 * self.width, channels

  def compute(self, x: Any) -> tf.Tensor:
    """See the base class."""
    around = [self.width] * 2
    return tf.pad(x, [[0, 0], around, around, [0, 0]])

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.ZeroPadding2D, {'padding': self.width}


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
  sides = (height // strides, width // strides)
  # Axis 2 is a block's rows; the last axis is its columns, each with its channels.
  blocks = tf.reshape(x, [-1, sides[0], strides, sides[1], strides * channels])
  first = tf.slice(blocks, [0] * 5, [-1, sides[0], 1, sides[1], channels])
  return tf.reshape(first, [-1, *sides, channels])


def _patches(
  x: tf.Tensor, size: int, strides: int, positions: tf.TensorShape, padding: str
) -> list[tf.Tensor]:
  """Returns what a kernel sees at each position.

  Args:
    x: [K, rows, height, width, channels].
    size: Side of the kernel.
    strides: Step of the convolution.
    positions: Height and width of its result.
    padding: 'same' or 'valid'.

  Returns:
    Tensors [K, rows, *positions, inputs] whose inputs, one after another, are the
    kernel's inputs, row by row. With strides of 1 there is one tensor for each place of
    the kernel: slices cost less than patches. With larger strides there is one tensor
    for all places: slices would have gaps and cost more.
  """
  if strides > 1:
    flat = tf.reshape(x, [-1, *x.shape[2:]])
    window, step = [1, size, size, 1], [1, strides, strides, 1]
    joint = tf.image.extract_patches(flat, window, step, [1] * 4, padding.upper())
    return [tf.reshape(joint, [*tf.unstack(tf.shape(x)[:2]), *joint.shape[1:]])]
  if padding == operation.SAME:
    before = (size - 1) // 2
    around = [before, size - 1 - before]
    x = tf.pad(x, [[0, 0], [0, 0], around, around, [0, 0]])
  height, width = positions
  return [
    x[:, :, top : top + height, left : left + width]
    for top in range(size)
    for left in range(size)
  ]


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
