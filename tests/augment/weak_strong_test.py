"""Weak and strong views: what they are drawn from, and that it is the examples."""

import numpy as np
import tensorflow as tf

from tff_ssl.augment import weak_strong

_SEED = tf.constant([1, 2])
_IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3)).astype(np.uint8)
_IDS = np.array([7, 2**40, 3, 11, 5, 13])
_VIEWS = (weak_strong.weak_view, weak_strong.strong_view)


def _view(view, positions=range(6), seed=_SEED, **options):
  rows = np.asarray(positions, np.int64)
  config = weak_strong.WeakStrongConfig(**options)
  return view(tf.constant(_IMAGES[rows]), tf.constant(_IDS[rows]), seed, config).numpy()


def test_a_weak_view_is_a_shift_of_whole_pixels_perhaps_mirrored():
  """Each is one of the 2 x 3 x 3 that there are, mirrored at the border."""
  views = _view(weak_strong.weak_view)
  found = set()
  for image, view in zip(_IMAGES / 255, views, strict=True):
    matches = []
    for flip in (False, True):
      source = image[:, ::-1] if flip else image
      padded = np.pad(source, ((1, 1), (1, 1), (0, 0)), mode='symmetric')
      for down in range(3):
        for right in range(3):
          piece = padded[down : down + 8, right : right + 8]
          if np.allclose(piece, view, atol=1e-5):
            matches.append((flip, down, right))
    assert len(matches) == 1
    found.add(matches[0])
  assert len(found) > 1


def test_without_anything_the_views_are_the_images():
  nothing = {'flip_probability': 0.0, 'translation': 0.0, 'operations': 0, 'cutout': 0}
  for view in _VIEWS:
    np.testing.assert_allclose(_view(view, **nothing), _IMAGES / 255, atol=1e-6)


def test_cutout_greys_one_square():
  options = {'flip_probability': 0.0, 'translation': 0.0, 'operations': 0}
  views = _view(weak_strong.strong_view, **options)
  changed = np.any(np.abs(views - _IMAGES / 255) > 1e-6, axis=3)
  sizes = []
  for cut, view in zip(changed, views, strict=True):
    rows, columns = np.flatnonzero(cut.any(axis=1)), np.flatnonzero(cut.any(axis=0))
    assert cut.sum() == len(rows) * len(columns)
    assert max(len(rows), len(columns), 0) <= 5
    np.testing.assert_array_equal(view[cut], 0.5)
    sizes.append(cut.sum())
  assert max(sizes) > 0
