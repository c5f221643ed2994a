"""Draws that the Dirichlet partitions share."""

import math

import numpy as np

from tff_ssl.partition import clients as clients_lib

# Below it the logarithms of the proportions lose their differences in float64.
_SMALLEST_ALPHA = 1e-9


def check_alpha(kind: str, alpha: float) -> None:
  """Checks a concentration.

  Args:
    kind: The partition's name, for the error.
    alpha: The concentration.

  Raises:
    ValueError: alpha is neither 0 nor a finite number of at least 1e-9.
  """
  if not math.isfinite(alpha) or (alpha != 0 and alpha < _SMALLEST_ALPHA):
    raise ValueError(
      f'alpha of a {kind} partition is {alpha}; it must be 0 or a finite number of '
      f'at least {_SMALLEST_ALPHA}.'
    )


def log_dirichlet(
  concentration: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
  """Logarithms of Dirichlet draws, each up to a constant of its own.

  A Dirichlet draw is a normalised vector of Gamma(a) variates, and Gamma(a) is
  Gamma(a + 1) * U^(1/a) in distribution. The logarithm of that stays finite where,
  at a small concentration, every variate itself would be 0.

  Args:
    concentration: float [m], all positive.
    count: Number of draws.
    rng: Source of the draws.

  Returns:
    float64 [count, m]; `softmax` of a row, or of some of its entries, is the
    draw, or the draw renormalised over these entries.
  """
  size = (count, len(concentration))
  # 1 - U lies in (0, 1], so that the logarithm is finite.
  log_uniform = np.log1p(-rng.random(size))
  gamma = rng.standard_gamma(concentration + 1, size)
  return np.log(gamma) + log_uniform / concentration


def softmax(logits: np.ndarray) -> np.ndarray:
  """Softmax over the last axis."""
  exponentials = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
  return exponentials / np.sum(exponentials, axis=-1, keepdims=True)


def deal(
  labels: np.ndarray, received: np.ndarray, rng: np.random.Generator
) -> clients_lib.Partition:
  """Draws the examples of clients whose label histograms are known.

  Args:
    labels: int [n].
    received: int64 [clients, classes], examples of each of `np.unique(labels)` that
      each client receives; a column sums to the size of the class at most.
    rng: Source of the draws.

  Returns:
    The partition.
  """
  held: list[list[np.ndarray]] = [[] for _ in received]
  for column, label in enumerate(np.unique(labels)):
    members = rng.permutation(np.flatnonzero(labels == label))
    ends = np.cumsum(received[:, column])
    for client in np.flatnonzero(received[:, column]):
      start = ends[client] - received[client, column]
      held[client].append(members[start : ends[client]])
  empty = np.zeros(0, np.int64)
  return clients_lib.from_positions(
    [np.concatenate(parts) if parts else empty for parts in held]
  )
