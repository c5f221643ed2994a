"""Reads files by name from a folder or an uncompressed .tar.

The data may come from strangers: only regular files inside the folder are read, of at
most 1 GiB each.
"""

import os
import pathlib
import tarfile
from typing import Any, Protocol

import numpy as np

from tasks import cache
from tff_ssl.computing import inert
from tff_ssl.runtime import archives


class Source(Protocol):
  """Where the files of a data set are.

  Attributes:
    path: The folder or .tar file.
    names: Names of all files, in the best order for reading; folders are separated by
      '/'.
  """

  path: pathlib.Path
  names: tuple[str, ...]

  def read(self, name: str) -> bytes:
    """The content of a file; safe to call from several threads."""

  def stamp(self, names: tuple[str, ...]) -> str:
    """A digest that changes when one of these files does."""


# Far more than any image: a larger file is a mistake, or meant to fill the memory.
_MAX_BYTES = 2**30


class FolderSource:
  """The files of a folder and of the folders within it.

  Only regular files: reading a pipe or a device would never end. A link counts as a
  file if it leads to one in this folder.
  """

  def __init__(self, path: pathlib.Path) -> None:
    self.path = path
    self._root = os.path.realpath(path)
    found: list[str] = []
    self._list('', found)
    self.names = tuple(found)

  def _list(self, start: str, found: list[str]) -> None:
    """Adds the names of a folder's files, which begin with `start`, to those found."""
    # Strings: for 200,000 files, path objects take seconds.
    with os.scandir(f'{self.path}/{start}') as entries:
      listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
      if entry.is_file(follow_symlinks=False) or (
        entry.is_symlink() and self._leads_inside(entry)
      ):
        found.append(start + entry.name)
    for entry in listed:
      # Hidden folders hold no data; one of them is our cache.
      if entry.is_dir(follow_symlinks=False) and not entry.name.startswith('.'):
        self._list(f'{start}{entry.name}/', found)

  def _leads_inside(self, entry: os.DirEntry[str]) -> bool:
    """Returns whether a link leads to a regular file in this folder."""
    target = os.path.realpath(entry.path)
    # Not the entry's own `is_file`, which raises if links lead in a circle.
    return target.startswith(f'{self._root}/') and pathlib.Path(target).is_file()

  def read(self, name: str) -> bytes:
    """The content of a file.

    Raises:
      OSError: The file is larger than 1 GiB, or cannot be read.
    """
    path = self.path / name
    _check_size(name, path.stat().st_size)
    return path.read_bytes()

  def stamp(self, names: tuple[str, ...]) -> str:
    """A digest of the files' names, sizes and times."""
    # Strings, as above.
    stats = [os.stat(f'{self.path}/{name}') for name in names]  # noqa: PTH116
    return cache.fingerprint(
      *((n, s.st_size, s.st_mtime_ns) for n, s in zip(names, stats, strict=True))
    )


class TarSource:
  """The files of an uncompressed .tar.

  The place of each file in it is kept in the cache: reading the headers of 200,000
  files takes several seconds.
  """

  def __init__(self, path: pathlib.Path) -> None:
    self.path = path
    stat = path.stat()
    stamp = cache.fingerprint('index', stat.st_size, stat.st_mtime_ns)
    entry = cache.fetch(
      cache.root_for(path), f'{path.name}-index-{stamp}', self._write_index
    )
    self.names = tuple(entry.info['names'])
    pieces = entry.arrays['pieces'].tolist()
    self._pieces = dict(zip(self.names, pieces, strict=True))

  def _write_index(self, folder: pathlib.Path) -> dict[str, Any]:
    """Writes where each file begins and how long it is, int64 [n, 2], in bytes."""
    try:
      # Compressed archives cannot be read at random, which decoding needs.
      found = (m for m in archives.tar_members(self.path) if m.isfile())
      # Of files with the same name the last counts, as when they are unpacked.
      pieces = {m.name.removeprefix('./'): (m.offset_data, m.size) for m in found}
    except (tarfile.TarError, OSError, ValueError) as error:
      raise ValueError(
        f'{self.path} is not a readable uncompressed .tar file: {error}.'
      ) from error
    array = np.array(list(pieces.values()), np.int64).reshape(-1, 2)
    np.save(folder / 'pieces.npy', array)
    return {'names': list(pieces)}

  def read(self, name: str) -> bytes:
    """The content of a file.

    Raises:
      OSError: The file is larger than 1 GiB, or the archive ends within it.
    """
    start, size = self._pieces[name]
    _check_size(name, size)
    # Each thread needs its own handle.
    with self.path.open('rb') as file:
      file.seek(start)
      content = file.read(size)
    if len(content) != size:
      raise OSError(f'{self.path} ends within {name}')
    return content

  def stamp(self, names: tuple[str, ...]) -> str:
    """A digest of the archive's size and time, and of the files' names."""
    stat = self.path.stat()
    return cache.fingerprint(stat.st_size, stat.st_mtime_ns, names)


def _check_size(name: str, size: int) -> None:
  if size > _MAX_BYTES:
    raise OSError(f'{name} has {size:,} bytes; at most {_MAX_BYTES:,} are read')


def open_source(path: pathlib.Path) -> FolderSource | TarSource:
  """Opens a folder or .tar file.

  Args:
    path: The folder or file.

  Returns:
    Its files.

  Raises:
    ValueError: There is nothing at `path`, or it is neither.
  """
  if path.is_dir():
    return FolderSource(path)
  if path.is_file():
    return TarSource(path)
  raise ValueError(f'There is no folder or .tar file at {path}.')


def printable(name: str) -> str:
  r"""Returns a file's name as text that can be printed and written.

  Args:
    name: Name in a `Source`; see `inert.line`.
  """
  return inert.line(name)


def shallowest(source: Source, file_names: tuple[str, ...]) -> str | None:
  """The file with one of these names that is in the fewest folders, or None."""
  found = [name for name in source.names if name.rpartition('/')[2] in file_names]
  found.sort(key=lambda name: (name.count('/'), name))
  return found[0] if found else None
