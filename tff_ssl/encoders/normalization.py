"""Group, layer and batch normalization and weight standardization, on tensors.

All but batch normalization treat the examples of a batch separately, so that an
example's encoding is the same whichever client holds it. This allows a federated round
to equal a centralized step.

Sources:
  Ioffe, Szegedy: Batch Normalization: Accelerating Deep Network Training by Reducing
    Internal Covariate Shift. ICML 2015.
  Wu, He: Group Normalization. ECCV 2018.
  Ba, Kiros, Hinton: Layer Normalization. arXiv:1607.06450.
  Qiao, Wang, Liu, Shen, Yuille: Micro-Batch Training with Batch-Channel Normalization
    and Weight Standardization. arXiv:1903.10520.
"""

import math
from typing import Any

import tensorflow as tf

NORM_EPSILON = 1e-5
WEIGHT_STANDARDIZATION_EPSILON = 1e-5
# A group of one value is normalized to zero whatever the value, a group of two to which
# of them is larger. DCCO's narrowest normalized layer, 256 units in 32 groups, has
# groups of 8.
MIN_GROUP_VALUES = 8
# For maps with fewer channels, TensorFlow multiplies a line of positions by a line of
# factors faster than each position by the factors, to the same bits: 64 maps of
# 32 x 32 x 16 are normalized, with the gradient, in two thirds of the time.
_NARROW = 32
# Batch norm keeps moments of a population: their means over batches and clients,
# weighted by examples, are the moments of the union. This does not hold for a variance.
POPULATION_MEAN = 'population_mean'
POPULATION_SQUARE = 'population_square'


def num_groups(
  channels: int, positions: int, groups: int, name: str = 'group norm'
) -> int:
  """Returns the number of groups in which `channels` are normalized.

  It is the largest divisor of `channels` that is at most `groups` and leaves at least
  `MIN_GROUP_VALUES` values in each group.

  Args:
    channels: channels of the layer.
    positions: positions of a channel: height times width, 1 for a dense layer.
    groups: the number of groups wanted, 32 in the DCCO paper.
    name: name of the layer, for errors.

  Returns:
    A divisor of `channels`. 64 channels of 8 x 8 give 32; 16 channels of 32 x 32 give
    16; 64 units of a dense layer give 8.

  Raises:
    ValueError: the layer has fewer values than a group must have.
  """
  if channels * positions < MIN_GROUP_VALUES:
    raise ValueError(
      f'{name} would normalize {channels * positions} values per example ({channels} '
      f'channels at {positions} positions); they must be at least {MIN_GROUP_VALUES}, '
      'because of fewer little is left but which is larger'
    )
  allowed = min(groups, channels * positions // MIN_GROUP_VALUES)
  return max(g for g in range(1, allowed + 1) if channels % g == 0)


def group_norm(x: Any, gamma: Any, beta: Any, groups: int) -> tf.Tensor:
  """Normalizes each example's groups of channels to mean 0 and variance 1.

  First, one of a group's own values is subtracted from all of them, which changes no
  result. The mean square less the squared mean is a variance for numbers near 0 only:
  in float32 it has no digit left at a mean of 1,000 deviations. Of N values, each is
  within sqrt(N) deviations of their mean, and equal values become exact zeros.

  The mean and the mean square of a group then become one scale and one shift for each
  example and channel. The feature maps, which take most of the time, are never
  reshaped: with the gradient, this takes half the time of `tf.nn.moments` on grouped
  maps on CPU. The derivative is written out for the same reason and for another: the
  derivative that TensorFlow derives computes shapes at run time, with hundreds of small
  operations in a ResNet-8, which take most of the time on a client with one image. The
  derivative written here can itself be differentiated, as MAML needs; `tf.nn.moments`
  stops a gradient inside.

  Args:
    x: [n, ..., channels].
    gamma: [channels] scale, or [n, channels], one for each example.
    beta: [channels] shift, or [n, channels].
    groups: number of groups, a divisor of channels.

  Returns:
    [n, ..., channels], (x - mean) / sqrt(variance + 1e-5) * gamma + beta.
  """
  channels = x.shape[-1]
  positions = list(range(1, x.shape.rank - 1))
  grouped = [groups, channels // groups]
  sums = float(math.prod(x.shape[1:-1]))

  def by_channel(values: tf.Tensor) -> tf.Tensor:
    means = tf.reduce_mean(values, positions) if positions else values
    return tf.reshape(means, [-1, *grouped])

  def total(values: tf.Tensor, parameter: tf.Tensor) -> tf.Tensor:
    if parameter.shape.rank == 1:
      values = tf.reduce_sum(values, 0)
    return tf.reshape(values * sums, [-1, channels][-parameter.shape.rank :])

  def by_group(values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(values, axis=2, keepdims=True)

  def own_value(maps: tf.Tensor) -> tf.Tensor:
    """Returns a value of each group: [n, groups, 1]."""
    # From the middle: at the border, zero padding makes a map differ from itself.
    middle = maps[(slice(None), *(maps.shape[axis] // 2 for axis in positions))]
    return tf.stop_gradient(tf.reshape(middle, [-1, *grouped])[:, :, :1])

  narrow = len(positions) == 2 and channels < _NARROW

  def to_lines(maps: tf.Tensor) -> tf.Tensor:
    return tf.reshape(maps, [-1, x.shape[1], x.shape[2] * channels]) if narrow else maps

  def factors(values: tf.Tensor) -> tf.Tensor:
    """Lays out values, one for each channel, to be multiplied by lines."""
    if narrow:
      return tf.tile(tf.reshape(values, [-1, 1, channels]), [1, 1, x.shape[2]])
    return tf.reshape(values, [-1, *[1] * len(positions), channels])

  def to_maps(lines: tf.Tensor) -> tf.Tensor:
    return tf.reshape(lines, [-1, *x.shape[1:]]) if narrow else lines

  ones = tf.ones(grouped, x.dtype)

  @tf.custom_gradient
  def normalize(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> Any:
    near = to_lines(x) - factors(own_value(x) * ones)
    x = to_maps(near)
    mean = by_group(by_channel(x))
    # Rounding can leave the difference below zero where all values are equal.
    variance = tf.nn.relu(by_group(by_channel(tf.square(x))) - tf.square(mean))
    inverse = tf.math.rsqrt(variance + NORM_EPSILON)
    scale = inverse * tf.reshape(gamma, [-1, *grouped])
    shift = tf.reshape(beta, [-1, *grouped]) - mean * scale

    def gradient(dy: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
      # Means over positions of dy, and of dy times the normalized x.
      plain = by_channel(dy)
      along = (by_channel(dy * x) - mean * plain) * inverse
      # dx = scale dy - inverse (mean of gamma dy + normalized x * mean of it along x),
      # the means over the group, gathered by powers of x.
      slope = -inverse * by_group(scale * along)
      offset = -by_group(scale * plain) - mean * slope
      slope, offset = factors(slope * ones), factors(offset * ones)
      dx = to_maps(to_lines(dy) * factors(scale) + near * slope + offset)
      return dx, total(along, gamma), total(plain, beta)

    return to_maps(near * factors(scale) + factors(shift)), gradient

  return normalize(x, gamma, beta)


def batch_norm(
  x: Any, gamma: Any, beta: Any, batches: int = 1
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Normalizes each channel of a batch to mean 0 and variance 1 (training).

  As in `group_norm`, one of a channel's own values is subtracted first, and the
  derivative is written out and can itself be differentiated.

  Args:
    x: [n, ..., channels], n >= 1: `batches` batches of equal size, one after another.
    gamma: [channels] scale.
    beta: [channels] shift.
    batches: how many there are; each is normalized by itself.

  Returns:
    A tuple of
      [n, ..., channels], (x - mean) / sqrt(variance + 1e-5) * gamma + beta;
      the means of all channels [channels], over all batches;
      their mean squares [channels].
  """
  channels = x.shape[-1]
  # Positions laid out together: those of a row in narrow maps, otherwise one.
  repeats = x.shape[2] if x.shape.rank == 4 and channels < _NARROW else 1

  def to_lines(maps: tf.Tensor) -> tf.Tensor:
    return tf.reshape(maps, [batches, -1, repeats * channels])

  def to_maps(lines: tf.Tensor) -> tf.Tensor:
    return tf.reshape(lines, [-1, *x.shape[1:]])

  def by_channel(lines: tf.Tensor) -> tf.Tensor:
    """Averages each channel of each batch: [batches, channels]."""
    return tf.reduce_mean(tf.reshape(lines, [batches, -1, channels]), 1)

  def factors(values: tf.Tensor) -> tf.Tensor:
    """Lays out values, one for each channel, to be multiplied by lines."""
    return tf.tile(values, [1, repeats])[:, tf.newaxis]

  # One position of each batch.
  own = tf.stop_gradient(to_lines(x)[:, 0, :channels])
  near = to_lines(x) - factors(own)

  @tf.custom_gradient
  def normalize(lines: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> Any:
    mean, square = by_channel(lines), by_channel(tf.square(lines))
    inverse = tf.math.rsqrt(variance(mean, square) + NORM_EPSILON)
    scale = gamma * inverse
    y = lines * factors(scale) + factors(beta - mean * scale)

    def gradient(
      dy: tf.Tensor, of_mean: tf.Tensor, of_square: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
      count = tf.cast(tf.shape(lines)[1] * repeats, lines.dtype)
      # Means over a batch of dy, and of dy times the normalized x.
      plain = by_channel(dy)
      along = (by_channel(dy * lines) - mean * plain) * inverse
      # dx = scale (dy - plain - normalized x * along), plus what the moments add, by
      # powers of x.
      slope = -scale * inverse * along
      offset = of_mean / count - scale * plain - mean * slope
      slope += 2.0 * of_square / count
      dx = dy * factors(scale) + lines * factors(slope) + factors(offset)
      return dx, count * tf.reduce_sum(along, 0), count * tf.reduce_sum(plain, 0)

    return (y, mean, square), gradient

  y, mean, square = normalize(near, gamma, beta)
  square += own * (2.0 * mean + own)
  return to_maps(y), tf.reduce_mean(mean + own, 0), tf.reduce_mean(square, 0)


def by_moments(x: Any, gamma: Any, beta: Any, mean: Any, square: Any) -> tf.Tensor:
  """Normalizes each channel by given moments (batch norm in inference).

  Args:
    x: [..., channels].
    gamma: [channels] scale.
    beta: [channels] shift.
    mean: [channels], or a shape that broadcasts to that of `x`.
    square: The mean square, like `mean`. A variance of float32 moments has two digits
      at a mean of 300 deviations, and none at 4,000.

  Returns:
    Like `x`: (x - mean) / sqrt(square - mean^2 + 1e-5) * gamma + beta.
  """
  scale = gamma * tf.math.rsqrt(variance(mean, square) + NORM_EPSILON)
  return x * scale + (beta - mean * scale)


def variance(mean: Any, square: Any) -> tf.Tensor:
  """Returns the variance of numbers of this mean and mean square."""
  # Rounding can leave the difference below zero where all values are equal.
  return tf.nn.relu(square - tf.square(mean))


def layer_norm(x: Any, gamma: Any, beta: Any) -> tf.Tensor:
  """Normalizes the last axis of each example and position to mean 0 and variance 1.

  A token by itself is an example with one group of channels and one position: the
  derivative is `group_norm`'s, and so is the epsilon.

  Args:
    x: [n, ..., units].
    gamma: [units] scale.
    beta: [units] shift.

  Returns:
    [n, ..., units], (x - mean) / sqrt(variance + 1e-5) * gamma + beta.
  """
  rows = tf.reshape(x, [-1, x.shape[-1]])
  return tf.reshape(group_norm(rows, gamma, beta, 1), [-1, *x.shape[1:]])


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
