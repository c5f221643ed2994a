"""HDF5 files that may come from strangers: only arrays of floats in the file itself."""

from collections.abc import Callable
from typing import Any

import h5py

# What h5py raises while it reads a damaged file.
ERRORS = (OSError, KeyError, RuntimeError, RecursionError)


def arrays(
  group: h5py.Group, skip: Callable[[h5py.Group, str], bool] = lambda *_: False
) -> dict[str, h5py.Dataset]:
  """Returns all arrays in a group by their paths; none of them is read.

  Args:
    group: The group.
    skip: (group, name) -> whether to pass over what has this name.

  Raises:
    ValueError: If it holds anything else, such as a link to another file, or anything
      under two names: n groups with two names each would be 2^n paths.
  """
  found: dict[str, h5py.Dataset] = {}
  visited = {_address(group)}

  def visit(inner: h5py.Group) -> None:
    for name in inner:
      if skip(inner, name):
        continue
      where = f'{inner.name.rstrip("/")}/{name}'
      # A link may point to another file, and so may the values of an array.
      if not isinstance(inner.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"'{where}' is a link")
      value: Any = inner[name]
      if _address(value) in visited:
        raise ValueError(f"'{where}' is there twice")
      visited.add(_address(value))
      if isinstance(value, h5py.Group):
        visit(value)
      elif not _is_floats(value):
        raise ValueError(f"'{where}' is not an array of floats")
      else:
        found[where] = value

  visit(group)
  return found


def _address(value: Any) -> int:
  """Returns where an object is in its file."""
  return int(h5py.h5o.get_info(value.id).addr)


def _is_floats(value: Any) -> bool:
  """Returns whether an object of an HDF5 file is an array of floats in that file."""
  # It may also be a type definition.
  if not isinstance(value, h5py.Dataset) or value.external or value.is_virtual:
    return False
  try:
    return bool(value.dtype.kind == 'f')
  except TypeError:
    # NumPy does not have this type.
    return False
