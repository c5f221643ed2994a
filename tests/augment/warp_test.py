"""Affine maps whose results are known."""

import numpy as np
import tensorflow as tf

from tff_ssl.augment import warp

_IMAGES = np.random.default_rng(0).random((2, 5, 7, 1)).astype(np.float32)


def _warp(matrix, shift, fill='CONSTANT'):
  return warp.affine(
    tf.constant(_IMAGES),
    tf.constant([matrix] * 2, tf.float64),
    tf.constant([shift] * 2, tf.float64),
    fill,
  ).numpy()


def test_half_a_turn_is_both_mirrors():
  got = _warp([[-1, 0], [0, -1]], [0, 0])
  np.testing.assert_allclose(got, _IMAGES[:, ::-1, ::-1], atol=1e-6)


def test_a_shift_shows_what_lies_there_and_grey_or_the_mirror_beyond():
  got = _warp([[1, 0], [0, 1]], [2, 1])
  np.testing.assert_allclose(got[:, :4, :5], _IMAGES[:, 1:, 2:], atol=1e-6)
  np.testing.assert_allclose(got[:, 4], 0.5, atol=1e-6)
  mirrored = _warp([[1, 0], [0, 1]], [1, 0], 'REFLECT')
  np.testing.assert_allclose(mirrored[:, :, 6], _IMAGES[:, :, 6], atol=1e-6)
