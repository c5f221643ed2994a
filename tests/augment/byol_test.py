"""Tests of the two views as a whole."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.augment import byol

_SEED = tf.constant([3, 4])


def _two_views(images, ids, seed, config):
  return byol.views_of(images, ids, seed, config, (0, 1))


def _batch(n: int, side: int = 8, channels: int = 3) -> tuple[tf.Tensor, tf.Tensor]:
  rng = np.random.default_rng(n)
  images = rng.integers(0, 256, size=(n, side, side, channels)).astype(np.uint8)
  return tf.constant(images), tf.range(100, 100 + n, dtype=tf.int64)


def test_to_float_maps_bytes_to_the_unit_interval():
  values = byol.to_float(tf.constant([0, 51, 255], tf.uint8))
  assert values.dtype == tf.float32
  np.testing.assert_allclose(values, [0.0, 0.2, 1.0], rtol=1e-7)


@pytest.mark.parametrize('dtype', [tf.float16, tf.float32, tf.float64])
def test_to_float_keeps_floating_values(dtype):
  values = byol.to_float(tf.constant([0.0, 0.25, 1.0], dtype))
  assert values.dtype == tf.float32
  np.testing.assert_array_equal(values, [0.0, 0.25, 1.0])


def test_none_is_exactly_the_input():
  images, ids = _batch(3)
  for view in _two_views(images, ids, _SEED, byol.by_name('none')):
    np.testing.assert_array_equal(view, images.numpy() / np.float32(255))


def test_flip_alone_is_numpys_flip_of_half_the_images():
  images, ids = _batch(64)
  plain = images.numpy() / np.float32(255)
  flipped = plain[:, :, ::-1]
  patterns = []
  for view in _two_views(images, ids, _SEED, byol.by_name('flip')):
    kept = (view.numpy() == plain).all(axis=(1, 2, 3))
    np.testing.assert_array_equal(
      view, np.where(kept[:, None, None, None], plain, flipped)
    )
    # 32 on average, with a std of 4.
    assert 16 <= kept.sum() <= 48
    patterns.append(kept)
  assert (patterns[0] != patterns[1]).any()


def _only(**fields) -> byol.AugmentConfig:
  return dataclasses.replace(byol.by_name('none'), **fields)


@pytest.mark.parametrize(
  ('config', 'rates'),
  [
    (_only(flip_probability=0.3), (0.3, 0.3)),
    (_only(jitter_probability=0.8, hue=0.0), (0.8, 0.8)),
    (_only(grey_probability=0.2), (0.2, 0.2)),
    (_only(blur_probability=(1.0, 0.1), blur_sigma=(1.0, 2.0)), (1.0, 0.1)),
    (_only(solarize_probability=(0.0, 0.2)), (0.0, 0.2)),
  ],
)
def test_operations_happen_as_often_as_configured(config, rates):
  n = 400
  images, ids = _batch(n, side=4)
  views = tf.function(_two_views)(images, ids, _SEED, config)
  for view, rate in zip(views, rates, strict=True):
    changed = np.abs(view - byol.to_float(images)).max(axis=(1, 2, 3)) > 1e-3
    bound = 4.0 * np.sqrt(rate * (1.0 - rate) / n)
    assert abs(changed.mean() - rate) <= bound


@pytest.mark.parametrize('name', ['byol', 'none'])
def test_image_size_sets_the_size_of_the_views(name):
  images, ids = _batch(2)
  config = dataclasses.replace(byol.by_name(name), image_size=12)
  for view in _two_views(images, ids, _SEED, config):
    assert view.shape == [2, 12, 12, 3]


def test_images_that_are_not_square_keep_their_shape():
  images, ids = _batch(2, side=12)
  for view in _two_views(images[:, :7], ids, _SEED, byol.by_name('byol')):
    assert view.shape == [2, 7, 12, 3]


def test_blur_is_not_in_the_graph_of_a_config_without_it():
  images, ids = _batch(1)

  def matrix_products(name: str) -> int:
    traced = tf.function(
      lambda: _two_views(images, ids, _SEED, byol.by_name(name)), autograph=False
    )
    operations = traced.get_concrete_function().graph.get_operations()
    return sum(op.type.startswith('BatchMatMul') for op in operations)

  assert matrix_products('byol') == matrix_products('byol_no_blur') + 2


@pytest.mark.parametrize(
  ('images', 'message'),
  [
    (tf.zeros([1, 8, 8, 3], tf.int32), 'they must be uint8 or floating'),
    (tf.zeros([8, 8, 3], tf.uint8), 'they must be uint8 or floating'),
    (tf.zeros([1, 8, 8, 2], tf.uint8), '1 or 3 channels'),
  ],
)
def test_rejects_other_images(images, message):
  with pytest.raises(ValueError, match=message):
    _two_views(images, tf.zeros([1], tf.int64), _SEED, byol.by_name('byol'))
