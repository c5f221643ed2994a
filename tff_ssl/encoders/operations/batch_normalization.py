"""Batch normalization.

Sources:
  Ioffe, Szegedy: Batch Normalization: Accelerating Deep Network Training by Reducing
    Internal Covariate Shift. ICML 2015.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import parameters
from tff_ssl.encoders.operations import group_normalization
from tff_ssl.encoders.operations import half_maps
from tff_ssl.encoders.operations import operation
from tff_ssl.encoders.operations import wide_maps

# Batch norm keeps moments of a population: their means over batches and clients,
# weighted by examples, are the moments of the union. This does not hold for a variance.
POPULATION_MEAN = 'population_mean'
POPULATION_SQUARE = 'population_square'


@dataclasses.dataclass(frozen=True)
class BatchNorm(operation.Operation):
  """Normalizes each channel over the examples, with a scale and a shift.

  In training it uses the batch's own moments. In inference and in exports it uses
  population statistics, which no optimizer moves.

  Attributes:
    epsilon: what is added to variances.
  """

  waits = True
  epsilon: float = group_normalization.NORM_EPSILON

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """Scale, shift, and the population's mean and mean square."""
    specs = group_normalization.scale_and_shift(shape[-1])
    for name, initial in ((POPULATION_MEAN, 0.0), (POPULATION_SQUARE, 1.0)):
      specs[name] = parameters.ParameterSpec(
        shape[-1:], parameters.Constant(initial), trained=False
      )
    return specs

  def compute(
    self,
    x: Any,
    gamma: Any,
    beta: Any,
    mean: Any,
    square: Any,
    other: Any = None,
    rectified: bool = False,
  ) -> tf.Tensor:
    """See the base class."""
    if x.dtype != tf.bfloat16 or x.shape.rank != 4:
      y = by_moments(operation.wide(x), gamma, beta, mean, square, self.epsilon)
      return tf.cast(y, x.dtype)
    scale, shift = _of_moments(gamma, beta, mean, square, self.epsilon)
    zeros = tf.zeros([tf.shape(x)[0], x.shape[-1]])
    maps = half_maps.HalfMaps(x, zeros, [] if other is None else [other], rectified)
    return maps.affine(zeros + scale, zeros + shift)

  def train(
    self, *args: Any, batches: int, **behind: Any
  ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
    """See the base class."""
    x, gamma, beta = args
    wide = x if x.shape.rank == 4 else operation.wide(x)
    y, *moments = batch_norm(wide, gamma, beta, batches, self.epsilon, **behind)
    return tf.cast(y, x.dtype), tuple(moments)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.BatchNormalization, {'epsilon': self.epsilon}

  def keras_weights(self, *values: Any) -> list[Any]:
    """Returns scale, shift, mean and variance."""
    return [*values[:3], np.asarray(variance(*values[2:]))]

  def torch(
    self, shape: parameters.Shape, weights: operation.KerasWeights
  ) -> operation.TorchCode:
    """See the base class."""
    if len(shape) == 2:
      return super().torch(shape, weights)
    kind = 'BatchNorm2d' if len(shape) == 3 else 'BatchNorm1d'
    names = ('weight', 'bias', 'running_mean', 'running_var')
    return operation.TorchCode(
      '{module}({0})',
      f'nn.{kind}({shape[-1]}, eps={self.epsilon})',
      dict(zip(names, weights(''), strict=True)),
    )


def batch_norm(
  x: Any,
  gamma: Any,
  beta: Any,
  batches: int = 1,
  epsilon: float = group_normalization.NORM_EPSILON,
  other: Any = None,
  rectified: bool = False,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Normalizes each channel of a batch to mean 0 and variance 1 (training).

  As in `group_norm`, one of a channel's own values is subtracted first, and the
  derivative is written out and can itself be differentiated.

  Args:
    x: [n, ..., channels], n >= 1: `batches` batches of equal size, one after another;
      in bfloat16 [n, height, width, channels].
    gamma: [channels] scale.
    beta: [channels] shift.
    batches: how many there are; each is normalized by itself.
    epsilon: What is added to variances.
    other: What is added to maps in bfloat16, like `x`; None: nothing.
    rectified: Whether the relu of such maps, with `other`, is taken.

  Returns:
    A tuple of
      like `x`, (x - mean) / sqrt(variance + epsilon) * gamma + beta;
      the means of all channels [channels], over all batches;
      their mean squares [channels].
  """
  channels = x.shape[-1]
  # One position of each batch.
  first = tf.reshape(x, [batches, -1, channels])[:, 0]
  own = tf.stop_gradient(operation.wide(first))
  size = tf.shape(x)[0] // batches
  count = tf.cast(size * math.prod(x.shape[1:-1]), own.dtype)
  is_half = x.dtype == tf.bfloat16

  def of_examples(values: tf.Tensor) -> tf.Tensor:
    """Gives each example its batch's values: [batches, channels] to [n, channels]."""
    return tf.reshape(tf.tile(values[:, tf.newaxis], [1, size, 1]), [-1, channels])

  def of_batches(values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.reshape(values, [batches, -1, channels]), 1)

  @tf.custom_gradient
  def normalize(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, *others: tf.Tensor
  ) -> Any:
    maps: half_maps.HalfMaps | wide_maps.WideMaps
    if is_half:
      maps = half_maps.HalfMaps(x, of_examples(own), [*others], rectified)
      spread, average = of_examples, of_batches
    else:
      maps = _Batches(x, own)
      spread = average = lambda values: values
    mean, square = map(average, maps.moments())
    inverse = tf.math.rsqrt(variance(mean, square) + epsilon)
    scale = gamma * inverse
    y = maps.affine(spread(scale), spread(beta - mean * scale))

    def gradient(
      dy: tf.Tensor, of_mean: tf.Tensor, of_square: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
      # Means over a batch of dy, and of dy times the normalized x.
      plain, along = map(average, maps.products(y, dy))
      along = (along - mean * plain) * inverse
      # dx = scale (dy - plain - normalized x * along), plus what the moments add, by
      # powers of x.
      slope = -scale * inverse * along
      offset = of_mean / count - scale * plain - mean * slope
      slope += 2.0 * of_square / count
      dx, *of_others = maps.gradient(y, dy, *map(spread, (scale, slope, offset)))
      of_gamma, of_beta = (count * tf.reduce_sum(of, 0) for of in (along, plain))
      return dx, of_gamma, of_beta, *of_others

    return (y, mean, square), gradient

  others = [] if other is None else [other]
  y, mean, square = normalize(x, gamma, beta, *others)
  square += own * (2.0 * mean + own)
  return y, tf.reduce_mean(mean + own, 0), tf.reduce_mean(square, 0)


class _Batches(wide_maps.WideMaps):
  """A row is a batch."""

  def __init__(self, x: tf.Tensor, own: tf.Tensor) -> None:
    self._batches, self._channels = own.shape
    narrow = x.shape.rank == 4 and self._channels < group_normalization.NARROW
    # Positions laid out together: those of a line in narrow maps, otherwise one.
    self._repeats = x.shape[2] if narrow else 1
    super().__init__(x, own)

  def _to_lines(self, maps: tf.Tensor) -> tf.Tensor:
    return tf.reshape(maps, [self._batches, -1, self._repeats * self._channels])

  def _to_maps(self, lines: tf.Tensor) -> tf.Tensor:
    return tf.reshape(lines, [-1, *self._shape[1:]])

  def _to_rows(self, lines: tf.Tensor) -> tf.Tensor:
    return tf.reshape(lines, [self._batches, -1, self._channels])

  def _factors(self, values: tf.Tensor) -> tf.Tensor:
    return tf.tile(values, [1, self._repeats])[:, tf.newaxis]


def by_moments(
  x: Any,
  gamma: Any,
  beta: Any,
  mean: Any,
  square: Any,
  epsilon: float = group_normalization.NORM_EPSILON,
) -> tf.Tensor:
  """Normalizes each channel by given moments (batch norm in inference).

  Args:
    x: [..., channels].
    gamma: [channels] scale.
    beta: [channels] shift.
    mean: [channels], or a shape that broadcasts to that of `x`.
    square: The mean square, like `mean`. A variance of float32 moments has two digits
      at a mean of 300 population_variances, and none at 4,000.
    epsilon: What is added to variances.

  Returns:
    Like `x`: (x - mean) / sqrt(square - mean^2 + epsilon) * gamma + beta.
  """
  scale, shift = _of_moments(gamma, beta, mean, square, epsilon)
  return x * scale + shift


def _of_moments(
  gamma: Any, beta: Any, mean: Any, square: Any, epsilon: float
) -> tuple[Any, Any]:
  """Returns the scale and the shift that normalize by given moments."""
  scale = gamma * tf.math.rsqrt(variance(mean, square) + epsilon)
  return scale, beta - mean * scale


def variance(mean: Any, square: Any) -> tf.Tensor:
  """Returns the variance of numbers of this mean and mean square."""
  # Rounding can leave the difference below zero where all values are equal.
  return tf.nn.relu(square - tf.square(mean))
