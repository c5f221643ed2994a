"""What holds for everything that is drawn for an example and a round: a row each."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.augment import byol
from tff_ssl.augment import masking
from tff_ssl.augment import multiview
from tff_ssl.augment import randomness
from tff_ssl.augment import rotation
from tff_ssl.augment import vectors
from tff_ssl.augment import weak_strong

_SEED = tf.constant([3, -4])
_N = 11
_IDS = np.array([7, 2**40, 3, 11, 5, 13, 0, 100, 101, 2**62, 6])


def _views(*configs):
  return lambda inputs, ids, seed: multiview.views(inputs, ids, seed, configs)


def _of_ids(draw):
  return lambda _, ids, seed: [draw(seed, ids)]


def _weak_strong(view):
  config = weak_strong.WeakStrongConfig()
  return lambda inputs, ids, seed: [view(inputs, ids, seed, config)]


_BYOL = byol.by_name('byol')
_OF_IMAGES = {
  'byol': _views(_BYOL, _BYOL, multiview.local_crop(_BYOL, 4)),
  'byol_no_blur': _views(*[byol.by_name('byol_no_blur')] * 2),
  'flip': _views(*[byol.by_name('flip')] * 2),
  'none': _views(*[byol.by_name('none')] * 2),
  'weak': _weak_strong(weak_strong.weak_view),
  'strong': _weak_strong(weak_strong.strong_view),
}
# name -> (examples, their ids, seed) -> tensors of a row an example.
_ROWS = {
  **_OF_IMAGES,
  'noise_mask': _views(*[vectors.NOISE_MASK] * 2),
  'rotation': _of_ids(rotation.draw),
  'order of patches': _of_ids(lambda seed, ids: masking.random_order(seed, ids, 16)),
  'uniforms': _of_ids(lambda seed, ids: randomness.uniforms(seed, ids, 6)),
}


def _inputs(name, side=8, channels=3):
  rng = np.random.default_rng(0)
  if name in _OF_IMAGES:
    return rng.integers(0, 256, (_N, side, side, channels)).astype(np.uint8)
  return rng.normal(size=(_N, 6)).astype(np.float32)


@functools.cache
def _traced(name, shape, dtype):
  return tf.function(
    lambda inputs, ids, seed: _ROWS[name](inputs, ids, seed),
    input_signature=[
      tf.TensorSpec([None, *shape], dtype),
      tf.TensorSpec([None], tf.int64),
      tf.TensorSpec([2], tf.int32),
    ],
    autograph=False,
  )


def _drawn(name, inputs, rows=range(_N), seed=_SEED):
  rows = np.array(rows, int)
  traced = _traced(name, inputs.shape[1:], inputs.dtype)
  return [each.numpy() for each in traced(inputs[rows], _IDS[rows], seed)]


@pytest.mark.parametrize(('side', 'channels'), [(8, 3), (23, 1)])
@pytest.mark.parametrize('name', _ROWS)
def test_what_is_drawn_belongs_to_the_example_to_the_bit(name, side, channels):
  """Alone, among others in any order, or none; the graph does not know how many."""
  inputs = _inputs(name, side, channels)
  together = _drawn(name, inputs)
  for rows in ([4], [8, 1, 10], range(_N)[::-1], []):
    for part, whole in zip(_drawn(name, inputs, rows), together, strict=True):
      np.testing.assert_array_equal(part, whole[np.array(rows, int)])
  eager = _ROWS[name](tf.constant(inputs), tf.constant(_IDS), _SEED)
  for found, expected in zip(eager, together, strict=True):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize('name', sorted(_ROWS.keys() - {'none'}))
def test_another_round_draws_others(name):
  inputs = _inputs(name)
  found = _drawn(name, inputs)
  for seed in ([3, -3], [2, -4], [-4, 3]):
    for first, other in zip(found, _drawn(name, inputs, seed=seed), strict=True):
      assert not np.allclose(first, other, atol=1e-3)
  for k, first in enumerate(found):
    for other in found[:k]:
      assert first.shape != other.shape or not np.allclose(first, other, atol=1e-3)


@pytest.mark.parametrize('name', _OF_IMAGES)
def test_floating_images_have_the_views_of_bytes_and_broken_ones_touch_no_other(name):
  images = _inputs(name)
  floating = images / np.float32(255)
  expected = _drawn(name, floating)
  for found, of_bytes in zip(expected, _drawn(name, images), strict=True):
    assert found.dtype == np.float32
    assert found.min() >= 0 and found.max() <= 1
    np.testing.assert_allclose(found, of_bytes, rtol=0, atol=2e-6)
  floating[1] = np.nan
  others = np.delete(np.arange(_N), 1)
  for found, clean in zip(_drawn(name, floating), expected, strict=True):
    np.testing.assert_array_equal(found[others], clean[others])
