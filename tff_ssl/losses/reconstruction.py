"""The loss of masked autoencoders: squared errors of the masked patches.

Source: He et al.: Masked Autoencoders Are Scalable Vision Learners. CVPR 2022. Section
3, 'Reconstruction target'.
"""

import tensorflow as tf

# As in the published program.
_EPSILON = 1e-6


def patchify(images: tf.Tensor, patch_size: int) -> tf.Tensor:
  """Cuts images into patches that do not overlap.

  Args:
    images: [n, H, W, C], with H and W multiples of the patch size.
    patch_size: Side of a patch, p, in pixels.

  Returns:
    [n, H W / p^2, p^2 C]: patches row by row, and in each its pixels row by row, with
    the channels of a pixel side by side.
  """
  height, width, channels = images.shape[1:]
  rows, columns = height // patch_size, width // patch_size
  cut = tf.reshape(images, [-1, rows, patch_size, columns, patch_size, channels])
  listed = tf.transpose(cut, [0, 1, 3, 2, 4, 5])
  return tf.reshape(listed, [-1, rows * columns, patch_size**2 * channels])


def normalise_patches(patches: tf.Tensor) -> tf.Tensor:
  """Brings the pixels of each patch to mean 0 and variance 1.

  The variance divides by the number of pixels; the paper leaves the divisor open. A
  patch of one pixel then has a variance too.

  Args:
    patches: [n, patches, pixels].

  Returns:
    The same shape; a patch of one colour becomes 0.
  """
  centred = patches - tf.reduce_mean(patches, axis=-1, keepdims=True)
  variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
  return centred * tf.math.rsqrt(variance + _EPSILON)


def masked_errors(
  predictions: tf.Tensor, targets: tf.Tensor, masked: tf.Tensor
) -> tf.Tensor:
  """Returns each example's mean squared error over its masked patches.

  Args:
    predictions: [n, patches, pixels].
    targets: The same shape.
    masked: [n, patches], of the predictions' type: 1 where masked, else 0.

  Returns:
    [n]; 0 where no patch is masked.
  """
  errors = tf.reduce_mean(tf.math.squared_difference(predictions, targets), axis=-1)
  return tf.math.divide_no_nan(
    tf.reduce_sum(errors * masked, axis=1), tf.reduce_sum(masked, axis=1)
  )
