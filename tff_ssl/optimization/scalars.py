"""Hyperparameters as tensors, at the precision of what they multiply."""

import tensorflow as tf


def as_dtype(value: float | tf.Tensor, dtype: tf.DType) -> tf.Tensor:
  """Converts a number to a scalar of `dtype`.

  `tf.cast` takes a Python float through float32, which would cap the precision of
  float64 params at seven digits.
  """
  return tf.cast(value, dtype) if tf.is_tensor(value) else tf.constant(value, dtype)
