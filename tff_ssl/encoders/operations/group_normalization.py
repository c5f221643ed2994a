"""Group and layer normalization.

Both treat the examples of a batch separately, so that an example's encoding is the same
whichever client holds it. This allows a federated round to equal a centralized step.

Sources:
  Wu, He: Group Normalization. ECCV 2018.
  Ba, Kiros, Hinton: Layer Normalization. arXiv:1607.06450.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import parameters
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders.operations import half_maps
from tff_ssl.encoders.operations import operation
from tff_ssl.encoders.operations import wide_maps

NORM_EPSILON = 1e-5
# A group of one value is normalized to zero whatever the value, a group of two to which
# of them is larger. DCCO's narrowest normalized layer, 256 units in 32 groups, has
# groups of 8.
MIN_GROUP_VALUES = 8
# The DCCO paper's number of groups. In maps of a few channels they are groups of one or
# two, which is instance norm: it gives each channel the same mean and scale in every
# image, and those are what the pool behind the maps reads.
MAX_GROUPS = 32
# For maps with fewer channels, TensorFlow multiplies a line of positions by a line of
# factors faster than each position by the factors, to the same bits: 64 maps of
# 32 x 32 x 16 are normalized, with the gradient, in two thirds of the time.
NARROW = 32


def scale_and_shift(channels: int) -> parameters.Specs:
  """Returns the specs of a norm's 'gamma' and 'beta'."""
  return {
    'gamma': parameters.ParameterSpec((channels,), parameters.Constant(1.0)),
    'beta': parameters.ParameterSpec((channels,), parameters.Constant(0.0)),
  }


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupNorm(operation.Operation):
  """Group norm, with a scale and a shift of each channel.

  Attributes:
    groups: the most groups; there are as many as `num_groups` says.
  """

  groups: int | None
  waits = True

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """Scale and shift."""
    self._num_groups(shape)
    return scale_and_shift(shape[-1])

  def compute(self, x: Any, gamma: Any, beta: Any, **behind: Any) -> tf.Tensor:
    """See the base class."""
    groups = self._num_groups(tuple(x.shape[1:]))
    if x.shape.rank == 4:
      return group_norm(x, gamma, beta, groups, **behind)
    return tf.cast(group_norm(operation.wide(x), gamma, beta, groups), x.dtype)

  def per_client(
    self,
    x: Any,
    gamma: per_client_gradients.Parameter,
    beta: per_client_gradients.Parameter,
    **behind: Any,
  ) -> tf.Tensor:
    """See the base class."""
    return self.compute(x, gamma.rows(x), beta.rows(x), **behind)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    options = {'groups': self._num_groups(shape), 'epsilon': NORM_EPSILON}
    return tf.keras.layers.GroupNormalization, options

  def torch(
    self, shape: parameters.Shape, weights: operation.KerasWeights
  ) -> operation.TorchCode:
    """See the base class."""
    if len(shape) == 2:
      return super().torch(shape, weights)
    return operation.TorchCode(
      '{module}({0})',
      f'nn.GroupNorm({self._num_groups(shape)}, {shape[-1]}, eps={NORM_EPSILON})',
      dict(zip(('weight', 'bias'), weights(''), strict=True)),
    )

  def _num_groups(self, shape: tuple[int, ...]) -> int:
    return num_groups(shape[-1], math.prod(shape[:-1]), self.groups)


@dataclasses.dataclass(frozen=True)
class LayerNorm(operation.Operation):
  """Layer norm of the last axis, with a scale and a shift of each unit.

  Attributes:
    epsilon: added to the variance.
  """

  epsilon: float = NORM_EPSILON

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """Scale and shift."""
    num_groups(shape[-1], 1, 1)
    return scale_and_shift(shape[-1])

  def compute(self, x: Any, gamma: Any, beta: Any) -> tf.Tensor:
    """See the base class."""
    return layer_norm(x, gamma, beta, self.epsilon)

  def per_client(
    self,
    x: Any,
    gamma: per_client_gradients.Parameter,
    beta: per_client_gradients.Parameter,
  ) -> tf.Tensor:
    """See the base class."""
    # Each position is a row with a scale and a shift of its own.
    positions = math.prod(x.shape[1:-1])
    return self.compute(x, gamma.rows(x, positions), beta.rows(x, positions))

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.LayerNormalization, {'epsilon': self.epsilon}

  def torch(
    self, shape: parameters.Shape, weights: operation.KerasWeights
  ) -> operation.TorchCode:
    """See the base class."""
    is_maps = len(shape) == 3
    return operation.TorchCode(
      '{module}({0}.movedim(1, -1)).movedim(-1, 1)' if is_maps else '{module}({0})',
      f'nn.LayerNorm({shape[-1]}, eps={self.epsilon})',
      dict(zip(('weight', 'bias'), weights(''), strict=True)),
    )


def num_groups(channels: int, positions: int, groups: int | None) -> int:
  """Returns the number of groups in which `channels` are normalized.

  It is the largest divisor of `channels` that is at most `groups` and leaves at least
  `MIN_GROUP_VALUES` values in each group.

  Args:
    channels: channels of the layer.
    positions: positions of a channel: height times width, 1 for a dense layer.
    groups: the number of groups wanted; None: 32, of at least 8 channels each.

  Returns:
    A divisor of `channels`. For None, 64 channels give 8, and 16 give 2. For 32, 64
    channels of 8 x 8 give 32; 16 channels of 32 x 32 give 16; 64 units of a dense layer
    give 8.

  Raises:
    ValueError: the layer has fewer values than a group must have.
  """
  if channels * positions < MIN_GROUP_VALUES:
    raise ValueError(
      f'the number of values per example is {channels * positions} ({channels} '
      f'channels at {positions} positions); it must be at least {MIN_GROUP_VALUES} for '
      'a norm, because of fewer little is left but which is larger'
    )
  if groups is None:
    groups, positions = MAX_GROUPS, 1
  allowed = max(1, min(groups, channels * positions // MIN_GROUP_VALUES))
  return max(g for g in range(1, allowed + 1) if channels % g == 0)


def group_norm(
  x: Any,
  gamma: Any,
  beta: Any,
  groups: int,
  other: Any = None,
  rectified: bool = False,
) -> tf.Tensor:
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
    x: [n, ..., channels]; in bfloat16 [n, height, width, channels].
    gamma: [channels] scale, or [n, channels], one for each example.
    beta: [channels] shift, or [n, channels].
    groups: number of groups, a divisor of channels.
    other: What is added to maps in bfloat16, like `x`; None: nothing.
    rectified: Whether the relu of such maps, with `other`, is taken.

  Returns:
    Like `x`, (x - mean) / sqrt(variance + 1e-5) * gamma + beta.
  """
  channels = x.shape[-1]
  positions = list(range(1, x.shape.rank - 1))
  grouped = [groups, channels // groups]
  sums = float(math.prod(x.shape[1:-1]))

  def rows(values: tf.Tensor) -> tf.Tensor:
    return tf.reshape(values, [-1, *grouped])

  def total(values: tf.Tensor, parameter: tf.Tensor) -> tf.Tensor:
    if parameter.shape.rank == 1:
      values = tf.reduce_sum(values, 0)
    return tf.reshape(values * sums, [-1, channels][-parameter.shape.rank :])

  def by_group(values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(values, axis=2, keepdims=True)

  def by_channel(values: tf.Tensor) -> tf.Tensor:
    return tf.reshape(values, [-1, channels])

  def own_value(maps: tf.Tensor) -> tf.Tensor:
    """Returns a value of each group: [n, groups, 1]."""
    # From the middle: at the border, zero padding makes a map differ from itself.
    middle = maps[(slice(None), *(maps.shape[axis] // 2 for axis in positions))]
    return tf.stop_gradient(operation.wide(rows(middle)[:, :, :1]))

  is_half = x.dtype == tf.bfloat16
  ones = tf.ones(grouped, tf.float32 if is_half else x.dtype)

  @tf.custom_gradient
  def normalize(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, *others: tf.Tensor
  ) -> Any:
    own = by_channel(own_value(x) * ones)
    maps: half_maps.HalfMaps | wide_maps.WideMaps
    if is_half:
      maps = half_maps.HalfMaps(x, own, [*others], rectified)
    else:
      maps = _Examples(x, own)
    mean, square = (by_group(rows(value)) for value in maps.moments())
    # Rounding can leave the difference below zero where all values are equal.
    variance = tf.nn.relu(square - tf.square(mean))
    inverse = tf.math.rsqrt(variance + NORM_EPSILON)
    scale = inverse * rows(gamma)
    shift = rows(beta) - mean * scale
    y = maps.affine(by_channel(scale), by_channel(shift))

    def gradient(dy: tf.Tensor) -> tuple[tf.Tensor, ...]:
      # Means over positions of dy, and of dy times the normalized x.
      plain, along = (rows(value) for value in maps.products(y, dy))
      along = (along - mean * plain) * inverse
      # dx = scale dy - inverse (mean of gamma dy + normalized x * mean of it along x),
      # the means over the group, gathered by powers of x.
      slope = -inverse * by_group(scale * along)
      offset = -by_group(scale * plain) - mean * slope
      factors = map(by_channel, (scale, slope * ones, offset * ones))
      dx, *of_others = maps.gradient(y, dy, *factors)
      return dx, total(along, gamma), total(plain, beta), *of_others

    return y, gradient

  return normalize(x, gamma, beta, *([] if other is None else [other]))


class _Examples(wide_maps.WideMaps):
  """A row is an example."""

  def __init__(self, x: tf.Tensor, own: tf.Tensor) -> None:
    self._positions = list(range(1, x.shape.rank - 1))
    self._narrow = len(self._positions) == 2 and x.shape[-1] < NARROW
    super().__init__(x, own)

  def _to_lines(self, maps: tf.Tensor) -> tf.Tensor:
    if not self._narrow:
      return maps
    _, height, width, channels = self._shape
    return tf.reshape(maps, [-1, height, width * channels])

  def _to_maps(self, lines: tf.Tensor) -> tf.Tensor:
    return tf.reshape(lines, [-1, *self._shape[1:]]) if self._narrow else lines

  def _to_rows(self, lines: tf.Tensor) -> tf.Tensor:
    return tf.reshape(lines, [-1, math.prod(self._shape[1:-1]), self._shape[-1]])

  def _factors(self, values: tf.Tensor) -> tf.Tensor:
    channels = self._shape[-1]
    if self._narrow:
      values = tf.reshape(values, [-1, 1, channels])
      return tf.tile(values, [1, 1, self._shape[2]])
    return tf.reshape(values, [-1, *[1] * len(self._positions), channels])


def layer_norm(
  x: Any, gamma: Any, beta: Any, epsilon: float = NORM_EPSILON
) -> tf.Tensor:
  """Normalizes the last axis of each example and position to mean 0 and variance 1.

  It is `group_norm` with one group of each row, in fewer passes: its scale and shift
  of each example and channel would be as large as what is normalized. As there, one of
  a row's own values is subtracted before all, and the derivative is written out and can
  itself be differentiated.

  Args:
    x: [n, ..., units]; in bfloat16 it is computed in float32, and rounded once.
    gamma: [units] scale, or [rows, units], one for each row.
    beta: [units] shift, or [rows, units].
    epsilon: added to the variance.

  Returns:
    [n, ..., units], (x - mean) / sqrt(variance + epsilon) * gamma + beta.
  """

  def mean(rows: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(rows, -1, keepdims=True)

  @tf.custom_gradient
  def normalize(rows: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> Any:
    near = operation.wide(rows)
    near -= tf.stop_gradient(near[:, :1])
    centred = near - mean(near)
    inverse = tf.math.rsqrt(mean(tf.square(centred)) + epsilon)
    normalized = centred * inverse

    def gradient(dy: tf.Tensor) -> tuple[tf.Tensor, ...]:
      dy = operation.wide(dy)
      upstream = dy * gamma
      along = mean(upstream * normalized)
      dx = inverse * (upstream - mean(upstream) - normalized * along)
      factors = [dy * normalized, dy]
      if gamma.shape.rank == 1:
        factors = [tf.raw_ops.BiasAddGrad(out_backprop=each) for each in factors]
      return tf.cast(dx, rows.dtype), *factors

    y = normalized * gamma + beta
    return tf.cast(y, rows.dtype), gradient

  rows = tf.reshape(x, [-1, x.shape[-1]])
  return tf.reshape(normalize(rows, gamma, beta), [-1, *x.shape[1:]])
