"""Maps in bfloat16: read, computed with in float32 and written, number by number.

TensorFlow's operations would make a copy in float32 for each cast, difference, square
and product of a norm, and take ten passes over them. Here XLA compiles what is done to
every number to one loop: a norm with the relu behind it takes four passes, two forward
and two backward, and no copy in float32 is ever in memory. TFF's worker has XLA too.

Maps in float32 keep TensorFlow's operations (`wide_maps`). With these passes a ResNet-8
takes 0.86 to 0.92 of the CPU time for a step on 512 images of 32 x 32 pixels, but 0.9
to 1.0 on 50, 1.0 to 1.1 on 16, 1.2 to 1.3 on 4, and 0.4 s more for each new number of
rows: XLA compiles for it, and uneven clients have many (an Intel Xeon with AVX-512, one
thread, when `wide_maps` took 2 to 3 % longer; AMD EPYC: 0.98 to 1.03 on 64).
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Any

import tensorflow as tf

# The key of a graph's collection of compiled functions.
_COLLECTION = 'tff_ssl_half_maps'


@dataclasses.dataclass(frozen=True)
class HalfMaps:
  """What a norm does to maps, with a factor for each example and channel.

  All factors and results for channels are [n, channels] and float32.

  Attributes:
    x: [n, height, width, channels] in bfloat16.
    own: A number near each channel's, which is subtracted before anything else.
    others: Maps like `x` that are added to the result.
    rectified: Whether the relu of the result is taken.
  """

  x: tf.Tensor
  own: tf.Tensor
  others: Sequence[tf.Tensor] = ()
  rectified: bool = False

  def moments(self) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the means over positions of `x - own` and of its square."""
    return _moments(self.x, self.own)

  def affine(self, scale: tf.Tensor, shift: tf.Tensor) -> tf.Tensor:
    """Returns relu((x - own) * scale + shift + others), like `x`."""
    return _affine(self.x, self.own, scale, shift, self.others, self.rectified)

  def products(self, y: tf.Tensor, dy: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the means over positions of `dy` and of `dy * (x - own)`.

    Args:
      y: The result of `affine`.
      dy: The gradient with respect to it. Where the relu is zero, so is `dy` here.
    """
    return _products(self.x, self.own, self._mask(y), dy)

  def gradient(
    self,
    y: tf.Tensor,
    dy: tf.Tensor,
    scale: tf.Tensor,
    slope: tf.Tensor,
    offset: tf.Tensor,
  ) -> list[tf.Tensor]:
    """Returns dy * scale + (x - own) * slope + offset, and the gradient of others.

    Args:
      y: As in `products`, like `dy`.
      dy: The gradient with respect to `y`.
      scale: The factors of `affine`.
      slope: Factors of `x - own`.
      offset: What is added.
    """
    mask = self._mask(y)
    dx = _gradient(self.x, self.own, mask, dy, scale, slope, offset)
    if self.others and mask is not None:
      dy = tf.raw_ops.ReluGrad(gradients=dy, features=y)
    return [dx, *(dy for _ in self.others)]

  def _mask(self, y: tf.Tensor) -> tf.Tensor | None:
    return y if self.rectified else None


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
  """Returns a function that XLA compiles once for all layers of equal shape."""

  @functools.wraps(function)
  def call(*args: Any) -> Any:
    with tf.init_scope():
      # A function keeps the graph that it is first called in, so a graph has its own.
      graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    kept = _eager if graph is None else _of_graph(graph)
    if function not in kept:
      kept[function] = tf.function(function, autograph=False, jit_compile=True)
    return kept[function](*args)

  return call


_eager: dict[Callable[..., Any], Any] = {}


def _of_graph(graph: tf.Graph) -> dict[Callable[..., Any], Any]:
  kept = graph.get_collection_ref(_COLLECTION)
  if not kept:
    kept.append({})
  return kept[0]


def _near(x: tf.Tensor, own: tf.Tensor) -> tf.Tensor:
  return tf.cast(x, tf.float32) - _for_positions(own)


def _for_positions(values: tf.Tensor) -> tf.Tensor:
  return values[:, tf.newaxis, tf.newaxis]


def _masked(y: tf.Tensor | None, dy: tf.Tensor) -> tf.Tensor:
  dy = tf.cast(dy, tf.float32)
  return dy if y is None else tf.where(y > 0, dy, tf.zeros_like(dy))


def _parts(maps: tf.Tensor) -> list[tf.Tensor]:
  """Divides maps into parts: every fourth line, or every third, second or single one.

  XLA computes the elements of a sum over positions one by one, but a sum of parts with
  vectors: means over positions take half the time, and compile as fast.
  """
  _, height, width, channels = maps.shape
  parts = max(count for count in (1, 2, 3, 4) if height % count == 0)
  return tf.unstack(
    tf.reshape(maps, [-1, height // parts, parts, width, channels]), axis=2
  )


def _mean(parts: list[tf.Tensor]) -> tf.Tensor:
  """Averages numbers over the positions of all parts."""
  return tf.reduce_mean(tf.add_n(parts), [1, 2]) / len(parts)


@_compiled
def _moments(x: tf.Tensor, own: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  near = [_near(lines, own) for lines in _parts(x)]
  return _mean(near), _mean([tf.square(each) for each in near])


@_compiled
def _affine(
  x: tf.Tensor,
  own: tf.Tensor,
  scale: tf.Tensor,
  shift: tf.Tensor,
  others: Sequence[tf.Tensor],
  rectified: bool,
) -> tf.Tensor:
  y = _near(x, own) * _for_positions(scale) + _for_positions(shift)
  for other in others:
    y += tf.cast(other, tf.float32)
  return tf.cast(tf.nn.relu(y) if rectified else y, x.dtype)


@_compiled
def _products(
  x: tf.Tensor, own: tf.Tensor, y: tf.Tensor | None, dy: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  slopes = _parts(dy)
  masks = [None] * len(slopes) if y is None else _parts(y)
  slopes = [_masked(*pair) for pair in zip(masks, slopes, strict=True)]
  near = [_near(lines, own) for lines in _parts(x)]
  return _mean(slopes), _mean([a * b for a, b in zip(slopes, near, strict=True)])


@_compiled
def _gradient(
  x: tf.Tensor,
  own: tf.Tensor,
  y: tf.Tensor | None,
  dy: tf.Tensor,
  scale: tf.Tensor,
  slope: tf.Tensor,
  offset: tf.Tensor,
) -> tf.Tensor:
  dx = _masked(y, dy) * _for_positions(scale) + _near(x, own) * _for_positions(slope)
  return tf.cast(dx + _for_positions(offset), x.dtype)
