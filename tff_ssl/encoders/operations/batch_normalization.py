"""Batch normalization.

Sources:
  Ioffe, Szegedy: Batch Normalization: Accelerating Deep Network Training by Reducing
    Internal Covariate Shift. ICML 2015.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import parameters
from tff_ssl.encoders.operations import group_normalization
from tff_ssl.encoders.operations import operation

# Batch norm keeps moments of a population: their means over batches and clients,
# weighted by examples, are the moments of the union. This does not hold for a variance.
POPULATION_MEAN = 'population_mean'
POPULATION_SQUARE = 'population_square'


@dataclasses.dataclass(frozen=True)
class BatchNorm(operation.Operation):
  """Normalizes each channel over the examples, with a scale and a shift.

  In training it uses the batch's own moments. In inference and in exports it uses
  population statistics, which no optimizer moves.
  """

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """Scale, shift, and the population's mean and mean square."""
    specs = group_normalization.scale_and_shift(shape[-1])
    for name, initial in ((POPULATION_MEAN, 0.0), (POPULATION_SQUARE, 1.0)):
      specs[name] = parameters.ParameterSpec(
        shape[-1:], parameters.Constant(initial), trained=False
      )
    return specs

  def compute(self, x: Any, gamma: Any, beta: Any, mean: Any, square: Any) -> tf.Tensor:
    """See the base class."""
    y = by_moments(operation.wide(x), gamma, beta, mean, square)
    return tf.cast(y, x.dtype)

  def train(self, *args: Any, batches: int) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
    """See the base class."""
    x, gamma, beta = args
    y, *moments = batch_norm(operation.wide(x), gamma, beta, batches)
    return tf.cast(y, x.dtype), tuple(moments)

  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """See the base class."""
    del shape
    return tf.keras.layers.BatchNormalization, {
      'epsilon': group_normalization.NORM_EPSILON
    }

  def keras_weights(self, *values: Any) -> list[Any]:
    """Returns scale, shift, mean and variance."""
    return [*values[:3], np.asarray(variance(*values[2:]))]


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
  repeats = (
    x.shape[2] if x.shape.rank == 4 and channels < group_normalization.NARROW else 1
  )

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
    inverse = tf.math.rsqrt(variance(mean, square) + group_normalization.NORM_EPSILON)
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
      at a mean of 300 population_variances, and none at 4,000.

  Returns:
    Like `x`: (x - mean) / sqrt(square - mean^2 + 1e-5) * gamma + beta.
  """
  scale = gamma * tf.math.rsqrt(
    variance(mean, square) + group_normalization.NORM_EPSILON
  )
  return x * scale + (beta - mean * scale)


def variance(mean: Any, square: Any) -> tf.Tensor:
  """Returns the variance of numbers of this mean and mean square."""
  # Rounding can leave the difference below zero where all values are equal.
  return tf.nn.relu(square - tf.square(mean))
