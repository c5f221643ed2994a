"""k-means with clusters of equal size."""

import numpy as np
import pytest

from tff_ssl.partition import equal_kmeans


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
