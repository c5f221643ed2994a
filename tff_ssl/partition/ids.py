"""Client ids of large populations, looked up without a set or dict of all ids."""

import abc
import bisect
from collections.abc import Iterator, Sequence
import functools
from typing import Any, overload


class Ids(Sequence[str]):
  """Client ids, each once, with a fast lookup of a client's place.

  They compare like a list or tuple of strings. `index` does not iterate over them.
  """

  @abc.abstractmethod
  def _at(self, place: int) -> str:
    """Returns the id at a place in [0, len)."""

  @abc.abstractmethod
  def place(self, client_id: object) -> int | None:
    """Returns the place of an id; None if it is not one of them."""

  @property
  @abc.abstractmethod
  def ascending(self) -> bool:
    """Whether they are in lexicographic order, each once."""

  @overload
  def __getitem__(self, key: int) -> str: ...

  @overload
  def __getitem__(self, key: slice) -> tuple[str, ...]: ...

  def __getitem__(self, key: Any) -> Any:
    """Returns an id, or a tuple of the ids of a slice."""
    places = range(len(self))[key]
    if isinstance(places, range):
      return tuple(map(self._at, places))
    return self._at(places)

  def __iter__(self) -> Iterator[str]:
    """Iterates over the ids in their order."""
    return map(self._at, range(len(self)))

  def __contains__(self, client_id: object) -> bool:
    """Returns whether this is one of them."""
    return self.place(client_id) is not None

  def index(self, client_id: Any, start: int = 0, stop: int | None = None) -> int:
    """Returns the place of an id.

    Args:
      client_id: One of the ids.
      start: The first place that counts.
      stop: The place after the last that counts; None: all count.

    Raises:
      ValueError: The id is not there.
    """
    place = self.place(client_id)
    if place is None or place not in range(len(self))[start:stop]:
      raise ValueError(f"there is no client '{client_id}'")
    return place

  def __eq__(self, other: object) -> bool:
    """Returns whether the other sequence has the same ids in the same order."""
    if isinstance(other, str) or not isinstance(other, Sequence):
      return NotImplemented
    return len(self) == len(other) and all(
      own == theirs for own, theirs in zip(self, other, strict=True)
    )

  def __hash__(self) -> int:
    """Returns a number that is the same for equal ids."""
    return hash((len(self), self[:1], self[-1:]))


class Numbered(Ids):
  """Ids that are a prefix and a number, made on demand: a million take no memory.

  Numbers are zero-padded, so that lexicographic order is numeric order.
  """

  def __init__(self, prefix: str, count: int):
    """Makes no id yet.

    Args:
      prefix: What each id begins with: `<prefix>_0`, ...
      count: How many ids there are.
    """
    self._start, self._count = f'{prefix}_', count
    self._digits = len(str(max(count - 1, 0)))

  def __len__(self) -> int:
    """Returns how many there are."""
    return self._count

  @property
  def ascending(self) -> bool:
    """Whether they are in lexicographic order: always."""
    return True

  def place(self, client_id: object) -> int | None:
    """Returns the number of an id; None if it is not one of them."""
    if not isinstance(client_id, str) or not client_id.startswith(self._start):
      return None
    digits = client_id[len(self._start) :]
    # Ids have ASCII digits only, but int() takes Unicode digits, '1_0' and ' 1'.
    if len(digits) != self._digits or not (digits.isascii() and digits.isdecimal()):
      return None
    place = int(digits)
    return place if place < self._count else None

  def _at(self, place: int) -> str:
    return f'{self._start}{place:0{self._digits}d}'


class Listed(Ids):
  """Ids of any kind, held as they are."""

  def __init__(self, client_ids: Sequence[str]):
    """Holds the ids.

    Args:
      client_ids: The ids, in any order.
    """
    self._ids = tuple(client_ids)

  def __len__(self) -> int:
    """Returns how many there are."""
    return len(self._ids)

  @functools.cached_property
  def ascending(self) -> bool:
    """Whether they are in lexicographic order, each once."""
    following = iter(self._ids)
    next(following, None)
    return all(a < b for a, b in zip(self._ids, following, strict=False))

  def place(self, client_id: object) -> int | None:
    """Returns the place of an id; None if it is not one of them."""
    if not isinstance(client_id, str):
      return None
    if not self.ascending:
      return self._places.get(client_id)
    # No dict of all ids, which would take more memory than the ids.
    place = bisect.bisect_left(self._ids, client_id)
    is_there = place < len(self._ids) and self._ids[place] == client_id
    return place if is_there else None

  @functools.cached_property
  def _places(self) -> dict[str, int]:
    return {client_id: place for place, client_id in enumerate(self._ids)}

  def _at(self, place: int) -> str:
    return self._ids[place]


def in_order(client_ids: Sequence[str]) -> Ids:
  """Returns ids in lexicographic order; `Ids` in that order are returned themselves.

  Args:
    client_ids: The ids in any order, each once.

  Raises:
    ValueError: If an id is there twice.
  """
  own = client_ids if isinstance(client_ids, Ids) else Listed(client_ids)
  if not own.ascending:
    own = Listed(sorted(own))
    if not own.ascending:
      raise ValueError(
        'client_ids names a client twice: each client must be named once'
      )
  return own
