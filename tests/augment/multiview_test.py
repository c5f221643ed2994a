"""Tests of any number of views: against the two views, and against each other."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.augment import byol
from tff_ssl.augment import multiview
from tff_ssl.augment import vectors

_SEED = tf.constant([3, 4])
_BYOL = byol.by_name('byol')


def _batch(n: int = 3) -> tuple[tf.Tensor, tf.Tensor]:
  images = np.random.default_rng(n).integers(0, 256, size=(n, 8, 8, 3))
  return tf.constant(images, tf.uint8), tf.range(100, 100 + n, dtype=tf.int64)


def _views(configs, n=3):
  return multiview.views(*_batch(n), _SEED, configs)


def test_the_first_two_views_are_those_of_two_views():
  expected = byol.views_of(*_batch(), _SEED, _BYOL, (0, 1))
  for got in (_views((_BYOL,) * 2), _views((_BYOL,) * 5)[:2]):
    for view, other in zip(got, expected, strict=True):
      np.testing.assert_array_equal(view, other)
  for number, other in enumerate(expected):
    (alone,) = byol.views_of(*_batch(), _SEED, _BYOL, (number,))
    np.testing.assert_array_equal(alone, other)
  first = multiview.one_view(*_batch(), _SEED, _BYOL)
  np.testing.assert_array_equal(first, expected[0])


def test_a_view_does_not_depend_on_the_number_or_kind_of_the_others():
  small = multiview.local_crop(_BYOL, 4)
  alone = _views((_BYOL,) * 6)
  mixed = _views((_BYOL, small, _BYOL, small, _BYOL, _BYOL))
  for number in (0, 2, 4, 5):
    np.testing.assert_array_equal(mixed[number], alone[number])
  again = _views((_BYOL, small))
  np.testing.assert_array_equal(mixed[1], again[1])


def test_multi_crop_has_views_of_its_own_sizes():
  small = multiview.local_crop(_BYOL, 4)
  views = _views((_BYOL, _BYOL, small, small, small))
  assert [view.shape[1:3].as_list() for view in views] == [[8, 8]] * 2 + [[4, 4]] * 3
  assert all(view.dtype == tf.float32 for view in views)
  assert small.crop_scale == (0.05, 0.4)
  assert small.blur_probability == (0.5, 0.5)
  assert multiview.local_crop(byol.by_name('byol_no_blur'), 4).blur_probability == (
    0.0,
    0.0,
  )
  assert multiview.local_crop(vectors.NOISE_MASK, 4) == vectors.NOISE_MASK


def test_views_after_the_second_have_its_probabilities():
  """Here the first view is never solarized, the second and those after it always."""
  config = dataclasses.replace(byol.by_name('none'), solarize_probability=(0.0, 1.0))
  images, ids = _batch()
  views = multiview.views(images, ids, _SEED, (config,) * 4)
  plain = byol.to_float(images).numpy()
  solarized = np.where(plain >= 0.5, 1 - plain, plain)
  for view, expected in zip(views, (plain, *(solarized,) * 3), strict=True):
    np.testing.assert_allclose(view, expected, rtol=1e-6)


def test_names():
  assert multiview.by_name('byol') == byol.by_name('byol')
  assert multiview.by_name('noise_mask') == vectors.NOISE_MASK
  with pytest.raises(ValueError, match="augmentation is 'x'; it must be one of byol"):
    multiview.by_name('x')


def test_wrong_arguments_are_named():
  with pytest.raises(ValueError, match='configs is empty'):
    _views(())
  with pytest.raises(ValueError, match='Images are float32 of shape'):
    multiview.views(tf.zeros([2, 5]), _batch(2)[1], _SEED, (_BYOL,))
  with pytest.raises(ValueError, match='Features are uint8 of shape'):
    _views((vectors.NOISE_MASK,))
  with pytest.raises(ValueError, match=r'numbers is \(-1,\)'):
    byol.views_of(*_batch(), _SEED, _BYOL, (-1,))
