"""Limits of pseudo-labels; their losses: tests/contract/losses_test.py."""

import numpy as np
import tensorflow as tf

from tff_ssl.losses import pseudo_labels

_CLASSES = 3


def _logits(seed: int, *shape: int) -> np.ndarray:
  return 2.0 * np.random.default_rng(seed).normal(size=(*shape, _CLASSES))


def test_a_masked_value_may_be_anything():
  assert float(pseudo_labels.masked_mean(tf.zeros([0]), tf.zeros([0]))) == 0
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


def test_without_helpers_nothing_diverges():
  none = pseudo_labels.divergences(
    tf.constant(_logits(1, 0, 4)), tf.constant(_logits(2, 4))
  )
  np.testing.assert_array_equal(none, np.zeros(4))


def test_nan_is_shown():
  weak = _logits(1, 4)
  weak[2, 0] = np.nan
  got = pseudo_labels.fixmatch(tf.constant(weak), tf.constant(_logits(2, 4)), 0.9)
  assert np.isnan(got)
