"""RandAugment: a few operations, each drawn from one list with a magnitude of its own.

Ekin D. Cubuk, Barret Zoph, Jonathon Shlens, Quoc V. Le. RandAugment: Practical
Automated Data Augmentation with a Reduced Search Space. CVPR Workshops 2020; with the
list and ranges of FixMatch (Sohn et al., NeurIPS 2020, Appendix D, Table 12).

Each image of a batch draws its own operations. All images go through each kind of
operation together, because operations are few and images many. Images that have not
drawn an operation get parameters that leave them unchanged.

Deviations: pixels from outside the image are grey, as where Cutout cuts. Autocontrast
and equalization work on values of 8 bits, as published, the others on real numbers. The
mean of contrast is not rounded.
"""

from collections.abc import Mapping
import math

import tensorflow as tf

from tff_ssl.augment import color
from tff_ssl.augment import warp

OPERATIONS = (
  'identity',
  'autocontrast',
  'equalize',
  'rotate',
  'solarize',
  'color',
  'posterize',
  'contrast',
  'brightness',
  'sharpness',
  'shear_x',
  'shear_y',
  'translate_x',
  'translate_y',
)
# Least and greatest magnitude; for posterize, the bits that are kept.
_RANGES = {
  'rotate': (-30.0, 30.0),
  'solarize': (0.0, 1.0),
  'color': (0.05, 0.95),
  'posterize': (4.0, 8.0),
  'contrast': (0.05, 0.95),
  'brightness': (0.05, 0.95),
  'sharpness': (0.05, 0.95),
  'shear_x': (-0.3, 0.3),
  'shear_y': (-0.3, 0.3),
  'translate_x': (-0.3, 0.3),
  'translate_y': (-0.3, 0.3),
}
_BLENDS = ('color', 'contrast', 'brightness', 'sharpness')
_LEVELS = 256


def apply(
  images: tf.Tensor, operation_draw: tf.Tensor, magnitude_draw: tf.Tensor
) -> tf.Tensor:
  """Applies to each image the operation that it has drawn.

  Args:
    images: float32 [n, H, W, C] in [0, 1], C = 1 or 3; n may be 0.
    operation_draw: float64 [n], uniform in [0, 1): one of `OPERATIONS`.
    magnitude_draw: float64 [n], uniform in [0, 1): the place in the operation's range.

  Returns:
    float32 [n, H, W, C] in [0, 1]. An image with values that are not finite stays as it
    is, so that they are still noticed.
  """
  finite = tf.math.is_finite(tf.reduce_sum(images, axis=[1, 2, 3]))
  broken = images
  number = tf.cast(tf.floor(operation_draw * len(OPERATIONS)), tf.int32)
  chosen = {name: tf.equal(number, i) for i, name in enumerate(OPERATIONS)}
  magnitude = {
    name: low + (high - low) * magnitude_draw for name, (low, high) in _RANGES.items()
  }
  images = _geometry(images, chosen, magnitude)
  images = _blend(images, chosen, magnitude)
  images = _posterize(images, chosen['posterize'], magnitude['posterize'])
  images = _solarize(images, chosen['solarize'], magnitude['solarize'])
  images = _where(chosen['autocontrast'], _autocontrast(images), images)
  images = _where(chosen['equalize'], _equalize(images), images)
  return _where(finite, images, broken)


def _geometry(
  images: tf.Tensor, chosen: Mapping[str, tf.Tensor], magnitude: Mapping[str, tf.Tensor]
) -> tf.Tensor:
  """Rotates, shears or shifts the images that have drawn it."""
  height, width = images.shape[1:3]

  def drawn(name: str) -> tf.Tensor:
    return tf.where(chosen[name], magnitude[name], tf.zeros_like(magnitude[name]))

  angle = drawn('rotate') * (math.pi / 180.0)
  cosine, sine = tf.cos(angle), tf.sin(angle)
  # An image has drawn at most one of these; the others are the identity.
  first = tf.stack([cosine, drawn('shear_x') - sine], axis=1)
  second = tf.stack([drawn('shear_y') + sine, cosine], axis=1)
  shift = tf.stack([drawn('translate_x') * width, drawn('translate_y') * height], 1)
  return warp.affine(images, tf.stack([first, second], axis=1), shift)


def _blend(
  images: tf.Tensor, chosen: Mapping[str, tf.Tensor], magnitude: Mapping[str, tf.Tensor]
) -> tf.Tensor:
  """Blends: d + f (x - d), d the image without colour, contrast, brightness, detail."""
  grey = images
  if images.shape[3] == 3:
    luma = tf.constant(color.LUMA, tf.float32)
    grey = tf.reduce_sum(images * luma, axis=3, keepdims=True)
  degenerate = {
    'color': tf.broadcast_to(grey, tf.shape(images)),
    'contrast': tf.reduce_mean(grey, axis=[1, 2, 3], keepdims=True),
    'brightness': tf.zeros([], tf.float32),
    'sharpness': _smooth(images),
  }
  result = images
  for name in _BLENDS:
    factor = tf.cast(magnitude[name], tf.float32)[:, tf.newaxis, tf.newaxis, tf.newaxis]
    blended = degenerate[name] + factor * (images - degenerate[name])
    result = _where(chosen[name], blended, result)
  return result


def _smooth(images: tf.Tensor) -> tf.Tensor:
  """Pillow's smoothing filter; the border stays."""
  height, width, channels = images.shape[1:]
  kernel = tf.constant([[1.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 1.0]]) / 13.0
  kernel = tf.tile(kernel[:, :, tf.newaxis, tf.newaxis], [1, 1, channels, 1])
  if height < 3 or width < 3:
    return images
  inner = tf.nn.depthwise_conv2d(_at_least_one(images), kernel, [1] * 4, 'VALID')
  inner = inner[: tf.shape(images)[0]]
  frame = [[0, 0], [1, 1], [1, 1], [0, 0]]
  inside = tf.pad(tf.ones_like(inner), frame)
  return tf.where(inside > 0, tf.pad(inner, frame), images)


def _at_least_one(images: tf.Tensor) -> tf.Tensor:
  """Returns the images, with a black one if there is none, which oneDNN needs."""
  missing = tf.cast(tf.equal(tf.shape(images)[0], 0), tf.int32)
  padded = tf.pad(images, [[0, missing], [0, 0], [0, 0], [0, 0]])
  return tf.ensure_shape(padded, [None, *images.shape[1:]])


def _posterize(images: tf.Tensor, chosen: tf.Tensor, bits: tf.Tensor) -> tf.Tensor:
  """Keeps the highest `bits` of the 8 bits of each value."""
  step = tf.cast(2.0 ** (8.0 - tf.floor(bits)), tf.float32)
  step = step[:, tf.newaxis, tf.newaxis, tf.newaxis]
  values = tf.cast(_to_bytes(images), tf.float32)
  return _where(chosen, tf.floor(values / step) * step / 255.0, images)


def _solarize(images: tf.Tensor, chosen: tf.Tensor, threshold: tf.Tensor) -> tf.Tensor:
  """Inverts values from each image's threshold up."""
  limit = tf.cast(threshold, tf.float32)[:, tf.newaxis, tf.newaxis, tf.newaxis]
  return _where(chosen, tf.where(images < limit, images, 1.0 - images), images)


def _autocontrast(images: tf.Tensor) -> tf.Tensor:
  """Stretches each channel to the full range; a channel without contrast stays."""
  values = tf.cast(_to_bytes(images), tf.float32)
  low = tf.reduce_min(values, axis=[1, 2], keepdims=True)
  high = tf.reduce_max(values, axis=[1, 2], keepdims=True)
  stretched = tf.math.divide_no_nan(values - low, high - low)
  return tf.where(high > low, stretched, images)


def _equalize(images: tf.Tensor) -> tf.Tensor:
  """Makes the histogram of each channel even, as Pillow does."""
  height, width, channels = images.shape[1:]
  values = tf.transpose(_to_bytes(images), [0, 3, 1, 2])
  values = tf.reshape(values, [-1, height * width])
  rows = tf.shape(values)[0]
  of_row = values + _LEVELS * tf.range(rows)[:, tf.newaxis]
  counts = tf.math.unsorted_segment_sum(tf.ones_like(of_row), of_row, rows * _LEVELS)
  counts = tf.reshape(counts, [rows, _LEVELS])
  below = tf.cumsum(counts, axis=1, exclusive=True)
  last = tf.gather(counts, tf.reduce_max(values, axis=1), batch_dims=1)
  step = ((height * width - last) // (_LEVELS - 1))[:, tf.newaxis]
  table = (below + step // 2) // tf.maximum(step, 1)
  table = tf.where(step > 0, tf.minimum(table, _LEVELS - 1), tf.range(_LEVELS))
  mapped = tf.gather(table, values, batch_dims=1)
  mapped = tf.reshape(mapped, [-1, channels, height, width])
  return tf.cast(tf.transpose(mapped, [0, 2, 3, 1]), tf.float32) / 255.0


def _to_bytes(images: tf.Tensor) -> tf.Tensor:
  """Returns values as int32 in [0, 255], whatever they are."""
  values = tf.cast(tf.round(tf.clip_by_value(images, 0.0, 1.0) * 255.0), tf.int32)
  # NaN may be cast to any integer, even one outside of a histogram.
  return tf.clip_by_value(values, 0, _LEVELS - 1)


def _where(chosen: tf.Tensor, changed: tf.Tensor, images: tf.Tensor) -> tf.Tensor:
  return tf.where(chosen[:, tf.newaxis, tf.newaxis, tf.newaxis], changed, images)
