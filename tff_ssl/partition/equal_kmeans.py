"""k-means with clusters of equal size.

k-means alternates between centres and an assignment of points to them. Here the
assignment keeps every cluster's size: of two clusters' points, those go to the first
that are nearer to its centre, compared with the other's, than the rest; which is the
best division of the two. Pairs of clusters are divided anew until none changes, so that
no exchange of two points lowers the sum of squared distances from the centres. Neither
step raises that sum, so that it ends.
"""

import itertools

import numpy as np

# What rounding leaves of a sum of squares; a smaller gain is none.
_RELATIVE_GAIN = 1e-9


def cluster(points: np.ndarray, start: np.ndarray, clusters: int) -> np.ndarray:
  """Divides points into clusters of equal size.

  Args:
    points: float64 [n, d], n at least `clusters`.
    start: int [n], the clusters, of any sizes, of an assignment to begin with.
    clusters: Number of clusters.

  Returns:
    int64 [n], the cluster of each; sizes differ by at most one.
  """
  sizes = np.full(clusters, len(points) // clusters)
  sizes[: len(points) % clusters] += 1
  found = np.zeros(len(points), np.int64)
  # Those of one cluster stay together as far as sizes allow; then pairs are divided.
  found[np.argsort(start, kind='stable')] = np.repeat(np.arange(clusters), sizes)
  centres = _means(points, start, clusters)
  best = np.inf
  while True:
    found = _divide(points, centres, found)
    centres = _means(points, found, clusters)
    total = float(np.sum(np.square(points - centres[found])))
    if not total < best * (1 - _RELATIVE_GAIN):
      return found
    best = total


def _means(points: np.ndarray, found: np.ndarray, clusters: int) -> np.ndarray:
  return np.stack([np.mean(points[found == k], axis=0) for k in range(clusters)])


def _divide(points: np.ndarray, centres: np.ndarray, found: np.ndarray) -> np.ndarray:
  """Divides every pair of clusters anew, until none changes."""
  found = found.copy()
  # |x - c|^2 but for |x|^2, which is the same for all centres.
  distances = np.sum(np.square(centres), axis=1) - 2 * points @ centres.T
  changed = True
  while changed:
    changed = False
    for first, second in itertools.combinations(range(len(centres)), 2):
      both = np.flatnonzero((found == first) | (found == second))
      in_first = found[both] == first
      nearer = distances[both, first] - distances[both, second]
      # A point stays where it is among points at the same difference.
      order = np.lexsort((~in_first, nearer))
      divided = np.full(len(both), second)
      divided[order[: np.sum(in_first)]] = first
      if not np.array_equal(divided, found[both]):
        found[both] = divided
        changed = True
  return found
