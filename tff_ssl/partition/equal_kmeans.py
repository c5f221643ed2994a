"""k-means with clusters of equal size.

k-means alternates between centres and an assignment of points to them. Here the
assignment keeps every cluster's size. The points of two clusters are sorted by how much
nearer they are to the first centre than to the second; the first cluster takes the
first of them, which is the best division of the two. Pairs of clusters are divided
again until none changes, so that no exchange of two points lowers the sum of squared
distances from the centres. Neither step raises that sum, so the algorithm ends.
"""

import itertools

import numpy as np

# Relative rounding error of a sum of squares; a smaller gain is none.
_RELATIVE_GAIN = 1e-9


def cluster(points: np.ndarray, start: np.ndarray, clusters: int) -> np.ndarray:
  """Divides points into clusters of equal size.

  Args:
    points: float64 [n, d], n at least `clusters`.
    start: int [n], the clusters, of any sizes, of an initial assignment.
    clusters: Number of clusters.

  Returns:
    int64 [n], the cluster of each point; sizes differ by at most one.
  """
  sizes = np.full(clusters, len(points) // clusters)
  sizes[: len(points) % clusters] += 1
  cluster_of = np.zeros(len(points), np.int64)
  # Points of one cluster stay together as far as sizes allow; then pairs are divided.
  cluster_of[np.argsort(start, kind='stable')] = np.repeat(np.arange(clusters), sizes)
  centres = _means(points, start, clusters)
  best = np.inf
  while True:
    cluster_of = _divide(points, centres, cluster_of)
    centres = _means(points, cluster_of, clusters)
    total = float(np.sum(np.square(points - centres[cluster_of])))
    if not total < best * (1 - _RELATIVE_GAIN):
      return cluster_of
    best = total


def _means(points: np.ndarray, cluster_of: np.ndarray, clusters: int) -> np.ndarray:
  return np.stack([np.mean(points[cluster_of == k], axis=0) for k in range(clusters)])


def _divide(
  points: np.ndarray, centres: np.ndarray, cluster_of: np.ndarray
) -> np.ndarray:
  """Divides every pair of clusters again, until none changes."""
  cluster_of = cluster_of.copy()
  # |x - c|^2 without |x|^2, which is the same for all centres.
  distances = np.sum(np.square(centres), axis=1) - 2 * points @ centres.T
  changed = True
  while changed:
    changed = False
    for first, second in itertools.combinations(range(len(centres)), 2):
      both = np.flatnonzero((cluster_of == first) | (cluster_of == second))
      in_first = cluster_of[both] == first
      nearer = distances[both, first] - distances[both, second]
      # Among points of the same difference, those in the first cluster stay there.
      order = np.lexsort((~in_first, nearer))
      divided = np.full(len(both), second)
      divided[order[: np.sum(in_first)]] = first
      if not np.array_equal(divided, cluster_of[both]):
        cluster_of[both] = divided
        changed = True
  return cluster_of
