"""The weights of `optimization.common_descent`, of all faces of a hull the best."""

import itertools

import numpy as np


def weights(vectors: np.ndarray) -> np.ndarray:
  """Returns the weights a of sum a g: of the shortest point of the hull of g / |g|^2.

  Args:
    vectors: [K, d], none of them 0.
  """
  rates = vectors / np.sum(vectors**2, axis=1, keepdims=True)
  k, best, found = len(rates), np.inf, np.zeros(len(rates))
  for size in range(1, k + 1):
    for face in itertools.combinations(range(k), size):
      own = rates[list(face)]
      # Of dependent vectors a smaller face has the same point.
      if np.linalg.matrix_rank(own) < size:
        continue
      w = np.linalg.solve(own @ own.T, np.ones(size))
      w /= w.sum()
      length = np.linalg.norm(w @ own)
      if (w >= 0).all() and length < best:
        best, found = length, np.zeros(k)
        found[list(face)] = w
  unnormalised = found / np.sum(vectors**2, axis=1)
  return unnormalised / unnormalised.sum()
