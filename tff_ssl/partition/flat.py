"""A partition as one array, which takes little memory for a million clients.

A dict of a million small arrays takes 300 bytes per client in addition to its
positions. This takes 8 bytes, and none for ids that are numbers (`ids.Numbered`).
"""

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView

import numpy as np

from tff_ssl.partition import ids


class FlatPartition(Mapping[str, np.ndarray]):
  """Client id -> positions of the client's examples, with all clients in one array.

  Attributes:
    client_ids: The ids in the order of the partition.
    together: int64 [n_1 + ... + n_K], read-only: positions, one client after another.
    starts: int64 [K + 1], read-only: where each client begins, and the length.
  """

  def __init__(
    self, client_ids: Sequence[str], together: np.ndarray, sizes: np.ndarray
  ):
    """Holds the array, which must not be written to any more.

    Args:
      client_ids: K ids.
      together: int64 [n_1 + ... + n_K].
      sizes: int64 [K], the number of positions of each client.

    Raises:
      ValueError: If the sizes do not match the ids and the array.
    """
    if len(sizes) != len(client_ids) or int(np.sum(sizes)) != len(together):
      raise ValueError(
        f'There are {len(sizes)} sizes with sum {int(np.sum(sizes))}; there must be '
        f'{len(client_ids)}, one for each client, with sum {len(together)}, the number '
        'of positions.'
      )
    if not isinstance(client_ids, ids.Ids):
      client_ids = ids.Listed(client_ids)
    self.client_ids: ids.Ids = client_ids
    self.together = together.view()
    self.starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=self.starts[1:])
    for array in (self.together, self.starts):
      array.flags.writeable = False

  @property
  def sizes(self) -> np.ndarray:
    """int64 [K], how many positions each client has."""
    return np.diff(self.starts)

  @property
  def owners(self) -> np.ndarray:
    """int64 [n_1 + ... + n_K], the place of the client of each position."""
    return np.repeat(np.arange(len(self)), self.sizes)

  def at(self, place: int) -> np.ndarray:
    """Returns the positions of the client at a place in `client_ids`, read-only."""
    return self.together[self.starts[place] : self.starts[place + 1]]

  def of(self, client_id: str) -> np.ndarray:
    """Returns the positions of a client, read-only.

    Raises:
      ValueError: There is no such client.
    """
    place = self.client_ids.place(client_id)
    if place is None:
      some = ', '.join(f"'{name}'" for name in self.client_ids[:3])
      more = len(self) - 3
      raise ValueError(
        f"there is no client '{client_id}': the clients are {some}"
        f'{f" and {more} more" if more > 0 else ""}'
      )
    return self.at(place)

  def __getitem__(self, client_id: str) -> np.ndarray:
    """Returns the positions of a client, read-only."""
    place = self.client_ids.place(client_id)
    if place is None:
      raise KeyError(client_id)
    return self.at(place)

  def __len__(self) -> int:
    """Returns the number of clients."""
    return len(self.client_ids)

  def __iter__(self) -> Iterator[str]:
    """Iterates over the ids."""
    return iter(self.client_ids)

  def __contains__(self, client_id: object) -> bool:
    """Returns whether there is such a client."""
    return self.client_ids.place(client_id) is not None

  def values(self) -> ValuesView[np.ndarray]:
    """Returns the clients' positions, without looking them up by id."""
    return _Values(self)

  def items(self) -> ItemsView[str, np.ndarray]:
    """Returns the ids and positions, without looking them up by id."""
    return _Items(self)


class _Values(ValuesView[np.ndarray]):
  """The positions of one client after another."""

  _mapping: FlatPartition

  def __iter__(self) -> Iterator[np.ndarray]:
    return map(self._mapping.at, range(len(self._mapping)))


class _Items(ItemsView[str, np.ndarray]):
  """The id and positions of one client after another."""

  _mapping: FlatPartition

  def __iter__(self) -> Iterator[tuple[str, np.ndarray]]:
    held = self._mapping.values()
    return zip(self._mapping.client_ids, held, strict=True)


def flatten(partition: Mapping[str, np.ndarray]) -> FlatPartition:
  """Returns a partition as one array; one that is flat already is returned itself.

  Args:
    partition: Client id -> int [n] positions; of any type if n is 0.
  """
  if isinstance(partition, FlatPartition):
    return partition
  held = [np.asarray(positions) for positions in partition.values()]
  sizes = np.array([len(positions) for positions in held], np.int64)
  together = np.zeros(int(np.sum(sizes)), np.int64)
  # An empty list makes an array of floats.
  filled = [positions for positions in held if len(positions)]
  if filled:
    np.concatenate(filled, out=together, casting='same_kind')
  return FlatPartition(tuple(partition), together, sizes)


def flatten_checked(
  partition: Mapping[str, np.ndarray], num_examples: int
) -> FlatPartition:
  """Returns a partition as one array whose positions are sound.

  Args:
    partition: Client id -> int [n] positions; n may be 0.
    num_examples: Positions are below this.

  Raises:
    ValueError: There is no client, or the positions of one are not integers [n] in
      [0, num_examples).
  """
  if not partition:
    raise ValueError('partition has no client: it must have at least one')
  sound = isinstance(partition, FlatPartition) or _are_integers(partition)
  own = flatten(partition if sound else {})
  if not sound or not _within(own.together, num_examples):
    for client_id, positions in partition.items():
      name = f"the positions of client '{client_id}'"
      check_positions(name, np.asarray(positions), num_examples)
  return own


def check_positions(name: str, positions: np.ndarray, num_examples: int) -> None:
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
