"""How many clients send an update that is far longer than those of their cohort.

Each client says in which of 32 intervals the length of its update is, one-hot. The
server adds these up, securely if the aggregation is, and sees the cohort's histogram:

    interval b: 4^(b - 16) <= length < 4^(b - 15), the first and the last without end.

An update is far longer if it is at least four intervals above the median's: at least
64 times as long, and certainly if it is 1024 times as long. Clients of ordinary sizes
are nearer to each other: a client that takes a hundred steps moves less than a hundred
times as far as one that takes one.

Clients of a pack that are computed together (`packing`) are in the histogram once, by
the length of their mean. Nothing is sent where noise is added, because the histogram
would be a release of its own. Nor is it where the server has each client's update, or
its length, in a table: FedU2 and decentralized learning measure that.
"""

import tensorflow as tf

# Among the totals of the exchange in which clients send updates.
LENGTHS = 'update_lengths'
# Among a round's metrics.
OUTLYING = 'outlying_clients'
BUCKETS = 32
_FAR = 4


def histogram(squares: tf.Tensor) -> tf.Tensor:
  """Returns in which interval each length is, summed: int32 [BUCKETS].

  Args:
    squares: Floating [K], squared lengths; those that are 0 or NaN are in no interval.
  """
  squares = tf.cast(squares, tf.float64)
  bucket = tf.floor(tf.math.log(squares) / tf.math.log(tf.constant(16.0, tf.float64)))
  bucket = tf.clip_by_value(bucket + BUCKETS // 2, 0, BUCKETS - 1)
  # One of no interval is -1, which has no row of its own.
  bucket = tf.cast(tf.where(squares > 0, bucket, -1), tf.int32)
  return tf.reduce_sum(tf.one_hot(bucket, BUCKETS, dtype=tf.int32), axis=0)


def outlying(counts: tf.Tensor) -> tf.Tensor:
  """Returns how many lengths are far above the median, an int32 scalar.

  Args:
    counts: int32 [BUCKETS], the cohort's histogram.
  """
  up_to = tf.cumsum(counts)
  median = tf.argmax(2 * up_to >= up_to[-1], output_type=tf.int32)
  return tf.reduce_sum(tf.where(tf.range(BUCKETS) >= median + _FAR, counts, 0))
