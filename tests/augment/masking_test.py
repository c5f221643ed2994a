"""Tests of random orders of patches."""

import numpy as np
import tensorflow as tf

from tff_ssl.augment import masking
from tff_ssl.augment import randomness

_SEED = tf.constant([1, 2])


def _order(ids, seed=_SEED, patches=16):
  return masking.random_order(seed, tf.constant(ids, tf.int64), patches).numpy()


def test_every_row_is_a_permutation():
  order = _order(range(20))
  np.testing.assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(16), (20, 1)))
  assert len(np.unique(order, axis=0)) == 20


def test_it_is_drawn_apart_from_the_views():
  ids = tf.range(50, dtype=tf.int64)
  views = np.argsort(randomness.uniforms(_SEED, ids, 16).numpy(), axis=1)
  assert np.mean(views == _order(range(50))) < 0.2


def test_every_patch_is_as_often_among_the_first():
  # Of 4000 binomial draws with p = 1/4: a deviation of 0.03 is above four sigma.
  ids = tf.range(4000, dtype=tf.int64)
  first = tf.function(masking.random_order)(_SEED, ids, 8).numpy()[:, :2]
  shares = np.bincount(first.ravel(), minlength=8) / 4000
  np.testing.assert_allclose(shares, 0.25, atol=0.03)
