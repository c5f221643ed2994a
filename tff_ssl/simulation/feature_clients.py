"""Client data with features of a frozen encoder, for training classifiers."""

import collections
from collections.abc import Mapping

import numpy as np

from tff_ssl.objectives import linear
from tff_ssl.partition import flat
from tff_ssl.simulation import client_data


def held(
  partition: Mapping[str, np.ndarray], kept: np.ndarray, num_examples: int, what: str
) -> collections.OrderedDict[str, np.ndarray]:
  """Finds which of the labelled examples in use each client holds.

  Args:
    partition: Client id -> int64 [n] positions of examples.
    kept: int [m], positions of the examples whose labels are used.
    num_examples: Of all clients.
    what: What needs a label, for the error message.

  Returns:
    Client id -> its kept positions; clients without any are left out.

  Raises:
    ValueError: No client holds one, or positions are out of range.
  """
  positions = flat.flatten_checked(partition, num_examples)
  is_kept = np.zeros([num_examples], bool)
  is_kept[kept] = True
  found: collections.OrderedDict[str, np.ndarray] = collections.OrderedDict()
  for client_id in positions.client_ids:
    of_client = positions.of(client_id)
    if np.any(is_kept[of_client]):
      found[client_id] = of_client[is_kept[of_client]]
  if not found:
    raise ValueError(
      f'None of the {len(partition)} clients holds any of the {len(kept)} labels; '
      f'{what} needs at least one.'
    )
  return found


def build(
  of_clients: Mapping[str, np.ndarray], features: np.ndarray, labels: np.ndarray
) -> client_data.ArrayClientData:
  """Makes client data of the examples that clients hold.

  Args:
    of_clients: Client id -> positions, as `held` finds them.
    features: floating [m, d], of these examples, client after client.
    labels: int [m], of the same examples.
  """
  ends = np.cumsum([len(rows) for rows in of_clients.values()])
  renumbered = collections.OrderedDict(
    (client_id, np.arange(end - len(rows), end))
    for (client_id, rows), end in zip(of_clients.items(), ends, strict=True)
  )
  return client_data.ArrayClientData(
    features,
    rows_of(of_clients),
    renumbered,
    labels.astype(np.int32),
    field=linear.FEATURES,
  )


def rows_of(of_clients: Mapping[str, np.ndarray]) -> np.ndarray:
  """Returns the positions of all clients' examples, client after client."""
  return np.concatenate(list(of_clients.values()))
