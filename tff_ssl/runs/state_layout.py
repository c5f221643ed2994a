"""The bytes of a client's state: a nest of arrays, one array after another.

Names, types and shapes are the same for all clients of a run, and are stored once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tree

from tff_ssl.runs import checkpoints


class StateLayout:
  """Names, types and shapes of a nest of arrays, whose bytes are in that order.

  Attributes:
    spec: Type and shape by name, as JSON values.
    num_bytes: Size of every nest of this layout.
  """

  def __init__(self, like: Any):
    """Takes the layout of a nest.

    Args:
      like: A nest of tuples, named tuples, lists and mappings of arrays.
    """
    leaves = checkpoints.named_leaves(like)
    self._nest = like
    self._like = [np.asarray(leaf) for leaf in leaves.values()]
    self.spec = {
      name: [leaf.dtype.name, list(leaf.shape)]
      for name, leaf in zip(leaves, self._like, strict=True)
    }
    self.num_bytes = sum(leaf.nbytes for leaf in self._like)

  def difference(self, spec: Mapping[str, Sequence[Any]]) -> str:
    """Returns the first difference from another layout, in words; empty without one.

    Args:
      spec: Of the other layout, as read from a file.
    """
    for name in [*spec, *self.spec]:
      there, here = spec.get(name), self.spec.get(name)
      if there != here:
        return f"'{name}' is {_describe(there)} there and {_describe(here)} here"
    return ''

  def encode(self, nest: Any) -> bytes:
    """Returns the bytes of a nest.

    Args:
      nest: Of this layout.

    Raises:
      ValueError: If an array is missing, or has another type or shape.
    """
    other = StateLayout(nest)
    if difference := self.difference(other.spec):
      raise ValueError(f'the state does not match the initial one: {difference}')
    return b''.join(leaf.tobytes() for leaf in other._like)

  def decode(self, data: bytes) -> Any:
    """Returns the nest that was encoded; its arrays cannot be written to.

    Args:
      data: `num_bytes` bytes.
    """
    leaves, start = [], 0
    for like in self._like:
      leaf = np.frombuffer(data, like.dtype, like.size, start).reshape(like.shape)
      # An array of rank 0 becomes a scalar.
      leaves.append(leaf[()])
      start += like.nbytes
    return tree.unflatten_as(self._nest, leaves)


def _describe(kind: Sequence[Any] | None) -> str:
  return 'absent' if kind is None else f'{kind[0]} {kind[1]}'
