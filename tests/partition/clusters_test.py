"""Clusters of features as clients."""

import numpy as np
import pytest

from tff_ssl.partition import clusters


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
