"""Tests of the colour map against step-by-step NumPy formulas."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.augment import color

_NO_JITTER = (0.0, 0.0, 0.0, 0.0)
_NAMES = ('jitter', 'brightness', 'contrast', 'saturation', 'hue', 'grey')
_LUMA = np.array([0.299, 0.587, 0.114])
_YIQ = np.array([_LUMA, [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])


def _images(m: int, channels: int = 3) -> np.ndarray:
  # Away from 0 and 1, so that clipping between operations would change nothing.
  rng = np.random.default_rng(m)
  return rng.uniform(0.4, 0.6, size=(m, 4, 3, channels)).astype(np.float32)


def _draws(m: int, **fixed) -> dict[str, tf.Tensor]:
  rng = np.random.default_rng(m + 1)
  draws = {name: rng.uniform(size=m) for name in _NAMES}
  draws.update({name: np.full(m, v) for name, v in fixed.items()})
  return {name: tf.constant(value) for name, value in draws.items()}


def _brightness(image, delta):
  return image + delta


def _contrast(image, factor):
  mean = (image.mean(axis=(0, 1)) * _LUMA).sum()
  return factor * (image - mean) + mean


def _saturation(image, factor):
  grey = (image @ _LUMA)[..., None]
  return factor * (image - grey) + grey


def _hue(image, turns):
  angle = 2.0 * np.pi * turns
  rotation = np.array(
    [
      [1.0, 0.0, 0.0],
      [0.0, np.cos(angle), np.sin(angle)],
      [0.0, -np.sin(angle), np.cos(angle)],
    ]
  )
  return image @ (np.linalg.inv(_YIQ) @ rotation @ _YIQ).T


_OPERATIONS = (_brightness, _contrast, _saturation, _hue)


def _factor(index: int, draw: float, strength: float) -> float:
  shift = strength * (2.0 * draw - 1.0)
  return shift if index in (0, 3) else 1.0 + shift


@pytest.mark.parametrize('index', range(4))
def test_each_operation_equals_its_formula(index):
  images, draws = _images(3), _draws(3, grey=0.9)
  strengths = tuple(0.3 if i == index else 0.0 for i in range(4))
  got = color.jitter(tf.constant(images), draws, 1.0, strengths, 0.0)
  for i in range(3):
    factor = _factor(index, float(draws[_NAMES[1 + index]][i]), 0.3)
    expected = _OPERATIONS[index](images[i].astype(np.float64), factor)
    np.testing.assert_allclose(got[i], np.clip(expected, 0, 1), atol=1e-6)


def test_all_orders_of_the_operations_give_the_one_map():
  strengths = (0.1, 0.2, 0.3, 0.1)
  images, draws = _images(1), _draws(1)
  got = color.jitter(tf.constant(images), draws, 1.0, strengths, 0.0)[0]
  factors = [_factor(i, float(draws[_NAMES[1 + i]][0]), strengths[i]) for i in range(4)]
  for order in itertools.permutations(range(4)):
    image = images[0].astype(np.float64)
    for index in order:
      image = _OPERATIONS[index](image, factors[index])
    np.testing.assert_allclose(got, image, atol=1e-6)


def test_grey_is_luma_in_every_channel():
  images = _images(2)
  got = color.jitter(tf.constant(images), _draws(2), 0.0, _NO_JITTER, 1.0)
  luma = (images @ _LUMA)[..., None] * np.ones(3)
  np.testing.assert_allclose(got, luma, atol=1e-6)


def test_only_drawn_images_change():
  images, draws = _images(20), _draws(20)
  got = color.jitter(tf.constant(images), draws, 0.5, (0.4, 0.4, 0.2, 0.1), 0.3)
  changed = np.abs(got - images).max(axis=(1, 2, 3)) > 1e-5
  expected = (draws['jitter'].numpy() < 0.5) | (draws['grey'].numpy() < 0.3)
  assert 0 < expected.sum() < 20
  np.testing.assert_array_equal(changed, expected)


def test_result_is_clipped():
  images = np.random.default_rng(0).uniform(size=(30, 4, 4, 3)).astype(np.float32)
  got = color.jitter(tf.constant(images), _draws(30), 1.0, (1, 1, 1, 0.5), 0.0).numpy()
  assert got.min() == 0.0
  assert got.max() == 1.0


def test_one_channel_keeps_brightness_and_contrast_alone():
  images, draws = _images(3, channels=1), _draws(3)
  strengths = (0.2, 0.3, 1.0, 0.5)
  got = color.jitter(tf.constant(images), draws, 1.0, strengths, 1.0)
  for i in range(3):
    image = images[i].astype(np.float64)
    gain = _factor(1, float(draws['contrast'][i]), 0.3)
    shift = _factor(0, float(draws['brightness'][i]), 0.2)
    expected = gain * (image - image.mean()) + image.mean() + shift
    np.testing.assert_allclose(got[i], np.clip(expected, 0, 1), atol=1e-6)


def test_solarize_inverts_from_the_threshold_up():
  images = np.random.default_rng(0).uniform(size=(4, 3, 3, 3)).astype(np.float32)
  draw = tf.constant([0.1, 0.9, 0.1, 0.1], tf.float64)
  probability = tf.constant([0.5, 0.5, 0.0, 1.0], tf.float64)
  got = color.solarize(tf.constant(images), draw, probability, 0.7)
  inverted = np.where(images < 0.7, images, 1.0 - images)
  drawn = np.array([True, False, False, True])[:, None, None, None]
  np.testing.assert_array_equal(got, np.where(drawn, inverted, images))


def test_solarize_takes_a_whole_number_as_threshold():
  images = tf.constant([[[[0.0, 0.4, 0.9]]]])
  ones = tf.ones([1], tf.float64)
  got = color.solarize(images, 0.0 * ones, ones, 0)
  np.testing.assert_array_equal(got, 1.0 - images)
