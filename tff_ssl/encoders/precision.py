"""Checks that this machine can compute in bfloat16, for `Network.precision`."""

import functools

import tensorflow as tf

from tff_ssl.encoders import network

# Together 16,384; a sum of ones in bfloat16 stops at 2^8 = 256.
_POSITIONS = (16, 32, 32)


def check(precision: str) -> None:
  """Checks that convolutions of this type work here, and sum in float32.

  oneDNN and cuDNN sum in float32. TensorFlow's own CPU kernels, used on processors
  without AVX-512 even if oneDNN is on, sum in bfloat16: a kernel's gradient can be a
  third of its size.

  Args:
    precision: One of `network.PRECISIONS`.

  Raises:
    ValueError: They do not.
  """
  if precision == network.BFLOAT16 and (wrong := fault()):
    raise ValueError(
      f'precision is {precision}; it must be {network.FLOAT32} on this machine, where '
      f'TensorFlow {wrong}.'
    )


@functools.cache
def fault() -> str:
  """Returns what TensorFlow does wrong in bfloat16 here, as a verb; empty: nothing."""
  # Few channels, because blocks of channels would hide the fault.
  images = tf.ones([*_POSITIONS, 4], tf.bfloat16)
  kernel = tf.zeros([1, 1, 4, 4], tf.bfloat16)
  expected = float(tf.reduce_prod(_POSITIONS))
  try:
    total = float(_gradient(images, kernel))
  except tf.errors.OpError as error:
    why = (error.message or '').strip().splitlines() or ['']
    return f'has no convolution for it: {why[-1].strip()[:120]}'
  if abs(total - expected) > expected * 2**-7:
    return (
      f'sums its products in 8 bits: the sum of {expected:,.0f} ones is {total:,.0f}'
    )
  return ''


@tf.function(autograph=False)
def _gradient(images: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
  """Returns the derivative with respect to a weight: the number of positions."""
  with tf.GradientTape() as tape:
    tape.watch(kernel)
    y = tf.nn.conv2d(images, kernel, 1, 'SAME')
    loss = tf.reduce_sum(tf.cast(y, tf.float32))
  return tape.gradient(loss, kernel)[0, 0, 0, 0]
