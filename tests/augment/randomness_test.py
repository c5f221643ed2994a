"""Draws of an example and a round; more: tests/contract/views_test.py."""

import tempfile

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.augment import masking
from tff_ssl.augment import randomness
from tff_ssl.augment import rotation

_SEED = tf.constant([7, -3])


def _ids(*ids: int) -> tf.Tensor:
  return tf.constant(ids, tf.int64)


@pytest.mark.parametrize(
  ('seed', 'example_id', 'salt'),
  [([7, -2], 1, 0), ([6, -3], 1, 0), ([-3, 7], 1, 0), ([7, -3], 2, 0), ([7, -3], 1, 1)],
)
def test_any_other_seed_id_or_salt_draws_other_numbers(seed, example_id, salt):
  plain = randomness.uniforms(_SEED, _ids(1), 8).numpy()
  other = randomness.uniforms(tf.constant(seed), _ids(example_id), 8, salt).numpy()
  assert not np.isin(other, plain).any()


def test_seeds_are_the_round_seeds_bits_and_the_id():
  seeds = randomness.example_seeds(tf.constant([1, 2]), _ids(9, 3)).numpy()
  np.testing.assert_array_equal(seeds, [[1 + (2 << 32), 9], [1 + (2 << 32), 3]])


def test_salts_never_share_a_seed():
  words = {
    int(randomness.example_seeds(_SEED, _ids(0), salt)[0, 0]) for salt in range(200)
  }
  assert len(words) == 200


def test_draws_are_uniform():
  ids = tf.range(400, dtype=tf.int64)
  draws = tf.function(randomness.uniforms)(_SEED, ids, 25).numpy()
  assert draws.dtype == np.float32
  assert draws.min() >= 0.0
  assert draws.max() < 1.0
  # Of 1,000 draws a decile holds 100 on average, with a std of 9.5; over 10,000
  # draws, 1,000 with a std of 30.
  histogram, _ = np.histogram(draws, bins=10, range=(0.0, 1.0))
  assert np.abs(histogram - 1000).max() < 150
  # Neither the ids nor the columns are correlated: std of each entry is 1 / 20.
  columns = np.corrcoef(draws, rowvar=False) - np.eye(25)
  assert np.abs(columns).max() < 0.25


@pytest.mark.parametrize(
  ('seed', 'ids', 'count', 'message'),
  [
    (tf.zeros([2], tf.int64), tf.zeros([1], tf.int64), 1, 'it must be int32'),
    (tf.zeros([3], tf.int32), tf.zeros([1], tf.int64), 1, r'shape \[2\]'),
    (tf.zeros([2], tf.int32), tf.zeros([1], tf.int32), 1, 'they must be int64'),
    (tf.zeros([2], tf.int32), tf.zeros([1, 1], tf.int64), 1, r'shape \[n\]'),
    (
      tf.zeros([2], tf.int32),
      tf.zeros([1], tf.int64),
      0,
      'count is 0; it must be at least 1',
    ),
  ],
)
def test_rejects_bad_input(seed, ids, count, message):
  with pytest.raises(ValueError, match=message):
    randomness.uniforms(seed, ids, count)


def test_no_file_is_written_to_trace_it(tmp_path, monkeypatch):
  """AutoGraph would write the loop's body to TMPDIR, where a kill leaves it."""
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  with tf.Graph().as_default():
    randomness.uniforms(tf.constant([7, -3]), _ids(1, 2), 4)
  assert list(tmp_path.iterdir()) == []


def _order(ids, patches=16):
  return masking.random_order(_SEED, tf.constant(ids, tf.int64), patches).numpy()


def test_every_order_of_patches_is_a_permutation():
  order = _order(range(20))
  np.testing.assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(16), (20, 1)))
  assert len(np.unique(order, axis=0)) == 20


def test_orders_are_drawn_apart_from_the_views():
  ids = tf.range(50, dtype=tf.int64)
  views = np.argsort(randomness.uniforms(_SEED, ids, 16).numpy(), axis=1)
  assert np.mean(views == _order(range(50))) < 0.2


def test_every_patch_is_as_often_among_the_first():
  # Of 4000 binomial draws with p = 1/4: a deviation of 0.03 is above four sigma.
  ids = tf.range(4000, dtype=tf.int64)
  first = tf.function(masking.random_order)(_SEED, ids, 8).numpy()[:, :2]
  shares = np.bincount(first.ravel(), minlength=8) / 4000
  np.testing.assert_allclose(shares, 0.25, atol=0.03)


def test_images_are_rotated_by_their_own_quarter_turns():
  images = np.random.default_rng(0).normal(size=(5, 3, 3, 2))
  turns = np.array([0, 1, 2, 3, 1], np.int32)
  got = rotation.rotate(tf.constant(images), tf.constant(turns))
  expected = [np.rot90(image, k) for image, k in zip(images, turns, strict=True)]
  np.testing.assert_array_equal(got, expected)
  assert rotation.rotate(tf.zeros([0, 3, 3, 2]), tf.zeros([0], tf.int32)).shape[0] == 0


def test_turns_are_equally_frequent():
  ids = tf.range(400, dtype=tf.int64)
  turns = rotation.draw(_SEED, ids).numpy()
  # To 4 standard errors.
  np.testing.assert_allclose(np.bincount(turns), 100, atol=4 * np.sqrt(400 * 3 / 16))


def test_no_image_but_a_square_is_rotated():
  with pytest.raises(ValueError, match=r'it must be \[n, H, H, C\]'):
    rotation.rotate(tf.zeros([1, 2, 3, 1]), tf.zeros([1], tf.int32))
