"""Losses of pseudo-labels, against NumPy loops in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.losses import pseudo_labels

_CLASSES = 3


def _logits(seed: int, *shape: int) -> np.ndarray:
  return 2.0 * np.random.default_rng(seed).normal(size=(*shape, _CLASSES))


def _softmax(x: np.ndarray) -> np.ndarray:
  return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


@pytest.mark.parametrize('threshold', [0.0, 0.7, 1.0])
def test_fixmatch_is_the_cross_entropy_of_those_that_are_confident(threshold):
  weak, strong = _logits(1, 8), _logits(2, 8)
  total, count = 0.0, 0
  for q, p in zip(_softmax(weak), _softmax(strong), strict=True):
    if q.max() >= threshold:
      total -= np.log(p[q.argmax()])
      count += 1
  assert count == {0.0: 8, 1.0: 0}.get(threshold, count)
  assert threshold != 0.7 or 0 < count < 8
  got = pseudo_labels.fixmatch(tf.constant(weak), tf.constant(strong), threshold)
  assert float(got) == pytest.approx(total / 8, rel=1e-12)


def test_no_gradient_flows_into_the_weak_view():
  weak, strong = tf.constant(_logits(1, 4)), tf.constant(_logits(2, 4))
  with tf.GradientTape() as tape:
    tape.watch([weak, strong])
    loss = pseudo_labels.fixmatch(weak, strong, 0.0)
  of_weak, of_strong = tape.gradient(loss, [weak, strong])
  assert of_weak is None
  label = np.eye(_CLASSES)[weak.numpy().argmax(axis=1)]
  np.testing.assert_allclose(of_strong, (_softmax(strong.numpy()) - label) / 4)


def test_no_example_gives_zero():
  none = tf.zeros([0, _CLASSES])
  assert float(pseudo_labels.fixmatch(none, none, 0.5)) == 0
  assert float(pseudo_labels.masked_mean(tf.zeros([0]), tf.zeros([0]))) == 0


def test_a_masked_value_may_be_anything():
  values = tf.constant([np.nan, 3.0, np.inf])
  assert float(pseudo_labels.masked_mean(values, tf.constant([0.0, 1.0, 0.0]))) == 1


def test_agreement_is_the_vote_of_most():
  own = np.array([[9.0, 0, 0], [9, 0, 0], [0, 9, 0]])
  helpers = np.array(
    [[[0.0, 9, 0], [0, 9, 0], [0, 0, 9]], [[0, 9, 0], [9, 0, 0], [9, 0, 0]]]
  )
  got = pseudo_labels.agreed_labels(tf.constant(own), tf.constant(helpers))
  # 2 of 3; 2 of 3; one vote each, of which the lowest counts.
  np.testing.assert_array_equal(got, [1, 0, 0])
  alone = pseudo_labels.agreed_labels(tf.constant(own), tf.zeros([0, 3, 3]))
  np.testing.assert_array_equal(alone, [0, 0, 1])


def test_divergence_is_the_mean_over_helpers():
  helpers, own = _logits(1, 2, 4), _logits(2, 4)
  p, q = _softmax(helpers), _softmax(own)
  expected = (p * np.log(p / q)).sum(axis=-1).mean(axis=0)
  got = pseudo_labels.divergences(tf.constant(helpers), tf.constant(own))
  np.testing.assert_allclose(got, expected, rtol=1e-10)
  none = pseudo_labels.divergences(tf.constant(helpers[:0]), tf.constant(own))
  np.testing.assert_array_equal(none, np.zeros(4))


def test_nan_is_shown():
  weak = _logits(1, 4)
  weak[2, 0] = np.nan
  got = pseudo_labels.fixmatch(tf.constant(weak), tf.constant(_logits(2, 4)), 0.9)
  assert np.isnan(got)


def test_helpers_are_constants():
  helpers = tf.constant([[[1.0, 0.0, -1.0], [0.5, 0.2, 0.0]]])
  logits = tf.constant([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
  with tf.GradientTape() as tape:
    tape.watch([helpers, logits])
    loss = tf.reduce_sum(pseudo_labels.divergences(helpers, logits))
  of_helpers, of_logits = tape.gradient(loss, [helpers, logits])
  assert of_helpers is None
  # Of KL(p || q) by the logits of q: q - p.
  expected = tf.nn.softmax(logits) - tf.nn.softmax(helpers[0])
  np.testing.assert_allclose(of_logits, expected, rtol=1e-5)
