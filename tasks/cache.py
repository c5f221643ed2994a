"""Decoded arrays kept next to their source, so that a second start is instant.

An entry is a folder of .npy files and `entry.json`, which lists them. It is written
aside and then renamed. Its name ends with the fingerprint of what it was made from. It
may be deleted at any time.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import time
from typing import Any

from absl import logging
import numpy as np

from tff_ssl.runtime import files

FOLDER = '.tff_ssl_cache'
# Part of every fingerprint: raise it when the same source gives other arrays.
_FORMAT = 2
_ABANDONED_SECONDS = 24 * 3600
# What reading a damaged entry may raise: its JSON, and then its arrays.
_DAMAGED = (KeyError, TypeError, AttributeError, RecursionError, *files.NPY_ERRORS)


@dataclasses.dataclass(frozen=True, eq=False)
class Entry:
  """Arrays and what is known about them.

  Attributes:
    arrays: Read-only memory-mapped arrays.
    info: JSON values.
  """

  arrays: dict[str, np.ndarray]
  info: dict[str, Any]


def fingerprint(*parts: object) -> str:
  """A short digest of values whose `repr` tells them apart."""
  return hashlib.sha256(repr((_FORMAT, *parts)).encode()).hexdigest()[:16]


def root_for(source: pathlib.Path) -> pathlib.Path:
  """The cache folder of a data set.

  Args:
    source: The folder or file that the data set is read from.

  Returns:
    A folder next to the file or within the folder or, if that cannot be written, in the
    user's cache folder ($XDG_CACHE_HOME, ~/.cache).
  """
  folder = source if source.is_dir() else source.parent
  near = folder / FOLDER
  if os.access(near if near.exists() else folder, os.W_OK):
    return near
  home = os.environ.get('XDG_CACHE_HOME') or pathlib.Path('~/.cache').expanduser()
  return pathlib.Path(home) / 'tff_ssl'


def fetch(
  root: pathlib.Path, name: str, build: Callable[[pathlib.Path], dict[str, Any]]
) -> Entry:
  """Opens an entry, making it first if it is missing or damaged.

  Args:
    root: The cache folder.
    name: Name of the entry; it contains the fingerprint of the source.
    build: Writes the arrays as .npy files into a folder, returns JSON values.

  Returns:
    The entry.

  Raises:
    ValueError: The entry cannot be written.
  """
  entry = root / name
  opened = _open(entry)
  if opened is not None:
    return opened
  try:
    root.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(root)
    aside = pathlib.Path(tempfile.mkdtemp(prefix=f'{name}.partial-', dir=root))
  except OSError as error:
    raise ValueError(f'The cache folder {root} cannot be written: {error}.') from error
  try:
    info = build(aside)
    _finish(aside, info)
    if _open(entry) is None:
      shutil.rmtree(entry, ignore_errors=True)
      # Another process may be faster; its entry is just as good.
      with contextlib.suppress(OSError):
        aside.rename(entry)
  except OSError as error:
    raise ValueError(f'The cache entry {entry} cannot be written: {error}.') from error
  finally:
    shutil.rmtree(aside, ignore_errors=True)
  opened = _open(entry)
  if opened is None:
    raise ValueError(f'The cache entry {entry} cannot be written or read again.')
  return opened


def _finish(aside: pathlib.Path, info: dict[str, Any]) -> None:
  arrays = {}
  for path in sorted(aside.glob('*.npy')):
    array = np.load(path, mmap_mode='r')
    arrays[path.stem] = [str(array.dtype), list(array.shape)]
  text = json.dumps({'arrays': arrays, 'info': info}, indent=2)
  (aside / 'entry.json').write_text(text)
  # A temporary folder is private to its owner; data that are shared are not.
  aside.chmod(0o755)


def _open(entry: pathlib.Path) -> Entry | None:
  """The entry, or None if it is missing or damaged."""
  try:
    content = json.loads((entry / 'entry.json').read_text())
    arrays = {}
    for name, (dtype, shape) in content['arrays'].items():
      # Opening a truncated file as a memory map is an error.
      array = np.asarray(np.load(entry / f'{name}.npy', mmap_mode='r'))
      if [str(array.dtype), list(array.shape)] != [dtype, shape]:
        raise ValueError(f'{name} is {array.dtype} of shape {array.shape}')
      arrays[name] = array
    return Entry(arrays, content['info'])
  except FileNotFoundError:
    return None
  except _DAMAGED as error:
    logging.warning('The cache entry %s is damaged and is made again: %s', entry, error)
    return None


def _remove_abandoned(root: pathlib.Path) -> None:
  """Removes what is left of processes that were killed while writing."""
  for path in root.glob('*.partial-*'):
    try:
      if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
        shutil.rmtree(path, ignore_errors=True)
    except FileNotFoundError:
      continue
