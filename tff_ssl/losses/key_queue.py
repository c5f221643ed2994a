"""MoCo's contrastive loss over a queue of keys.

Kaiming He, Haoqi Fan, Yuxin Wu, Saining Xie, Ross Girshick. Momentum Contrast for
Unsupervised Visual Representation Learning. CVPR 2020.
"""

import tensorflow as tf

from tff_ssl.losses import lengths


def info_nce(
  queries: tf.Tensor,
  keys: tf.Tensor,
  queue: tf.Tensor,
  count: tf.Tensor,
  temperature: float = 0.07,
  batch_negatives: bool = False,
) -> tf.Tensor:
  """Cross-entropy of telling each query's own key from other examples' keys.

  Args:
    queries: [n, d]; n may be 0.
    keys: [n, d], row i the key of query i; constants in the paper.
    queue: [size, d] unit vectors, the keys of earlier batches.
    count: int32 scalar; the queue's first `count` rows are negatives, the others empty.
    temperature: tau, divides the cosine similarities; above 0.
    batch_negatives: Whether the keys of the batch's other examples are negatives too;
      False in the paper. With it and an empty queue this is NT-Xent with the queries
      as anchors and the keys alone as candidates.

  Returns:
    Mean over queries, a scalar. 0 where there is no query, or no negative.

  Raises:
    ValueError: If the shapes do not fit.

  Source: He et al. 2020, Eq. 1 and Algorithm 1.
  """
  if queries.shape.rank != 2 or not queries.shape.is_compatible_with(keys.shape):
    raise ValueError(
      f'The queries and keys have shapes {queries.shape} and {keys.shape}; both must '
      'be [n, d].'
    )
  if not queue.shape[1:].is_compatible_with(queries.shape[1:]):
    raise ValueError(
      f'The queue has shape {queue.shape}; it must be [size, d] with the d of the '
      f'queries, {queries.shape}.'
    )
  q, k = lengths.unit(queries, axis=1), lengths.unit(keys, axis=1)
  positive = tf.reduce_sum(q * k, axis=1) / temperature
  own = (
    tf.matmul(q, k, transpose_b=True) / temperature
    if batch_negatives
    else positive[:, tf.newaxis]
  )
  earlier = tf.matmul(q, queue, transpose_b=True) / temperature
  filled = tf.range(tf.shape(queue)[0]) < count
  # The lowest finite number, not -inf: a row of -inf has a gradient of NaN.
  lowest = tf.fill(tf.shape(earlier), earlier.dtype.min)
  earlier = tf.where(filled[tf.newaxis, :], earlier, lowest)
  losses = tf.reduce_logsumexp(tf.concat([own, earlier], axis=1), axis=1) - positive
  num_queries = tf.cast(tf.shape(q)[0], losses.dtype)
  return tf.math.divide_no_nan(tf.reduce_sum(losses), num_queries)


def enqueue(
  queue: tf.Tensor, count: tf.Tensor, keys: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Puts the keys of a batch into the queue, in place of the oldest.

  The newest key is row 0; within a batch, the last example's key is the newest. Keys
  added in two batches make the same queue as in one.

  Args:
    queue: [size, d], whose first `count` rows are filled.
    count: int32 scalar.
    keys: [n, d] unit vectors; n may be 0, and above size.

  Returns:
    The new queue, and its count, at most size.

  Source: He et al. 2020, Algorithm 1 (enqueue, dequeue).
  """
  size = queue.shape[0]
  joined = tf.concat([tf.reverse(keys, axis=[0]), queue], axis=0)
  return (
    tf.ensure_shape(joined[:size], queue.shape),
    tf.minimum(count + tf.shape(keys)[0], size),
  )
