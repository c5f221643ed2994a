"""Rotations against NumPy, and how they are drawn."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.augment import rotation

_SEED = tf.constant([3, 4])


def test_images_are_rotated_by_their_own_quarter_turns():
  images = np.random.default_rng(0).normal(size=(5, 3, 3, 2))
  turns = np.array([0, 1, 2, 3, 1], np.int32)
  got = rotation.rotate(tf.constant(images), tf.constant(turns))
  expected = [np.rot90(image, k) for image, k in zip(images, turns, strict=True)]
  np.testing.assert_array_equal(got, expected)
  assert rotation.rotate(tf.zeros([0, 3, 3, 2]), tf.zeros([0], tf.int32)).shape[0] == 0


def test_turns_belong_to_their_examples_and_are_equally_frequent():
  ids = tf.range(400, dtype=tf.int64)
  turns = rotation.draw(_SEED, ids).numpy()
  # To 4 standard errors.
  np.testing.assert_allclose(np.bincount(turns), 100, atol=4 * np.sqrt(400 * 3 / 16))
  np.testing.assert_array_equal(rotation.draw(_SEED, ids[9:3:-1]), turns[9:3:-1])
  assert (rotation.draw(tf.constant([3, 5]), ids[:20]).numpy() != turns[:20]).any()


def test_what_is_no_square_is_refused():
  with pytest.raises(ValueError, match=r'it must be \[n, H, H, C\]'):
    rotation.rotate(tf.zeros([1, 2, 3, 1]), tf.zeros([1], tf.int32))
