"""Checkpoints: the state after a round, as one `.npz` file.

`tff.program.FileProgramStateManager` is not used. It is safe under SIGKILL (it makes a
SavedModel aside and renames it), but builds a graph and a variable per array at every
save. For a state of 120 arrays that took 0.7 s, and memory grew by about 4 MiB a save.
An `.npz` file took 37 ms, can be read without TensorFlow, and names its arrays.
"""

import collections
from collections.abc import Iterator, Mapping
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
# Bytes that this JSON may have; it names the columns of tables.
_MOST_ABOUT = 2**24


class Checkpoints:
  """The checkpoints of one run; the newest two are kept."""

  def __init__(self, folder: str | os.PathLike[str]):
    """Uses the folder, which is made when missing.

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
    arrays = {name: np.asarray(leaf) for name, leaf in named_leaves(state).items()}
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
    path = self._path(round)
    expected = named_leaves(template)
    with _opened(path) as arrays:
      misfit = _misfit(arrays.headers, expected)
      # Nothing is read of a state that does not fit.
      stored = {} if misfit else {name: arrays.read(name) for name in expected}
    if misfit:
      raise ValueError(f'{path} does not fit the algorithm: {misfit}')
    leaves = [_like(leaf, stored[name]) for name, leaf in expected.items()]
    return tree.unflatten_as(template, leaves)

  def about(self, round: int) -> dict[str, Any]:
    """Returns what `save` stored about the state after a round, and its `round`.

    Args:
      round: One of `rounds()`.

    Returns:
      Values by name; empty for a file of earlier code, which stored nothing.

    Raises:
      ValueError: If the file is unreadable, or belongs to another round.
    """
    path = self._path(round)
    with _opened(path, _ABOUT) as arrays:
      if _ABOUT not in arrays.headers:
        return {}
      if arrays.headers[_ABOUT].num_bytes > _MOST_ABOUT:
        raise ValueError(f"'{_ABOUT}' has more than {_MOST_ABOUT:,} bytes")
      stored = arrays.read(_ABOUT)
    try:
      about = json.loads(stored.tobytes())
      saved = about[_ROUND]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
      raise ValueError(f'the checkpoint {path} does not say its round') from error
    if saved != round:
      raise ValueError(f'the checkpoint {path} is of round {saved}')
    return dict(about)

  def _path(self, round: int) -> pathlib.Path:
    return _path(self._folder, round)


def read_newest(
  folder: str | os.PathLike[str], prefix: str
) -> tuple[int, collections.OrderedDict[str, np.ndarray]]:
  """Reads a part of the newest state, without the algorithm that it belongs to.

  It changes nothing: a run may be writing to the folder.

  Args:
    folder: Where the files are.
    prefix: Path of a mapping in the state, such as 'global_model_weights/trainable'.

  Returns:
    The round after which the state holds, and the arrays below the prefix, named by the
    rest of their paths.

  Raises:
    ValueError: If there is no checkpoint, the newest is unreadable, or it holds nothing
      below the prefix.
  """
  folder = pathlib.Path(folder)
  rounds = _rounds(folder) if folder.is_dir() else []
  if not rounds:
    raise ValueError(f'{folder} has no checkpoint')
  path, start = _path(folder, rounds[-1]), f'{_ROOT}/{prefix}/'
  with _opened(path, start) as stored:
    arrays = collections.OrderedDict(
      (name.removeprefix(start), stored.read(name)) for name in stored.headers
    )
  if not arrays:
    raise ValueError(f"the checkpoint {path} has no array below '{prefix}'")
  return rounds[-1], arrays


def _path(folder: pathlib.Path, round: int) -> pathlib.Path:
  return folder / f'round_{round:08d}.npz'


def _rounds(folder: pathlib.Path) -> list[int]:
  names = (_NAME.fullmatch(path.name) for path in folder.iterdir())
  return sorted(int(name.group(1)) for name in names if name)


@contextlib.contextmanager
def _opened(path: pathlib.Path, start: str = '') -> Iterator[archives.Arrays]:
  """Opens the arrays whose names begin with `start`; errors name the checkpoint.

  It may come from a stranger: its arrays take no more memory than the file has bytes.
  """
  try:
    with archives.open_arrays(path, stored=True, start=start) as arrays:
      yield arrays
  except files.NPZ_ERRORS as error:
    raise ValueError(f'cannot read the checkpoint {path}: {error}') from error


def _misfit(headers: Mapping[str, archives.Header], expected: Mapping[str, Any]) -> str:
  """Returns the first difference of stored arrays from a state's; empty without one."""
  differing = (headers.keys() - {_ABOUT}) ^ expected.keys()
  if differing:
    name = min(differing)
    where = 'the checkpoint' if name in headers else 'the algorithm'
    return f"'{name}' is only in {where}"
  for name, leaf in expected.items():
    header, like = headers[name], np.asarray(leaf)
    if (header.shape, header.dtype) != (like.shape, like.dtype):
      return (
        f"'{name}' is {header.dtype} {list(header.shape)} there and {like.dtype} "
        f'{list(like.shape)} here'
      )
  return ''


def named_leaves(state: Any) -> dict[str, Any]:
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


def _like(leaf: Any, array: np.ndarray) -> Any:
  """Returns the array as the kind of value that the template has there."""
  if tf.is_tensor(leaf):
    return tf.constant(array)
  # By type: NumPy's float64 is a subclass of float.
  if type(leaf) in (bool, int, float):
    return array.item()
  return array[()]
