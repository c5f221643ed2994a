"""Maps in float32 or float64: what a norm does to them, by TensorFlow's operations."""

import abc
from typing import Any

import tensorflow as tf


class WideMaps(abc.ABC):
  """Maps laid out as lines, which are multiplied by factors laid out alike.

  It computes what `half_maps.HalfMaps` does, but adds nothing and takes no relu. All
  factors and results for channels are [rows, channels]; subclasses say what a row is.
  """

  def __init__(self, x: tf.Tensor, own: tf.Tensor) -> None:
    """Keeps the maps.

    Args:
      x: [n, ..., channels].
      own: A number near each channel's, which is subtracted before anything else.
    """
    self._shape = x.shape
    self._near = self._to_lines(x) - self._factors(own)

  def moments(self) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the means of `x - own` and of its square."""
    rows = self._to_rows(self._near)
    return tf.reduce_mean(rows, 1), _mean_square(rows)

  def affine(self, scale: tf.Tensor, shift: tf.Tensor) -> tf.Tensor:
    """Returns (x - own) * scale + shift, like `x`."""
    return self._to_maps(self._near * self._factors(scale) + self._factors(shift))

  def products(self, y: tf.Tensor, dy: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the means of `dy` and of `dy * (x - own)`."""
    del y
    dy = self._to_lines(dy)
    rows = self._to_rows(dy), self._to_rows(dy * self._near)
    return tf.reduce_mean(rows[0], 1), tf.reduce_mean(rows[1], 1)

  def gradient(
    self,
    y: tf.Tensor,
    dy: tf.Tensor,
    scale: tf.Tensor,
    slope: tf.Tensor,
    offset: tf.Tensor,
  ) -> list[tf.Tensor]:
    """Returns dy * scale + (x - own) * slope + offset."""
    del y
    scale, slope, offset = map(self._factors, (scale, slope, offset))
    return [self._to_maps(self._to_lines(dy) * scale + self._near * slope + offset)]

  @abc.abstractmethod
  def _to_lines(self, maps: tf.Tensor) -> tf.Tensor:
    """Lays out maps like `x`."""

  @abc.abstractmethod
  def _to_maps(self, lines: tf.Tensor) -> tf.Tensor:
    """Undoes `_to_lines`."""

  @abc.abstractmethod
  def _to_rows(self, lines: tf.Tensor) -> tf.Tensor:
    """Lays out lines as [rows, positions, channels]."""

  @abc.abstractmethod
  def _factors(self, values: tf.Tensor) -> tf.Tensor:
    """Lays out values, one for each row and channel, to be multiplied by lines."""


@tf.custom_gradient
def _mean_square(rows: tf.Tensor) -> Any:
  """Averages the squares of [rows, positions, channels] over positions, in one pass.

  A norm squares and adds at once; `tf.square` would write all squares. The norm's own
  derivative divides by it, and it may be 0.
  """
  # Known but for batches whose size is known only in a step.
  count = rows.shape[1] or tf.cast(tf.shape(rows)[1], rows.dtype)

  def gradient(dy: tf.Tensor) -> tf.Tensor:
    return dy[:, tf.newaxis] * rows * (2.0 / count)

  norm = tf.raw_ops.EuclideanNorm(input=rows, axis=1)
  return tf.square(norm) / count, gradient
