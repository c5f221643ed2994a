"""Layer-wise distance of two networks' feature maps.

Kwangyeon Gill. FedSup: Teacher-Student Architecture for Federated Learning with
Unlabeled Clients. Master's thesis, Seoul National University, 2023, Section 4.1.1; the
idea is knowledge distillation by intermediate representations.

No gradient is stopped here: callers stop the gradient of a teacher that is held fixed.
"""

from collections.abc import Sequence

import tensorflow as tf


def mean_squared_differences(
  maps: Sequence[tf.Tensor], others: Sequence[tf.Tensor]
) -> tf.Tensor:
  """Sum over layers of the mean squared difference of two feature maps.

  The mean is over examples, positions and channels: layers of any size count equally.

  Args:
    maps: Feature maps of one network, each [n, ...]; n may be 0.
    others: The other network's maps of the same examples, with the same shapes.

  Returns:
    Scalar, at least 0; 0 without layers or without examples.

  Raises:
    ValueError: If the networks have different numbers of maps, or two shapes differ.

  Source: FedSup, Section 4.1.1, "Layer-wise MSE loss".
  """
  if len(maps) != len(others):
    raise ValueError(
      f'There are {len(maps)} and {len(others)} feature maps; both networks must have '
      'the same number.'
    )
  total = tf.zeros([], maps[0].dtype if maps else tf.float32)
  for a, b in zip(maps, others, strict=True):
    if not a.shape.is_compatible_with(b.shape):
      raise ValueError(
        f'Feature maps have shapes {a.shape} and {b.shape}; they must be the same.'
      )
    squared = tf.math.squared_difference(a, b)
    count = tf.cast(tf.size(squared), a.dtype)
    total += tf.math.divide_no_nan(tf.reduce_sum(squared), count)
  return total
