"""Clusters of features, images rotated or in another style, and their mixtures."""

import collections
import math

import numpy as np
import pytest

from tff_ssl.partition import clusters
from tff_ssl.partition import equal_kmeans
from tff_ssl.partition import mixed_sources
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


def _config(clients=5, sources=None, **fields):
  return mixed_sources.MixedConfig(clients, sources, **fields)


_SOURCE = np.random.default_rng(0).permutation(np.repeat(np.arange(5), 40))


def _table(config, seed, source=_SOURCE, **fields):
  """Examples of each source at each client; checks that no example is at two."""
  partition = mixed_sources.deal(config, source, np.random.default_rng(seed), **fields)
  together = np.concatenate(list(partition.values()))
  assert len(np.unique(together)) == len(together)
  count = source.max() + 1
  return np.stack([np.bincount(source[p], minlength=count) for p in partition.values()])


@pytest.mark.parametrize('fields', [{}, {'alpha': 0}, {'beta': 0}, {'sources': 5}])
def test_unmixed_client_k_is_source_k(fields):
  config = _config(**fields)
  assert not config.is_mixed
  np.testing.assert_array_equal(_table(config, 0), 40 * np.eye(5))


@pytest.mark.parametrize('seed', range(25))
def test_alpha_mixes_from_disjoint_to_iid(seed):
  distance = []
  for alpha in (1e-9, 0.1, 1e9):
    table = _table(_config(alpha=alpha), seed, balanced=True)
    np.testing.assert_array_equal(np.sum(table, axis=1), 40)
    np.testing.assert_array_equal(np.sum(table, axis=0), 40)
    distance.append(np.mean(np.sum(np.abs(table / 40 - 0.2), axis=1)))
  # Of one source of five: 0.8 + 4 * 0.2.
  assert distance[0] == pytest.approx(1.6, abs=0.05)
  assert 0.05 < distance[1] <= 1.6
  assert distance[2] == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize('seed', range(25))
def test_beta_spreads_a_fraction_evenly(seed):
  table = _table(_config(beta=0.5), seed)
  # 4 of each source, and the other 20 of one's own.
  np.testing.assert_array_equal(np.sort(table, axis=1), [[4, 4, 4, 4, 24]] * 5)
  np.testing.assert_array_equal(np.sum(table, axis=0), 40)
  np.testing.assert_array_equal(_table(_config(beta=1), seed), 8)


@pytest.mark.parametrize('seed', range(25))
def test_fewer_sources_than_clients_are_divided(seed):
  for config in (_config(10, 5), _config(10, 5, beta=0)):
    assert config.is_mixed
    table = _table(config, seed, balanced=True)
    np.testing.assert_array_equal(np.sum(table > 0, axis=1), 1)
    np.testing.assert_array_equal(np.sum(table, axis=1), 20)


def _blobs(count=4, size=15, dimensions=40, seed=0):
  """Points around far corners, shuffled; returns them and which corner each is of."""
  rng = np.random.default_rng(seed)
  blob = rng.permutation(np.repeat(np.arange(count), size))
  corners = 20 * np.eye(dimensions)[:count]
  return corners[blob] + rng.normal(size=(len(blob), dimensions)), blob


def _build(features, clients, seed=0, **fields):
  config = clusters.ClustersConfig(clients, **fields)
  return clusters.build(config, features, np.random.default_rng(seed))


@pytest.mark.parametrize('components', [3, 30, 1000])
def test_well_separated_groups_become_the_clients(components):
  features, blob = _blobs()
  partition = _build(features.astype(np.float32), 4, components=components)
  groups = [set(blob[held]) for held in partition.values()]
  assert all(len(group) == 1 for group in groups)
  assert set().union(*groups) == {0, 1, 2, 3}
  dealt = np.sort(np.concatenate(list(partition.values())))
  np.testing.assert_array_equal(dealt, np.arange(60))


def test_pca_keeps_the_largest_differences():
  # Two groups far apart in one direction; in 50 others noise, of which little is kept.
  rng = np.random.default_rng(0)
  side = np.tile([0, 1], 50)
  features = np.concatenate([100 * side[:, None], rng.normal(size=(100, 50))], axis=1)
  partition = _build(features, 2, components=1)
  assert {tuple(set(side[held])) for held in partition.values()} == {(0,), (1,)}


def test_whitening_counts_small_differences_as_much():
  # Pairs of groups: far apart in the first direction, where there is no gap, and with a
  # gap in the second, of a hundredth of the scale.
  rng = np.random.default_rng(0)
  side = np.tile([0, 1], 100)
  features = np.stack([rng.uniform(0, 100, 200), side + 0.01 * rng.normal(size=200)], 1)
  found = {
    whiten: sorted(
      len(set(side[held])) for held in _build(features, 2, whiten=whiten).values()
    )
    for whiten in (False, True)
  }
  assert found == {False: [2, 2], True: [1, 1]}


@pytest.mark.parametrize('seed', range(3))
def test_balanced_clusters_have_equal_sizes(seed):
  features = np.random.default_rng(seed).normal(size=(103, 4)) ** 3
  sizes = {
    balanced: [len(p) for p in _build(features, 5, seed, balanced=balanced).values()]
    for balanced in (False, True)
  }
  assert sorted(sizes[True]) == [20, 20, 21, 21, 21]
  assert np.ptp(sizes[False]) > 1


def test_clusters_are_mixed_over_clients():
  features, blob = _blobs(size=30)
  for fields in ({'alpha': 1e9, 'balanced': True}, {'beta': 1}):
    for held in _build(features, 6, sources=4, **fields).values():
      np.testing.assert_allclose(np.bincount(blob[held], minlength=4), 5, atol=1)


def test_features_that_cannot_be_clustered_are_refused():
  with pytest.raises(
    ValueError, match=r'3 clusters needs at least as many .* 4 examples have 2'
  ):
    _build(np.array([[0.0], [0.0], [1.0], [1.0]]), 3)
  with pytest.raises(ValueError, match=r'\[2, 1\] with 1 non-finite numbers'):
    _build(np.array([[0.0], [np.nan]]), 1)
  with pytest.raises(ValueError, match=r'of shape \[3\]'):
    _build(np.zeros(3), 1)


@pytest.mark.parametrize('seed', range(25))
def test_sizes_are_equal_and_no_exchange_of_two_points_is_better(seed):
  rng = np.random.default_rng(seed)
  points = rng.normal(size=(47, 3)) ** 3
  found = equal_kmeans.cluster(points, rng.integers(0, 4, 47), 4)
  assert sorted(np.bincount(found)) == [11, 12, 12, 12]
  centres = np.stack([points[found == k].mean(axis=0) for k in range(4)])
  cost = np.sum((points[:, np.newaxis] - centres) ** 2, axis=-1)
  own = cost[np.arange(47), found]
  exchanged = cost[:, found] + cost[:, found].T
  assert np.all(own[:, np.newaxis] + own <= exchanged + 1e-6)


def test_the_larger_of_two_groups_fills_the_smaller_with_its_nearest():
  points = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [9.0]])
  found = equal_kmeans.cluster(points, np.array([0, 0, 0, 0, 0, 1]), 2)
  np.testing.assert_array_equal(found, [0, 0, 0, 1, 1, 1])
