"""Tests of MoCo's loss and queue, against NumPy loops and NT-Xent's one-sided form."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tff_ssl.losses import key_queue

_DIM = 4


def _batch(n: int, size: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  rng = np.random.default_rng(n)
  queries, keys = rng.normal(size=(2, n, _DIM))
  return queries, keys, references.unit(rng.normal(size=(size, _DIM)))


def _loss(queries, keys, queue, count, *args):
  tensors = (tf.constant(x) for x in (queries, keys, queue))
  return float(key_queue.info_nce(*tensors, tf.constant(count), *args))


@pytest.mark.parametrize('n', [1, 3])
@pytest.mark.parametrize('count', [0, 2, 6])
@pytest.mark.parametrize('temperature', [0.07, 0.5])
def test_negatives_are_the_filled_rows_of_the_queue(n, count, temperature):
  queries, keys, queue = _batch(n)
  expected = references.info_nce(queries, keys, lambda _: queue[:count], temperature)
  queue[count:] = 1e3  # What an empty row holds is nobody's business.
  got = _loss(queries, keys, queue, count, temperature)
  assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize('count', [0, 4])
def test_batch_negatives_join_those_of_the_queue(count):
  queries, keys, queue = _batch(3)
  k = references.unit(keys)
  expected = references.info_nce(
    queries,
    keys,
    lambda i: np.concatenate([np.delete(k, i, axis=0), queue[:count]]),
    0.2,
  )
  got = _loss(queries, keys, queue, count, 0.2, True)
  assert got == pytest.approx(expected, rel=1e-9)


def test_an_empty_queue_and_the_batch_s_keys_are_one_sided_nt_xent():
  """NT-Xent's anchors of one view, with the other view's encodings as candidates."""
  queries, keys, queue = _batch(5)
  logits = references.unit(queries) @ references.unit(keys).T / 0.1
  log_softmax = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
  got = _loss(queries, keys, queue, 0, 0.1, True)
  assert got == pytest.approx(-np.diag(log_softmax).mean(), rel=1e-9)


@pytest.mark.parametrize('n', [0, 1])
@pytest.mark.parametrize('batch_negatives', [False, True])
def test_no_negatives_no_loss(n, batch_negatives):
  queries, keys, queue = _batch(n)
  assert abs(_loss(queries, keys, queue, 0, 0.1, batch_negatives)) < 1e-12


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


def test_traces_with_unknown_n():
  @tf.function(input_signature=[tf.TensorSpec([None, _DIM], tf.float64)])
  def both(x):
    queue, count = key_queue.enqueue(tf.zeros([3, _DIM], x.dtype), tf.constant(0), x)
    assert queue.shape == (3, _DIM)
    return key_queue.info_nce(x, x, queue, count), count

  for n in (0, 2, 5):
    loss, count = both(_batch(n)[0])
    assert np.isfinite(loss)
    assert int(count) == min(n, 3)


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
