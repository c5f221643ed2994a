"""Draws and whole-number shares that several partitions need."""

import numpy as np

from tff_ssl.partition import flat
from tff_ssl.partition import partitions

# Below this, logarithms of proportions lose their differences in float64.
_SMALLEST_ALPHA = 1e-9


def check_alpha(kind: str, alpha: float) -> None:
  """Checks a concentration.

  Args:
    kind: The partition's name, for the error.
    alpha: The concentration.

  Raises:
    ValueError: alpha is above 0 and below 1e-9.
  """
  if 0 < alpha < _SMALLEST_ALPHA:
    raise ValueError(
      f'alpha of a {kind} partition is {alpha}; it must be 0 or at least '
      f'{_SMALLEST_ALPHA}.'
    )


def log_dirichlet(
  concentration: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
  """Logarithms of Dirichlet draws, each up to its own constant.

  A Dirichlet draw is a normalised vector of Gamma(a) variates, and Gamma(a) is
  Gamma(a + 1) * U^(1/a) in distribution. The logarithm of this product stays finite
  even if, at a small concentration, every variate itself would be 0.

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


def apportion(totals: np.ndarray, proportions: np.ndarray) -> np.ndarray:
  """Splits whole numbers by proportions.

  Args:
    totals: int [m].
    proportions: float [m, k], each row sums to 1.

  Returns:
    int64 [m, k]: row i sums to `totals[i]`, and each entry is within 1 of its exact
    share, because the ends of the shares are rounded, not the shares.
  """
  ends = np.rint(np.cumsum(proportions, axis=1) * totals[:, np.newaxis])
  return np.diff(ends, axis=1, prepend=0).astype(np.int64)


def split_evenly(class_sizes: np.ndarray, holders: np.ndarray) -> np.ndarray:
  """Splits each class evenly among the clients that hold it.

  Args:
    class_sizes: int [classes].
    holders: bool [clients, classes], which clients receive examples of which class.

  Returns:
    int64 [clients, classes]: the shares of a class differ by at most one; the larger
    ones go to the clients that have received least so far. A class without holders is
    left out.
  """
  received = np.zeros(holders.shape, np.int64)
  totals = np.zeros(len(holders), np.int64)
  for column, size in enumerate(class_sizes):
    clients = np.flatnonzero(holders[:, column])
    if len(clients):
      share, larger = divmod(int(size), len(clients))
      least_first = clients[np.argsort(totals[clients], kind='stable')]
      received[clients, column] = share
      received[least_first[:larger], column] += 1
      totals += received[:, column]
  return received


def cut(class_sizes: np.ndarray, clients: int, examples: int) -> np.ndarray:
  """Lays the classes end to end and cuts them into clients of one size.

  Args:
    class_sizes: int [classes], in the order in which they are laid.
    clients: Number of clients.
    examples: Examples of each; `clients * examples` is at most the sum of the sizes.

  Returns:
    int64 [clients, classes]: a class is divided only where a client ends, so that
    clients have disjoint classes if whole classes fill each of them.
  """
  ends = np.cumsum(class_sizes)
  last = examples * np.arange(1, clients + 1)[:, np.newaxis]
  shared = np.minimum(last, ends) - np.maximum(last - examples, ends - class_sizes)
  return np.maximum(shared, 0).astype(np.int64)


def check_filled(kind: str, received: np.ndarray) -> None:
  """Checks that every client receives an example.

  Args:
    kind: The partition's name, for the error.
    received: int [clients, classes].

  Raises:
    ValueError: Some client receives none.
  """
  sizes = np.sum(received, axis=1)
  empty = int(np.sum(sizes == 0))
  if empty:
    raise ValueError(
      f'A {kind} partition of {np.sum(sizes)} examples to {len(sizes)} clients leaves '
      f'{empty} of them without any; take fewer clients.'
    )


def deal(
  labels: np.ndarray, received: np.ndarray, rng: np.random.Generator
) -> flat.FlatPartition:
  """Draws the examples of clients whose label histograms are known.

  Args:
    labels: int [n].
    received: int64 [clients, classes], examples of each of `np.unique(labels)` that
      each client receives; a column sums to at most the size of the class.
    rng: Source of the draws.

  Returns:
    The partition.
  """
  owners, positions = [], []
  for column, label in enumerate(np.unique(labels)):
    members = rng.permutation(np.flatnonzero(labels == label))
    dealt = np.repeat(np.arange(len(received)), received[:, column])
    owners.append(dealt)
    positions.append(members[: len(dealt)])
  nothing = [np.zeros(0, np.int64)]
  return partitions.from_owners(
    np.concatenate(owners or nothing),
    np.concatenate(positions or nothing),
    len(received),
  )
