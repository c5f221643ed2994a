"""Fairness: how evenly a classifier's accuracy is spread over clients.

"Fair Resource Allocation in Federated Learning" (q-FFL), Tian Li, Maziar Sanjabi,
Ahmad Beirami, Virginia Smith, ICLR 2020, Section 4.1: mean, deviation and worst 10 % of
the clients' test accuracies. All clients count equally, whatever they hold.

Deviations: the worst decile has ceil(K / 10) of K clients, so that it is never empty.
"""

import collections
from collections.abc import Mapping

import numpy as np

from tff_ssl.partition import flat

# One client in this many is among the worst.
_DECILE = 10


def client_accuracies(
  labels: np.ndarray, predictions: np.ndarray, clients: Mapping[str, np.ndarray]
) -> collections.OrderedDict[str, float]:
  """Returns the accuracy of each client that has examples.

  Args:
    labels: int [N] true classes.
    predictions: int [N] predicted classes.
    clients: Client id -> int [n] positions of its examples in both; n may be 0.
      Examples that no client holds are ignored.

  Returns:
    Share of right predictions by client id, in the order of `clients`; clients without
    examples are left out.

  Raises:
    ValueError: Lengths differ, a label is negative, a position is out of range, or no
      client has an example.
  """
  if len(labels) != len(predictions):
    raise ValueError(
      f'There are {len(predictions)} predictions for {len(labels)} labels; each label '
      'needs one.'
    )
  held = flat.flatten_checked(clients, len(labels))
  if not held.together.size:
    raise ValueError(
      f'None of the {len(clients)} clients has an example; at least one client must '
      'have one.'
    )
  truth = np.asarray(labels)[held.together]
  if np.min(truth) < 0:
    raise ValueError(
      f'A label is {np.min(truth)}; examples without one must be left out.'
    )
  right = truth == np.asarray(predictions)[held.together]
  # Differences of running sums: `np.add.reduceat` is wrong where a client is empty.
  running = np.concatenate([[0], np.cumsum(right)])
  sizes = np.diff(held.starts)
  counts = np.diff(running[held.starts])
  return collections.OrderedDict(
    (client_id, float(count / size))
    for client_id, count, size in zip(held.client_ids, counts, sizes, strict=True)
    if size
  )


def summarize(accuracies: Mapping[str, float]) -> collections.OrderedDict[str, float]:
  """Summarises the accuracies of clients.

  Args:
    accuracies: By client id, at least one.

  Returns:
    `mean` and `std` (divisor K) over clients, and `worst_decile`: the mean of the
    ceil(K / 10) lowest. Clients that tie have the same accuracy, so that it does not
    matter which of them is taken.

  Raises:
    ValueError: There is no client.
  """
  if not accuracies:
    raise ValueError(
      'There are no clients; fairness needs the accuracy of at least one.'
    )
  values = np.sort(np.fromiter(accuracies.values(), np.float64))
  worst = values[: -(-len(values) // _DECILE)]
  return collections.OrderedDict(
    mean=float(np.mean(values)),
    std=float(np.std(values)),
    worst_decile=float(np.mean(worst)),
  )
