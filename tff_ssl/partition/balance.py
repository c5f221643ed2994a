"""Clients of equal sizes whose class histograms are as near to a draw as can be.

Draws of class shares leave clients of unequal sizes. Of all tables of clients by
classes in which every client has the same number of examples and every class its own
total, the one nearest to the draw is taken, in relative entropy: the draw with its rows
and its columns scaled (Csiszar, "I-divergence geometry of probability distributions and
minimization problems", 1975). The draw's odds ratios remain: how much more a client has
of one class than another client does, against another class. So it makes no difference
whether shares of each class over clients were drawn, or proportions of each client over
classes.
"""

import numpy as np

# Logarithms of this range are scaled at once; of larger ones, those divided by two,
# four, ... before, each from the factors of the one before (Schmitzer, "Stabilized
# sparse scaling algorithms for entropy regularized transport problems", 2019, Section
# 3.2).
_RANGE = 16.0
# Draws of a larger range, as where alpha is below 0.0005, are brought to this one:
# their nearest table is all but that of the limit, each class at as few clients as
# totals allow, and scaling them takes long.
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
    class_sizes: int [classes], a multiple of the number of clients in all.

  Returns:
    int64 [clients, classes]: every row has the same sum, a column that of its class. An
    entry is within some examples of the scaled draw, whose sums are not whole.
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
  """Moves single examples from the larger clients to the smaller, within classes.

  Each is of the class of which the larger client has the most in excess of what is
  wanted, compared with the smaller one.
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
