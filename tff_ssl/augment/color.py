"""Colour jitter, grey and solarization, one affine map of RGB per example.

Jean-Bastien Grill et al. Bootstrap Your Own Latent. NeurIPS 2020, Appendix B.

In luma and chroma (YIQ) the jitter separates: brightness adds to luma, contrast scales
everything around the image's mean luma, saturation scales chroma, hue turns chroma,
grey drops chroma. Contrast about a mean commutes with a shift of that mean, and the
others act on chroma alone, so without clipping between them the operations COMMUTE.
Their random order, which the published program draws, therefore does not change the
result, and together they are one 3 x 3 matrix and one offset per example.

Deviations: values are clipped to [0, 1] once, after the whole map, not after each
operation. Saturation and hue scale and turn the chroma plane of YIQ instead of going
through HSV. Contrast is taken around the mean luma; the published program takes each
channel's mean. Brightness is additive, as in that program.
"""

from collections.abc import Mapping
import math

import numpy as np
import tensorflow as tf

# NTSC (FCC 1953), to four digits; the chroma rows sum to 0, so grey has no chroma.
_YIQ_FROM_RGB = np.array(
  [
    [0.2990, 0.5870, 0.1140],
    [0.5959, -0.2746, -0.3213],
    [0.2115, -0.5227, 0.3112],
  ]
)
LUMA = _YIQ_FROM_RGB[0]


def _rgb_basis() -> np.ndarray:
  """[3, 9]: luma, chroma, and chroma turned by 90 degrees, as maps of RGB."""
  rgb_from_yiq = np.linalg.inv(_YIQ_FROM_RGB)
  planes = [
    np.diag([1.0, 0.0, 0.0]),
    np.diag([0.0, 1.0, 1.0]),
    # Clockwise in (I, Q), the direction from red to green: hue increases.
    np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),
  ]
  return np.stack([(rgb_from_yiq @ p @ _YIQ_FROM_RGB).ravel() for p in planes])


_RGB_BASIS = _rgb_basis()


def _spread(draw: tf.Tensor, reach: float) -> tf.Tensor:
  """Uniform in [-reach, reach) from uniform in [0, 1)."""
  return (2.0 * reach) * draw - reach


def jitter(
  images: tf.Tensor,
  draws: Mapping[str, tf.Tensor],
  jitter_probability: float,
  strengths: tuple[float, float, float, float],
  grey_probability: float,
) -> tf.Tensor:
  """Brightness, contrast, saturation, hue and grey of each image by its own draws.

  Args:
    images: float32 [m, H, W, C] in [0, 1]; C is 3 or 1; with 1, only brightness and
      contrast have an effect and the rest is the identity.
    draws: `jitter`, `brightness`, `contrast`, `saturation`, `hue` and `grey`, each
      float64 [m], uniform in [0, 1).
    jitter_probability: Probability that an image is jittered at all.
    strengths: Reach of brightness (added), contrast and saturation (factors around
      1) and hue (full turns).
    grey_probability: Probability of dropping the chroma, jittered or not.

  Returns:
    float32 [m, H, W, C] in [0, 1].
  """
  brightness, contrast, saturation, hue = strengths
  applied = tf.cast(draws['jitter'] < jitter_probability, tf.float64)
  shift = applied * _spread(draws['brightness'], brightness)
  gain = 1.0 + applied * _spread(draws['contrast'], contrast)

  mean = tf.cast(tf.reduce_mean(images, axis=[1, 2]), tf.float64)
  if images.shape[3] == 1:
    matrix, mean_luma = gain[:, tf.newaxis, tf.newaxis], mean[:, 0]
  else:
    coloured = tf.cast(draws['grey'] >= grey_probability, tf.float64)
    chroma = coloured * (1.0 + applied * _spread(draws['saturation'], saturation))
    angle = applied * _spread(draws['hue'], 2.0 * math.pi * hue)
    planes = tf.stack(
      [tf.ones_like(chroma), chroma * tf.cos(angle), chroma * tf.sin(angle)], axis=1
    )
    matrix = tf.reshape(
      tf.matmul(gain[:, tf.newaxis] * planes, tf.constant(_RGB_BASIS)),
      [-1, 3, 3],
    )
    mean_luma = tf.linalg.matvec(mean, tf.constant(LUMA))
  offset = shift + (1.0 - gain) * mean_luma
  mapped = tf.einsum('nhwc,ndc->nhwd', images, tf.cast(matrix, tf.float32))
  return tf.clip_by_value(
    mapped + tf.cast(offset, tf.float32)[:, tf.newaxis, tf.newaxis, tf.newaxis],
    0.0,
    1.0,
  )


def solarize(
  images: tf.Tensor, draw: tf.Tensor, probability: tf.Tensor, threshold: float
) -> tf.Tensor:
  """Inverts values from the threshold up, in the images that are drawn.

  Args:
    images: float32 [m, H, W, C] in [0, 1].
    draw: float64 [m], uniform in [0, 1).
    probability: float64 [m], the probability of solarizing each image.
    threshold: A number in [0, 1]; values below it stay.

  Returns:
    float32 [m, H, W, C] in [0, 1].
  """
  # No value reaches 2: the threshold of an image that is not drawn.
  limit = tf.where(draw < probability, tf.constant(threshold, tf.float32), 2.0)
  # Selecting in a matrix is three times faster than in a tensor of rank 4.
  rows = tf.reshape(images, [-1, math.prod(images.shape[1:])])
  solarized = tf.where(rows < limit[:, tf.newaxis], rows, 1.0 - rows)
  return tf.reshape(solarized, [-1, *images.shape[1:]])
