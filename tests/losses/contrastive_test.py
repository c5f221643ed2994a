"""Tests of NT-Xent against Algorithm 1 of SimCLR by NumPy loops."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tff_ssl.losses import contrastive


def _encodings(n: int, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
  rng = np.random.default_rng(n)
  return rng.normal(size=(n, d)), rng.normal(size=(n, d))


@pytest.mark.parametrize('n', [1, 2, 6])
@pytest.mark.parametrize('temperature', [0.1, 0.5])
def test_equals_reference(n, temperature):
  f, g = _encodings(n)
  got = contrastive.nt_xent(tf.constant(f), tf.constant(g), temperature)
  np.testing.assert_allclose(
    got, references.nt_xent(f, g, temperature), rtol=1e-8, atol=1e-10
  )


def test_equals_the_figure_of_optax():
  """Inputs and value of optax 0.2.8, losses/_self_supervised_test.py, test_batched."""
  views = tf.constant(
    [[-1.9540, 1.0780], [0.2380, -0.5703], [1.8745, -0.0195], [-0.6719, -1.9210]],
    tf.float64,
  )
  # Its labels 0, 0, 1, 1: both views of an example follow each other.
  got = contrastive.nt_xent(views[0::2], views[1::2], temperature=0.07)
  assert float(got) == pytest.approx(14.01032, abs=5e-6)


def test_indistinguishable_views_cost_log_of_the_candidates():
  x = tf.ones([4, 3], tf.float64)
  np.testing.assert_allclose(contrastive.nt_xent(x, x), np.log(7.0), rtol=1e-12)


@pytest.mark.parametrize('n', [1, 4])
@pytest.mark.parametrize('kept', [(1, 1, 1), (1, 0, 1)])
def test_further_negatives_equal_reference(n, kept):
  f, g = _encodings(n)
  negatives = np.random.default_rng(9).normal(size=(3, 5))
  expected = references.nt_xent(f, g, 0.2, negatives[np.array(kept) == 1])
  negatives[np.array(kept) == 0] = np.nan
  got = contrastive.nt_xent(
    tf.constant(f),
    tf.constant(g),
    0.2,
    negatives=tf.constant(negatives),
    negatives_mask=tf.constant(kept),
  )
  np.testing.assert_allclose(got, expected, rtol=1e-10)
  assert expected > references.nt_xent(f, g, 0.2)


@pytest.mark.parametrize('m', [0, 3])
def test_without_a_further_negative_it_is_the_loss_of_the_views(m):
  f, g = map(tf.constant, _encodings(4))
  negatives = tf.ones([m, 5], tf.float64)
  got = contrastive.nt_xent(f, g, negatives=negatives, negatives_mask=tf.zeros([m]))
  assert float(got) == pytest.approx(float(contrastive.nt_xent(f, g)), rel=1e-14)
  alone = contrastive.nt_xent(
    f[:1], g[:1], negatives=negatives, negatives_mask=tf.zeros([m])
  )
  assert float(alone) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize('n', [0, 1])
def test_no_negatives_no_loss(n):
  assert contrastive.nt_xent(tf.ones([n, 3]), tf.ones([n, 3])) == 0.0


def test_traces_with_unknown_n():
  @tf.function(input_signature=[tf.TensorSpec([None, 5], tf.float64)] * 2)
  def loss(f, g):
    return contrastive.nt_xent(f, g)

  for n in (1, 4):
    f, g = _encodings(n)
    np.testing.assert_allclose(loss(f, g), references.nt_xent(f, g, 0.1), atol=1e-10)
  assert loss(f[:0], g[:0]) == 0.0


def test_rejects_views_of_two_shapes():
  with pytest.raises(ValueError, match=r'both must be \[n, d\]'):
    contrastive.nt_xent(tf.ones([2, 3]), tf.ones([2, 4]))


def test_rejects_negatives_of_another_size():
  with pytest.raises(ValueError, match=r'must be \[m, d\] with the d'):
    contrastive.nt_xent(tf.ones([2, 3]), tf.ones([2, 3]), negatives=tf.ones([5, 4]))
