"""Clients of equal sizes whose class histograms are as near to a draw as possible.

Draws of class shares leave clients of unequal sizes. Consider all tables of clients by
classes in which every client has the same number of examples and every class keeps its
total. `fit` takes the table that is nearest to the draw in relative entropy, which is
the draw with its rows and columns scaled (Csiszar, "I-divergence geometry of
probability distributions and minimization problems", 1975). The draw's odds ratios
remain: how much more of one class a client has than another client, relative to another
class. So it does not matter whether shares of each class over clients were drawn, or
proportions of each client over classes.
"""

import numpy as np

# Logarithms of at most this range are scaled at once. Larger ones are first divided by
# ..., four, two, and each is scaled from the factors of the one before (Schmitzer,
# "Stabilized sparse scaling algorithms for entropy regularized transport problems",
# 2019, Section 3.2).
_RANGE = 16.0
# Draws of a larger range, such as with alpha below 0.0005, are reduced to this one:
# their nearest table is almost the table of the limit, with each class at as few
# clients as totals allow, and scaling them takes long.
_MAX_RANGE = 1e4
_MAX_SWEEPS = 5000
_MAX_SWEEPS_BEFORE = 50
# Examples by which a class may miss its total before counts are rounded.
_TOLERANCE = 0.01


def fit(log_shares: np.ndarray, class_sizes: np.ndarray) -> np.ndarray:
  """Scales a draw to clients of equal sizes, and rounds it to whole examples.

  Args:
    log_shares: float [clients, classes], finite logarithms of the draw, each row and
      each column up to a constant.
    class_sizes: int [classes]; their sum is a multiple of the number of clients.

  Returns:
    int64 [clients, classes]: every row has the same sum, every column its class's size.
    An entry is within some examples of the scaled draw, which is not whole.
  """
  scaled = _scale(log_shares, class_sizes)
  return _even(_round(scaled, class_sizes), scaled)


def _scale(log_shares: np.ndarray, class_sizes: np.ndarray) -> np.ndarray:
  """The scaled draw, float64 [clients, classes] (Sinkhorn's iteration)."""
  num_clients = len(log_shares)
  log_shares = log_shares * min(1.0, _MAX_RANGE / max(np.ptp(log_shares), 1.0))
  log_size = np.log(np.sum(class_sizes) / num_clients)
  with np.errstate(divide='ignore'):
    log_totals = np.log(class_sizes)
  of_class = np.zeros(len(class_sizes))
  halvings = int(np.ceil(np.log2(max(np.ptp(log_shares) / _RANGE, 1))))
  for halving in range(halvings, -1, -1):
    logits = log_shares / 2.0**halving
    of_class = of_class * 2.0
    for _ in range(_MAX_SWEEPS_BEFORE if halving else _MAX_SWEEPS):
      of_client = log_size - _log_sum(logits + of_class, axis=1)
      table = np.exp(logits + of_class + of_client[:, np.newaxis])
      if np.max(np.abs(np.sum(table, axis=0) - class_sizes)) < _TOLERANCE:
        break
      of_class = log_totals - _log_sum(logits + of_client[:, np.newaxis], axis=0)
  return table


def _log_sum(logits: np.ndarray, axis: int) -> np.ndarray:
  largest = np.max(logits, axis=axis, keepdims=True)
  total = np.sum(np.exp(logits - largest), axis=axis)
  return np.log(total) + np.squeeze(largest, axis)


def _round(table: np.ndarray, class_sizes: np.ndarray) -> np.ndarray:
  """Rounds so that classes have their totals: the largest remainders are rounded up."""
  totals = np.sum(table, axis=0)
  exact = table * np.divide(class_sizes, totals, where=totals > 0, out=totals * 0)
  result = np.floor(exact).astype(np.int64)
  missing = class_sizes - np.sum(result, axis=0)
  for column, count in enumerate(missing):
    largest = np.argsort(result[:, column] - exact[:, column], kind='stable')
    result[largest[:count], column] += 1
  return result


def _even(received: np.ndarray, wanted: np.ndarray) -> np.ndarray:
  """Moves single examples from larger to smaller clients, within classes.

  Each is of the class in which the larger client's excess over `wanted` most exceeds
  the smaller client's.
  """
  received = received.copy()
  sizes = np.sum(received, axis=1)
  while np.ptp(sizes):
    giver, taker = int(np.argmax(sizes)), int(np.argmin(sizes))
    excess = received - wanted
    gain = np.where(received[giver] > 0, excess[giver] - excess[taker], -np.inf)
    moved = int(np.argmax(gain))
    received[giver, moved] -= 1
    received[taker, moved] += 1
    sizes[giver] -= 1
    sizes[taker] += 1
  return received
