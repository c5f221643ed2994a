"""Decoded arrays kept next to their source, so that a second start is instant.

An entry is a folder of .npy files and `entry.json`, which lists them. It is written
aside and then renamed. Its name ends with the fingerprint of what it was made from. It
may be deleted at any time.

The source may come from a stranger, with a cache in it. So `entry.mac` authenticates
each entry by a key that only the user has, in the user's cache folder; entries of
others are made again. Nothing is read or written through a link, and only files that
this module writes are deleted.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import hashlib
import hmac
import json
import os
import pathlib
import stat
import tempfile
import time
from typing import Any

from absl import logging
import numpy as np

from tff_ssl.storage import files
from tff_ssl.storage import user_key

FOLDER = '.tff_ssl_cache'
# Part of every fingerprint: raise it when the same source gives other arrays.
_FORMAT = 2
_ABANDONED_SECONDS = 24 * 3600
# The files of an entry, besides its arrays.
_LIST, _MAC = 'entry.json', 'entry.mac'
_BLOCK = 2**20
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
    A folder next to the file or within the folder. If there is something else of its
    name, such as a link or a folder of somebody else, or it cannot be written:
    `home_for` it.
  """
  folder = source if source.is_dir() else source.parent
  near = folder / FOLDER
  is_near = _is_own_folder(near) if _is_there(near) else os.access(folder, os.W_OK)
  return near if is_near else home_for(source)


def home_for(source: pathlib.Path) -> pathlib.Path:
  """The cache folder of a data set in that of the user.

  It is the data set's own: files of two folders may have the same names, sizes and
  times, as of scanners, in archives and on media with coarse times.

  Args:
    source: As of `root_for`.
  """
  return user_key.home() / fingerprint(os.path.realpath(source))


def _is_there(path: pathlib.Path) -> bool:
  """Returns whether there is anything of this name, even a link that leads nowhere."""
  return path.is_symlink() or path.exists()


def _is_own_folder(path: pathlib.Path) -> bool:
  """Returns whether it is a folder of this user, no link to one, that can be written.

  Who owns a folder may exchange what is in it.
  """
  status = path.lstat()
  own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
  return own and os.access(path, os.W_OK)


def fetch(
  root: pathlib.Path,
  name: str,
  build: Callable[[pathlib.Path], dict[str, Any]],
  still_holds: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> Entry:
  """Opens an entry, making it first if it is missing, damaged or holds no longer.

  Args:
    root: The cache folder.
    name: Name of the entry; it contains the fingerprint of the source.
    build: Writes the arrays as .npy files into a folder, returns JSON values.
    still_holds: Says of these values whether the entry would be made with them again.

  Returns:
    The entry.

  Raises:
    ValueError: The entry cannot be written.
  """
  entry = root / name
  opened = _open(entry)
  if opened is not None and still_holds(opened.info):
    return opened
  try:
    root.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(root)
    aside = pathlib.Path(tempfile.mkdtemp(prefix=f'{name}.partial-', dir=root))
  except OSError as error:
    raise ValueError(f'The cache folder {root} cannot be written: {error}.') from error
  try:
    info = build(aside)
    _finish(aside, name, info)
    opened = _open(entry)
    if opened is None or not still_holds(opened.info):
      _remove(entry)
      # Another process may be faster; its entry is just as good.
      with contextlib.suppress(OSError):
        aside.rename(entry)
  except OSError as error:
    raise ValueError(f'The cache entry {entry} cannot be written: {error}.') from error
  finally:
    _remove(aside)
  opened = _open(entry)
  if opened is None:
    raise ValueError(f'The cache entry {entry} cannot be written or read; remove it.')
  return opened


def _finish(aside: pathlib.Path, name: str, info: dict[str, Any]) -> None:
  arrays = {}
  for path in sorted(aside.glob('*.npy')):
    array = np.lib.format.open_memmap(path, mode='r')
    arrays[path.stem] = [str(array.dtype), list(array.shape)]
  text = json.dumps({'arrays': arrays, 'info': info}, indent=2)
  (aside / _LIST).write_text(text)
  (aside / _MAC).write_text(_mac(aside / _LIST, name))
  # A temporary folder is private to its owner; data that are shared are not.
  aside.chmod(0o755)


def _open(entry: pathlib.Path) -> Entry | None:
  """The entry, or None if it is missing, damaged, or made by somebody else."""
  try:
    if not stat.S_ISDIR(entry.lstat().st_mode):
      raise ValueError('it is not a folder')
    for path in (entry / _LIST, entry / _MAC):
      _check_file(path)
    mac = files.read_bytes(entry / _MAC, 2 * hashlib.sha256().digest_size)
    # Before it is parsed, which takes many times its size.
    if not hmac.compare_digest(mac, _mac(entry / _LIST, entry.name).encode()):
      raise ValueError('it was not made by this user')
    content = json.loads((entry / _LIST).read_text())
    arrays = {}
    for name, (dtype, shape) in content['arrays'].items():
      _check_file(entry / f'{name}.npy')
      # Opening a truncated file as a memory map is an error.
      array = np.asarray(np.lib.format.open_memmap(entry / f'{name}.npy', mode='r'))
      if [str(array.dtype), list(array.shape)] != [dtype, shape]:
        raise ValueError(f'{name} is {array.dtype} of shape {array.shape}')
      arrays[name] = array
    return Entry(arrays, content['info'])
  except FileNotFoundError:
    return None
  except _DAMAGED as error:
    logging.warning(
      'The cache entry %s is not used: %s; it is made again', entry, error
    )
    return None


def _check_file(path: pathlib.Path) -> None:
  """Refuses a link, which may lead to anything, and a pipe, which may never end."""
  if not stat.S_ISREG(path.lstat().st_mode):
    raise ValueError(f'{path.name} is not a file')


def _mac(path: pathlib.Path, name: str) -> str:
  """Returns the code by which the user recognises the list of an entry.

  Args:
    path: The list.
    name: Name of the entry.
  """
  # It has the name of a folder, which need not be UTF-8.
  code = user_key.code(os.fsencode(name))
  with path.open('rb') as file:
    while block := file.read(_BLOCK):
      code.update(block)
  return code.hexdigest()


def _remove(folder: pathlib.Path) -> None:
  """Removes an entry, complete or not, unless it holds what this module does not write.

  A link is removed, and not what it leads to.
  """
  with contextlib.suppress(OSError):
    if not stat.S_ISDIR(folder.lstat().st_mode):
      folder.unlink()
      return
    for path in folder.iterdir():
      if path.suffix == '.npy' or path.name in (_LIST, _MAC):
        path.unlink()
    folder.rmdir()


def _remove_abandoned(root: pathlib.Path) -> None:
  """Removes what is left of processes that were killed while writing."""
  for path in root.glob('*.partial-*'):
    with contextlib.suppress(FileNotFoundError):
      status = path.lstat()
      is_old = time.time() - status.st_mtime > _ABANDONED_SECONDS
      if stat.S_ISDIR(status.st_mode) and is_old:
        _remove(path)
