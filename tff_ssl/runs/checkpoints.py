"""Checkpoints: the state after a round, as one `.npz` file.

`tff.program.FileProgramStateManager` is not used. It is safe under SIGKILL (it makes a
SavedModel aside and renames it), but builds a graph and a variable per array at every
save. For a state of 120 arrays that took 0.7 s, and memory grew by about 4 MiB a save.
An `.npz` file took 37 ms, can be read without TensorFlow, and names its arrays.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
import contextlib
import json
import os
import pathlib
import re
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from tff_ssl.storage import archives
from tff_ssl.storage import files

_NAME = re.compile(r'round_(\d+)\.npz')
_KEEP = 2
# A prefix of all names: the state may be a single array, with an empty path.
_ROOT = 'state'
# The entry with JSON about the state, and the round in it.
_ABOUT, _ROUND = 'about', 'round'


class Checkpoints:
  """The checkpoints of one run; the newest two are kept."""

  def __init__(self, folder: str | os.PathLike[str]):
    """Opens the folder, which is made when missing.

    Args:
      folder: Where the files are. One process at a time may write to it.
    """
    self._folder = pathlib.Path(folder)
    self._folder.mkdir(parents=True, exist_ok=True)
    files.remove_asides(self._folder)

  def rounds(self) -> list[int]:
    """Returns the rounds after which there is a checkpoint, ascending."""
    return _rounds(self._folder)

  def save(
    self, round: int, state: Any, about: Mapping[str, Any] | None = None
  ) -> None:
    """Saves the state, then removes the oldest checkpoints.

    Args:
      round: The round after which the state holds; 0 is the initial state.
      state: A nest of tuples, named tuples, lists and mappings of arrays.
      about: JSON values to store with it, which `about` returns.
    """
    arrays = {name: np.asarray(leaf) for name, leaf in _named_leaves(state).items()}
    text = json.dumps({_ROUND: round, **(about or {})})
    arrays[_ABOUT] = np.frombuffer(text.encode(), np.uint8)
    with files.atomic(self._path(round)) as aside, aside.open('wb') as file:
      np.savez(file, **arrays)
    for old in self.rounds()[:-_KEEP]:
      self._path(old).unlink()

  def load(self, round: int, template: Any) -> Any:
    """Returns the state saved after a round.

    Args:
      round: One of `rounds()`.
      template: A state of the same structure, shapes and types, such as the initial
        one; its containers are used, its values are not.

    Raises:
      ValueError: If the file is unreadable or holds a state of another structure.
    """
    path, layout = self._path(round), StateLayout(template)
    with _opened(path) as arrays:
      kinds = arrays.headers.items()
      difference = layout.difference(
        {name: [str(h.dtype), list(h.shape)] for name, h in kinds if name != _ABOUT}
      )
      # Nothing is read of a state that does not fit.
      stored = [] if difference else [arrays.read(name) for name in layout.spec]
    if difference:
      raise ValueError(f'{path} does not fit the algorithm: {difference}')
    leaves = map(_like, tree.flatten(template), stored)
    return tree.unflatten_as(template, list(leaves))

  def about(self, round: int) -> dict[str, Any]:
    """Returns what `save` stored about the state after a round, and its `round`.

    Args:
      round: One of `rounds()`.

    Raises:
      ValueError: If the file is unreadable, or belongs to another round.
    """
    path = self._path(round)
    with _opened(path, _ABOUT) as arrays:
      if _ABOUT not in arrays.headers:
        raise ValueError(f"it has no '{_ABOUT}'")
      if arrays.headers[_ABOUT].num_bytes > files.MOST_JSON:
        raise ValueError(f"'{_ABOUT}' has more than {files.MOST_JSON:,} bytes")
      stored = arrays.read(_ABOUT)
    try:
      about = files.parse_json(stored.tobytes(), _ABOUT)
      saved = about[_ROUND]
    except (ValueError, KeyError, TypeError) as error:
      raise ValueError(f'the checkpoint {path} does not say its round') from error
    if saved != round:
      raise ValueError(f'the checkpoint {path} is of round {saved}')
    return dict(about)

  def _path(self, round: int) -> pathlib.Path:
    return _path(self._folder, round)


def read_newest(
  folder: str | os.PathLike[str], prefix: str
) -> tuple[int, collections.OrderedDict[str, np.ndarray]]:
  """Reads one part of the newest state; see `read_newest_parts`."""
  round, (arrays,) = read_newest_parts(folder, [prefix])
  return round, arrays


def read_newest_parts(
  folder: str | os.PathLike[str], prefixes: Sequence[str]
) -> tuple[int, list[collections.OrderedDict[str, np.ndarray]]]:
  """Reads parts of the newest state, without the algorithm that it belongs to.

  It changes nothing: a run may be writing to the folder. All parts are of one round.

  Args:
    folder: Where the files are.
    prefixes: Paths of mappings in the state, such as 'global_model_weights/trainable'.

  Returns:
    The round after which the state holds, and for each prefix the arrays below it,
    named by the rest of their paths.

  Raises:
    ValueError: If there is no checkpoint, the newest is unreadable, or it holds nothing
      below a prefix.
  """
  folder = pathlib.Path(folder)
  rounds = _rounds(folder) if folder.is_dir() else []
  if not rounds:
    raise ValueError(f'{folder} has no checkpoint')
  path = _path(folder, rounds[-1])
  starts = tuple(f'{_ROOT}/{prefix}/' for prefix in prefixes)
  with _opened(path, starts) as stored:
    parts = [
      collections.OrderedDict(
        (name.removeprefix(start), stored.read(name))
        for name in stored.headers
        if name.startswith(start)
      )
      for start in starts
    ]
  for prefix, arrays in zip(prefixes, parts, strict=True):
    if not arrays:
      raise ValueError(f"the checkpoint {path} has no array below '{prefix}'")
  return rounds[-1], parts


def _path(folder: pathlib.Path, round: int) -> pathlib.Path:
  return folder / f'round_{round:08d}.npz'


def _rounds(folder: pathlib.Path) -> list[int]:
  names = (_NAME.fullmatch(path.name) for path in folder.iterdir())
  return sorted(int(name.group(1)) for name in names if name)


@contextlib.contextmanager
def _opened(
  path: pathlib.Path, start: str | tuple[str, ...] = ''
) -> Iterator[archives.Arrays]:
  """Opens arrays whose names begin with (one) `start`; errors name the checkpoint.

  It may come from a stranger: its arrays take no more memory than the file has bytes.
  """
  try:
    with archives.open_arrays(path, stored=True, start=start) as arrays:
      yield arrays
  except files.NPZ_ERRORS as error:
    raise ValueError(f'cannot read the checkpoint {path}: {error}') from error


def _named_leaves(state: Any) -> dict[str, Any]:
  """Returns the leaves in the order of `tree.flatten`, named by their paths.

  Args:
    state: A nest of tuples, named tuples, lists and mappings.

  Raises:
    ValueError: If two have the same name.
  """
  leaves = {}
  for path, leaf in tree.flatten_with_path(state):
    name = '/'.join([_ROOT, *map(str, path)])
    if name in leaves:
      raise ValueError(f"two arrays of the state are named '{name}'")
    leaves[name] = leaf
  return leaves


class StateLayout:
  """Names, types and shapes of a nest of arrays, and its bytes, array after array.

  Attributes:
    spec: Type and shape by name, as JSON values.
    num_bytes: Size of every nest of this layout.
  """

  def __init__(self, like: Any):
    """Takes the layout of a nest.

    Args:
      like: A nest of tuples, named tuples, lists and mappings of arrays.
    """
    leaves = _named_leaves(like)
    self._nest = like
    self._like = [np.asarray(leaf) for leaf in leaves.values()]
    self.spec = {
      name: [str(leaf.dtype), list(leaf.shape)]
      for name, leaf in zip(leaves, self._like, strict=True)
    }
    self.num_bytes = sum(leaf.nbytes for leaf in self._like)

  def difference(self, spec: Mapping[str, Sequence[Any]]) -> str:
    """Returns the first difference from another layout, in words; empty without one.

    Args:
      spec: The other layout, as read from a file.
    """
    for name in [*spec, *self.spec]:
      there, here = spec.get(name), self.spec.get(name)
      if there != here:
        return f"'{name}' is {_describe(there)} there and {_describe(here)} here"
    return ''

  def encode(self, nest: Any) -> bytes:
    """Returns the bytes of a nest of this layout.

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


def _describe(kind: Any) -> str:
  if kind is None:
    return 'absent'
  return ' '.join(map(str, kind)) if isinstance(kind, list) else repr(kind)[:60]


def _like(leaf: Any, array: np.ndarray) -> Any:
  """Returns the array as the kind of value that the template has there."""
  if tf.is_tensor(leaf):
    return tf.constant(array)
  # By type: NumPy's float64 is a subclass of float.
  if type(leaf) in (bool, int, float):
    return array.item()
  return array[()]
