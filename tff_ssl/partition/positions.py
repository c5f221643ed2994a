"""The positions of a partition in one array, found by client id."""

from collections.abc import Mapping

import numpy as np

from tff_ssl.partition import flat


class ClientPositions:
  """A partition for reading: client id -> positions of the client's examples.

  One array holds the positions of all clients, one client after another, so that many
  thousand clients are checked and kept at once.

  Attributes:
    client_ids: In the order of the partition.
    together: int64 [n_1 + ... + n_K], read-only.
    starts: int64 [K + 1], where each client begins in `together`, and its length.
  """

  def __init__(self, partition: Mapping[str, np.ndarray], num_examples: int):
    """Copies the positions, unless the partition is flat already.

    Args:
      partition: Client id -> int [n] positions; n may be 0.
      num_examples: Positions are below this.

    Raises:
      ValueError: There is no client, or the positions of one are not integers [n] in
        [0, num_examples).
    """
    if not partition:
      raise ValueError('partition has no client: it must have at least one')
    sound = isinstance(partition, flat.FlatPartition) or _are_integers(partition)
    own = flat.flatten(partition if sound else {})
    if not sound or not _within(own.together, num_examples):
      for client_id, positions in partition.items():
        name = f"the positions of client '{client_id}'"
        check(name, np.asarray(positions), num_examples)
    self._partition = own
    self.client_ids = own.client_ids
    self.together = own.together
    self.starts = own.starts

  @property
  def owners(self) -> np.ndarray:
    """int64 [n_1 + ... + n_K], the place of the client of each position."""
    return self._partition.owners

  def of(self, client_id: str) -> np.ndarray:
    """Returns the positions of a client.

    Args:
      client_id: One of `client_ids`.

    Returns:
      int64 [n], in the order of the partition; read-only.

    Raises:
      ValueError: There is no such client.
    """
    return self._partition.at(self.place(client_id))

  def place(self, client_id: str) -> int:
    """Returns the place of a client in `client_ids`.

    Args:
      client_id: One of them.

    Raises:
      ValueError: There is no such client.
    """
    place = self.client_ids.place(client_id)
    if place is None:
      some = ', '.join(f"'{name}'" for name in self.client_ids[:3])
      more = len(self.client_ids) - 3
      raise ValueError(
        f"there is no client '{client_id}': the clients are {some}"
        f'{f" and {more} more" if more > 0 else ""}'
      )
    return place


def check(name: str, positions: np.ndarray, num_examples: int) -> None:
  """Checks positions into arrays of examples.

  Args:
    name: What to call them in the error.
    positions: Should be integers [n]; of any type if n is 0.
    num_examples: Length of the arrays.

  Raises:
    ValueError: They are not integers [n] in [0, num_examples).
  """
  if positions.ndim != 1 or (positions.size and positions.dtype.kind not in 'iu'):
    raise ValueError(
      f'{name} are {positions.dtype} {list(positions.shape)}: they must be integers [n]'
    )
  if not _within(positions, num_examples):
    raise ValueError(
      f'{name} go from {positions.min()} to {positions.max()}: they must lie in '
      f'[0, {num_examples})'
    )


def _are_integers(partition: Mapping[str, np.ndarray]) -> bool:
  """Returns whether all clients have lists of integers, or of nothing."""
  held = map(np.asarray, partition.values())
  # An empty list makes an array of floats.
  kinds = {(array.ndim, array.dtype.kind if array.size else 'i') for array in held}
  return kinds <= {(1, 'i'), (1, 'u')}


def _within(positions: np.ndarray, num_examples: int) -> bool:
  if not positions.size:
    return True
  return bool(positions.min() >= 0 and positions.max() < num_examples)
