"""Small heads on feature maps: a mask of each pixel, or the box around an object.

Sources:
  Long, Shelhamer, Darrell, "Fully Convolutional Networks for Semantic Segmentation",
    CVPR 2015: coarse maps are enlarged and added to finer ones, each through a 1 x 1
    convolution.
  Milletari, Navab, Ahmadi, "V-Net", 3DV 2016: the Dice loss.
  Sermanet et al., "OverFeat", ICLR 2014: a box is regressed from the maps, because they
    say where something is; their mean over positions does not.
  Carion et al., "End-to-End Object Detection with Transformers", ECCV 2020, Appendix
    A.2: the loss of a box, 5 times the L1 distance and 2 times 1 - GIoU (Rezatofighi et
    al., CVPR 2019).

Deviations: an image has one object, so that nothing is matched and no score is learnt;
V-Net's Dice loss is added to the cross-entropy of pixels.
"""

import collections
from collections.abc import Sequence
import dataclasses
import math
from typing import Protocol

import tensorflow as tf

from tff_ssl.computing import seeds

Params = collections.OrderedDict[str, tf.Tensor]
Shape = tuple[int, int, int]

_UNITS = 32
# A map is averaged to this many cells a side before a box is regressed.
_CELLS = 4
# Weights of the L1 distance and of the GIoU.
_L1, _GIOU = 5.0, 2.0
_TINY = 1e-6


class DenseHead(Protocol):
  """A head that predicts something about an image from its feature maps."""

  def init(self, seed: int) -> Params:
    """Draws parameters; the last layer is zero."""

  def predict(self, params: Params, maps: Sequence[tf.Tensor]) -> tf.Tensor:
    """Maps feature maps [n, height, width, channels], the finest first, to outputs."""

  def loss(self, outputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns the mean loss of a batch, given its true targets."""

  def flip(self, targets: tf.Tensor) -> tf.Tensor:
    """Returns the targets of images that were mirrored left to right."""


@dataclasses.dataclass(frozen=True)
class Segmentation:
  """Logits of each pixel, [n, height, width]; targets are masks of 0 and 1, float32.

  Attributes:
    maps: Shapes of the feature maps, the finest first.
    size: (height, width) of the images.
  """

  maps: tuple[Shape, ...]
  size: tuple[int, int]

  def init(self, seed: int) -> Params:
    """Draws parameters; see `DenseHead`."""
    params: Params = collections.OrderedDict()
    for k, (_, _, channels) in enumerate(self.maps):
      params.update(_layer(f'lateral{k}', (1, 1, channels, _UNITS), (seed, k)))
    params.update(_layer('mix', (3, 3, _UNITS, _UNITS), (seed, len(self.maps))))
    params.update(_layer('logits', (1, 1, _UNITS, 1)))
    return params

  def predict(self, params: Params, maps: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns logits [n, height, width] of images of `size`."""
    sums = _convolve(params, f'lateral{len(maps) - 1}', maps[-1])
    for k in reversed(range(len(maps) - 1)):
      larger = tf.image.resize(sums, self.maps[k][:2])
      sums = larger + _convolve(params, f'lateral{k}', maps[k])
    mixed = tf.nn.relu(_convolve(params, 'mix', tf.nn.relu(sums)))
    return tf.image.resize(_convolve(params, 'logits', mixed), self.size)[..., 0]

  def loss(self, outputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns the cross-entropy of pixels and the Dice loss of images, both means."""
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=outputs)
    shares = tf.sigmoid(outputs)
    shared = tf.reduce_sum(shares * targets, axis=[1, 2])
    total = tf.reduce_sum(shares + targets, axis=[1, 2])
    # One pixel is added: an empty prediction of an empty mask has loss 0.
    dice = 1.0 - (2.0 * shared + 1.0) / (total + 1.0)
    return tf.reduce_mean(entropy) + tf.reduce_mean(dice)

  def flip(self, targets: tf.Tensor) -> tf.Tensor:
    """Mirrors masks."""
    return tf.reverse(targets, axis=[2])


@dataclasses.dataclass(frozen=True)
class Box:
  """One box per image, [n, 4], as `overlap` defines it; targets likewise, float32.

  Attributes:
    maps: Shapes of the feature maps, the finest first; the last is read.
  """

  maps: tuple[Shape, ...]

  def init(self, seed: int) -> Params:
    """Draws parameters; the first box is central, its sides are 1/2."""
    rows, columns = (math.ceil(side / self._window(side)) for side in self.maps[-1][:2])
    cells = rows * columns * _UNITS
    params = _layer('lateral', (1, 1, self.maps[-1][2], _UNITS), (seed, 0))
    params.update(_layer('hidden', (cells, 2 * _UNITS), (seed, 1)))
    params.update(_layer('box', (2 * _UNITS, 4)))
    return params

  def predict(self, params: Params, maps: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns boxes [n, 4] whose middles and sides are between 0 and 1.

    So they may reach beyond the plane, by up to half.
    """
    window = [self._window(side) for side in self.maps[-1][:2]]
    cells = tf.nn.avg_pool2d(maps[-1], window, window, 'SAME')
    units = tf.nn.relu(_convolve(params, 'lateral', cells))
    units = tf.reshape(units, [tf.shape(units)[0], params['hidden/kernel'].shape[0]])
    units = tf.nn.relu(_dense(params, 'hidden', units))
    middle, side = tf.split(tf.sigmoid(_dense(params, 'box', units)), 2, axis=1)
    return tf.concat([middle - side / 2, middle + side / 2], axis=1)

  def loss(self, outputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns the mean over boxes of their L1 distance and 1 - GIoU, weighted."""
    distance = tf.reduce_sum(tf.abs(_middle(outputs) - _middle(targets)), axis=1)
    return tf.reduce_mean(_L1 * distance + _GIOU * (1.0 - giou(outputs, targets)))

  def flip(self, targets: tf.Tensor) -> tf.Tensor:
    """Mirrors boxes."""
    left, top, right, bottom = tf.unstack(targets, axis=1)
    return tf.stack([1.0 - right, top, 1.0 - left, bottom], axis=1)

  def _window(self, side: int) -> int:
    """Returns the side of the window that is averaged to a cell."""
    return math.ceil(side / _CELLS)


def giou(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
  """Returns the generalized IoU of each pair of boxes, [n] in [-1, 1].

  Rezatofighi et al., CVPR 2019, Algorithm 1: IoU - |hull minus union| / |hull|.

  Args:
    first: [n, 4], none of negative sides.
    second: Likewise.
  """
  sides = tf.minimum(first[:, 2:], second[:, 2:]) - tf.maximum(
    first[:, :2], second[:, :2]
  )
  shared = tf.reduce_prod(tf.maximum(sides, 0.0), axis=1)
  union = _area(first) + _area(second) - shared
  hull = tf.reduce_prod(
    tf.maximum(first[:, 2:], second[:, 2:]) - tf.minimum(first[:, :2], second[:, :2]),
    axis=1,
  )
  return shared / (union + _TINY) - (hull - union) / (hull + _TINY)


def _area(boxes: tf.Tensor) -> tf.Tensor:
  return tf.reduce_prod(boxes[:, 2:] - boxes[:, :2], axis=1)


def _middle(boxes: tf.Tensor) -> tf.Tensor:
  """Returns boxes as their middles and sides."""
  low, high = tf.split(boxes, 2, axis=1)
  return tf.concat([(low + high) / 2, high - low], axis=1)


def _layer(
  name: str, shape: tuple[int, ...], seed: tuple[int, int] | None = None
) -> Params:
  """Draws a kernel (He et al., 2015), or zeros without a seed; the bias is zero."""
  kernel = tf.zeros(shape)
  if seed is not None:
    scale = math.sqrt(2 / math.prod(shape[:-1]))
    kernel = scale * tf.random.stateless_normal(shape, seeds.stream(*seed))
  return collections.OrderedDict(
    [(f'{name}/kernel', kernel), (f'{name}/bias', tf.zeros(shape[-1:]))]
  )


def _convolve(params: Params, name: str, x: tf.Tensor) -> tf.Tensor:
  y = tf.nn.conv2d(x, params[f'{name}/kernel'], 1, 'SAME')
  return tf.nn.bias_add(y, params[f'{name}/bias'])


def _dense(params: Params, name: str, x: tf.Tensor) -> tf.Tensor:
  return tf.matmul(x, params[f'{name}/kernel']) + params[f'{name}/bias']
