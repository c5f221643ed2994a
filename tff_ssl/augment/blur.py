"""Gaussian blur with a width of its own for each image, as two matrix products.

Jean-Bastien Grill et al. Bootstrap Your Own Latent. NeurIPS 2020, Appendix B.

Deviations: at the border the kernel is renormalised over the pixels that exist (the
published program pads with black), so a constant image stays as it is. The kernel is
at least 3 pixels wide, so that images under 20 pixels are blurred too.
"""

import tensorflow as tf

# The published program's kernel is about a tenth of the image wide.
_BLUR_DIVIDER = 10.0
# With this width (in pixels) a Gaussian on the pixel grid is exactly the identity.
_NO_BLUR = 1e-2


def kernel_radius(length: int) -> int:
  """Pixels on either side of the centre, for an image side of `length` pixels."""
  return max(1, int(length / _BLUR_DIVIDER / 2.0))


def _blur_matrices(sigma: tf.Tensor, length: int, radius: int) -> tf.Tensor:
  """[m, length, length] row-stochastic bands that blur one axis by sigma [m]."""
  steps = tf.range(radius + 1, dtype=sigma.dtype)
  kernel = tf.exp(-0.5 * tf.square(steps / sigma[:, tf.newaxis]))
  pixel = tf.range(length)
  distance = tf.abs(pixel[:, tf.newaxis] - pixel[tf.newaxis, :])
  # [length, length, radius + 1]; a distance beyond the radius has no column.
  at_distance = tf.one_hot(distance, radius + 1)
  neighbours = tf.cast(tf.reduce_sum(at_distance, axis=1), sigma.dtype)
  total = tf.matmul(kernel, neighbours, transpose_b=True)
  bands = tf.einsum('mo,ijo->mij', tf.cast(kernel, tf.float32), at_distance)
  return bands / tf.cast(total, tf.float32)[:, :, tf.newaxis]


def _blur_rows(images: tf.Tensor, matrices: tf.Tensor) -> tf.Tensor:
  """Applies [m, H, H] matrices along the first spatial axis of [m, H, W, C]."""
  height, width, channels = images.shape[1:]
  rows = tf.reshape(images, [-1, height, width * channels])
  return tf.reshape(tf.matmul(matrices, rows), [-1, height, width, channels])


def gaussian_blur(
  images: tf.Tensor,
  apply_draw: tf.Tensor,
  sigma_draw: tf.Tensor,
  probability: tf.Tensor,
  sigma: tuple[float, float],
) -> tf.Tensor:
  """Blurs the images that are drawn, each with its own width.

  Args:
    images: float32 [m, H, W, C] in [0, 1].
    apply_draw: float64 [m], uniform in [0, 1).
    sigma_draw: float64 [m], uniform in [0, 1).
    probability: float64 [m], the probability of blurring each image.
    sigma: Least and greatest standard deviation of the Gaussian, in pixels.

  Returns:
    float32 [m, H, W, C] in [0, 1].
  """
  height, width = images.shape[1:3]
  width_of_kernel = tf.where(
    apply_draw < probability, sigma[0] + (sigma[1] - sigma[0]) * sigma_draw, _NO_BLUR
  )
  # One radius, from the height, for both axes, as published.
  radius = kernel_radius(height)
  along_height = _blur_matrices(width_of_kernel, height, radius)
  along_width = (
    along_height if width == height else _blur_matrices(width_of_kernel, width, radius)
  )
  # Products over the first spatial axis, twice, with the axes swapped in between, are
  # faster than a product over the second one, whose rows are only C long.
  blurred = tf.transpose(_blur_rows(images, along_height), [0, 2, 1, 3])
  blurred = tf.transpose(_blur_rows(blurred, along_width), [0, 2, 1, 3])
  # Rows sum to 1 up to rounding, and white must not become more than white.
  return tf.minimum(blurred, 1.0)
