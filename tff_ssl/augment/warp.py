"""Affine maps of images, one for each image of a batch, by one resampling.

Maps are about the image's centre, in pixels: (x, y) of the result shows the image at
A (x, y) + b.
"""

import tensorflow as tf


def affine(
  images: tf.Tensor, matrix: tf.Tensor, shift: tf.Tensor, fill: str = 'CONSTANT'
) -> tf.Tensor:
  """Resamples images bilinearly.

  Args:
    images: float32 [n, H, W, C]; H and W known, n may be 0.
    matrix: float64 [n, 2, 2], A.
    shift: float64 [n, 2], b: to the right, and down.
    fill: What is shown outside: 'CONSTANT' is grey (1/2), 'REFLECT' the image mirrored.

  Returns:
    float32 [n, H, W, C].
  """
  height, width = images.shape[1:3]
  centre = tf.constant([(width - 1) / 2, (height - 1) / 2], tf.float64)
  # A (p - c) + b + c = A p + (b + c - A c).
  offset = shift + centre - tf.reduce_sum(matrix * centre, axis=2)
  rows = tf.concat([matrix, offset[:, :, tf.newaxis]], axis=2)
  transforms = tf.concat([tf.reshape(rows, [-1, 6]), tf.zeros_like(offset)], axis=1)
  return tf.raw_ops.ImageProjectiveTransformV3(
    images=images,
    transforms=tf.cast(transforms, tf.float32),
    output_shape=tf.constant([height, width], tf.int32),
    fill_value=tf.constant(0.5, tf.float32),
    interpolation='BILINEAR',
    fill_mode=fill,
  )
