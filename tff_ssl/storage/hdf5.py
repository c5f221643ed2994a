"""HDF5 files that may come from strangers: only arrays of floats in the file itself.

A link may lead to another file, to a pipe that never ends, or back. h5py follows it in
`name in group`, in `group.get(name, getlink=True)` too. So objects are reached from
here alone, and h5py is asked for no name before it is known as a hard link.
"""

from collections.abc import Callable
from typing import Any

import h5py

# What h5py raises while it reads a damaged file.
ERRORS = (OSError, KeyError, RuntimeError, RecursionError)


def group(file: h5py.File, *names: str) -> h5py.Group | None:
  """Returns the first of some groups at the root of a file that is there.

  Args:
    file: The file.
    *names: Names of groups.

  Raises:
    ValueError: If what has this name is a link, or no group.
  """
  for name in names:
    value = child(file, name)
    if isinstance(value, h5py.Group):
      return value
    if value is not None:
      raise ValueError(f"'{_path(file, name)}' is no group")
  return None


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
      where, value = _path(inner, name), child(inner, name)
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


def _path(group: h5py.Group, name: str) -> str:
  return f'{group.name.rstrip("/")}/{name}'


def child(group: h5py.Group, name: str) -> Any:
  """Returns what a group has by a name, None if nothing.

  Args:
    group: The group.
    name: One name, not a path.

  Raises:
    ValueError: If it is a link, which is not followed.
  """
  links, key = group.id.links, name.encode('utf-8', 'surrogateescape')
  if not links.exists(key):
    return None
  if links.get_info(key).type != h5py.h5l.TYPE_HARD:
    raise ValueError(f"'{_path(group, name)}' is a link")
  return group[name]


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
