"""Images rotated, or in another style, by source."""

import collections
import math

import numpy as np
import pytest

from tff_ssl.partition import sources

_RNG = np.random.default_rng(0)


def _images(count=3, height=8, width=8, channels=3):
  return _RNG.integers(0, 256, (count, height, width, channels), dtype=np.uint8)


def _rotate_pixel_by_pixel(image, angle):
  """Bilinear interpolation as the sum over all pixels of their tent functions."""
  height, width, _ = image.shape
  middle = ((height - 1) / 2, (width - 1) / 2)
  result = np.zeros(image.shape)
  for i in range(height):
    for j in range(width):
      # Upwards is up: the mathematician's plane, in which the angle turns to the left.
      x, y = j - middle[1], middle[0] - i
      from_x = math.cos(angle) * x + math.sin(angle) * y
      from_y = -math.sin(angle) * x + math.cos(angle) * y
      for k in range(height):
        for m in range(width):
          weight = max(0, 1 - abs(m - middle[1] - from_x))
          weight *= max(0, 1 - abs(middle[0] - k - from_y))
          result[i, j] += weight * image[k, m]
  return result


@pytest.mark.parametrize(('source', 'count'), [(1, 5), (2, 5), (4, 5), (1, 4), (1, 2)])
def test_angles_are_bilinear(source, count):
  images = _images(count=2, height=6, width=5)
  rotated = sources.rotate(images, source, count)
  for image, result in zip(images, rotated, strict=True):
    expected = _rotate_pixel_by_pixel(image, 2 * math.pi * source / count)
    # Half a grey level of rounding.
    np.testing.assert_allclose(result, expected, atol=0.501)


def test_a_third_of_a_turn_of_hue_changes_the_channels_places():
  red, green, blue = np.eye(3)
  third = sources.hue_rotation(2 * math.pi / 3)
  np.testing.assert_allclose(third @ red, green, atol=1e-12)
  np.testing.assert_allclose(third @ green, blue, atol=1e-12)
  np.testing.assert_allclose(sources.hue_rotation(1.0) @ np.ones(3), np.ones(3))


def test_styles_move_channels_and_change_tones():
  # u = 1/3: channels move on by one, e = 2/3.
  images = _images()
  expected = 255 * (images[..., [2, 0, 1]] / 255) ** (2 ** (2 / 3))
  np.testing.assert_allclose(sources.stylise(images, 1, 3), expected, atol=0.51)
  # Of grey images u = 1/2: e = -1, a square root.
  grey = _images(channels=1)
  expected = 255 * np.sqrt(grey / 255)
  np.testing.assert_allclose(sources.stylise(grey, 1, 2), expected, atol=0.51)


@pytest.mark.parametrize('transform', [sources.rotate, sources.stylise])
@pytest.mark.parametrize('channels', [1, 3])
@pytest.mark.parametrize('count', [1, 2, 5, 8])
def test_source_0_is_as_it_was_and_all_differ(transform, channels, count):
  images = _images(channels=channels)
  before = images.copy()
  changed = [transform(images, source, count) for source in range(count)]
  np.testing.assert_array_equal(images, before)
  np.testing.assert_array_equal(changed[0], images)
  for source, result in enumerate(changed):
    assert (result.dtype, result.shape) == (np.uint8, images.shape)
    np.testing.assert_array_equal(result, transform(images, source, count))
    assert all(np.any(result != other) for other in changed[:source])


@pytest.mark.parametrize('transform', [sources.rotate, sources.stylise])
def test_an_image_does_not_depend_on_the_others(transform):
  images = _images(count=5)
  together = transform(images, 1, 3)
  np.testing.assert_array_equal(transform(images[2:3], 1, 3), together[2:3])
  assert transform(images[:0], 1, 3).shape == (0, 8, 8, 3)


def test_clients_have_their_own_images_changed():
  # More than are changed at a time, with a client of none and an image of no client.
  images = _images(count=150)
  order = _RNG.permutation(149)
  partition = collections.OrderedDict(
    a=order[:10], b=order[10:], c=np.zeros(0, np.int64), d=np.zeros(0, np.int64)
  )
  changed = sources.change(sources.rotate, images, list(partition.values()))
  np.testing.assert_array_equal(changed[order[:10]], images[order[:10]])
  np.testing.assert_array_equal(
    changed[order[10:]], np.rot90(images[order[10:]], 1, axes=(1, 2))
  )
  np.testing.assert_array_equal(changed[149], images[149])


def test_a_memory_map_is_read_and_left_alone(tmp_path):
  images = _images(count=4)
  np.save(tmp_path / 'images.npy', images)
  mapped = np.load(tmp_path / 'images.npy', mmap_mode='r')
  partition = collections.OrderedDict(a=np.array([0, 1]), b=np.array([2, 3]))
  changed = sources.change(sources.stylise, mapped, list(partition.values()))
  assert type(changed) is np.ndarray
  np.testing.assert_array_equal(mapped, images)
  np.testing.assert_array_equal(changed[2:], sources.stylise(images[2:], 1, 2))


@pytest.mark.parametrize('transform', [sources.rotate, sources.stylise])
def test_bad_input_is_an_error(transform):
  with pytest.raises(ValueError, match=r'source is 3 of 3 sources; .* \[0, 3\)'):
    transform(_images(), 3, 3)
  with pytest.raises(ValueError, match=r'images are float32 \[1, 2, 2, 3\]'):
    transform(np.zeros((1, 2, 2, 3), np.float32), 0, 3)


def test_examples_are_dealt_to_sources_evenly():
  config = sources.RotationConfig(2, sources=3)
  source = sources.draw(config, 10, np.random.default_rng(0))
  assert sorted(np.bincount(source)) == [3, 3, 4]
