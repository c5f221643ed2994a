"""MoCo's queue of keys; its loss: tests/contract/losses_test.py."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.losses import key_queue


def _rows(first: int, number: int) -> np.ndarray:
  return np.full((number, 2), np.arange(first, first + number)[:, np.newaxis], float)


# None, less than the queue, across its end, exactly full, and more than it holds.
@pytest.mark.parametrize('sizes', [(0,), (2,), (2, 3), (4,), (7,), (1, 0, 6, 2)])
def test_the_queue_is_pushed_one_key_at_a_time(sizes):
  queue, count = tf.zeros([4, 2], tf.float64), tf.constant(0)
  pushed = []
  for n in sizes:
    batch = _rows(1 + len(pushed), n)
    queue, count = key_queue.enqueue(queue, count, tf.constant(batch))
    pushed.extend(batch[:, 0])
  newest = pushed[::-1][:4]
  assert int(count) == len(newest)
  np.testing.assert_array_equal(queue[:, 0], newest + [0.0] * (4 - len(newest)))


def test_a_queue_in_a_graph_takes_any_number_of_keys():
  @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float64)])
  def pushed(x):
    queue, count = key_queue.enqueue(tf.zeros([3, 2], x.dtype), tf.constant(0), x)
    assert queue.shape == (3, 2)
    return count

  for n in (0, 2, 5):
    assert int(pushed(_rows(1, n))) == min(n, 3)


@pytest.mark.parametrize(
  ('shapes', 'message'),
  [
    (((2, 3), (2, 4), (4, 3)), r'both must be \[n, d\]'),
    (((2, 3), (2, 3), (4, 5)), r'must be \[size, d\]'),
  ],
)
def test_rejects_what_does_not_fit(shapes, message):
  tensors = [tf.ones(shape) for shape in shapes]
  with pytest.raises(ValueError, match=message):
    key_queue.info_nce(*tensors, tf.constant(0), 0.1)
