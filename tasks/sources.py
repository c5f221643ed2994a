"""Reads files by name from a folder or an uncompressed .tar.

The data may come from strangers: only regular files inside the folder are read, of at
most 1 GiB each, unless the user says that links may be followed.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
import os
import pathlib
import tarfile
from typing import Any, Protocol

import numpy as np

from tasks import cache
from tasks import ignored_files
from tasks import tar_index
from tff_ssl.computing import inert
from tff_ssl.storage import archives


class Source(Protocol):
  """Where the files of a data set are.

  Attributes:
    path: The folder or .tar file.
    names: Names of all files to read, in the best order for reading; folders are
      separated by '/'.
    aside: Names of all others by why they are not read (`left_out.DEBRIS`, ...).
      Whatever is no folder is a file here. Our own cache does not count.
    empty: Names of the folders that have nothing in them.
  """

  path: pathlib.Path
  names: tuple[str, ...]
  aside: Mapping[str, Sequence[str]]
  empty: Sequence[str]

  def read(self, name: str, most: int | None = None) -> bytes:
    """The content of a file, or its first bytes; safe to call from several threads."""

  def stamp(self, names: tuple[str, ...]) -> str:
    """A digest that changes when one of these files does."""


# Far more than any image: a larger file is a mistake, or meant to fill the memory.
_MAX_BYTES = 2**30


class FolderSource:
  """The files of a folder and of the folders within it.

  Only regular files: reading a pipe or a device would never end. A link counts as a
  file if it leads to one in this folder.
  """

  def __init__(self, path: pathlib.Path, follow_links: bool = False) -> None:
    """Lists the files.

    Args:
      path: The folder.
      follow_links: Whether links to files and folders elsewhere count as these. No
        folder is entered twice, so that links in a circle end.
    """
    self.path = path
    self._root = os.path.realpath(path)
    self._follow = follow_links
    self._entered = {self._root}
    self._linked: list[tuple[str, str]] = []
    names: list[str] = []
    aside: dict[str, list[str]] = collections.defaultdict(list)
    empty: list[str] = []
    self._list('', self._root, names, aside, empty)
    # After all real folders, so that a link to one of these does not take its place.
    for name, target in self._linked:
      if target in self._entered:
        aside[ignored_files.AGAIN].append(name)
      else:
        self._list(f'{name}/', target, names, aside, empty)
    self.names = tuple(names)
    self.aside: Mapping[str, Sequence[str]] = dict(aside)
    self.empty: Sequence[str] = empty

  def _list(
    self,
    start: str,
    real: str,
    names: list[str],
    aside: dict[str, list[str]],
    empty: list[str],
  ) -> None:
    """Adds what a folder holds, and the folders in it.

    Args:
      start: Beginning of the names of what it holds.
      real: Its path without links.
      names: Files to read, to which is added; likewise below.
      aside: Others, by why they are not read.
      empty: Folders that have nothing in them.
    """
    folders = [(start, real, False)]
    while folders:
      start, real, is_debris = folders.pop()
      self._entered.add(real)
      inner = []
      listed = self._entries(start, is_debris)
      # Strings: for 200,000 files, path objects take seconds.
      for entry in listed:
        name = start + entry.name
        if entry.is_dir(follow_symlinks=False):
          place = f'{real}/{entry.name}'
          if place in self._entered:
            aside[ignored_files.AGAIN].append(name)
          else:
            debris = is_debris or ignored_files.is_debris_folder(entry.name)
            inner.append((f'{name}/', place, debris))
          continue
        why = ignored_files.DEBRIS if is_debris else self._why_aside(entry, name)
        if why is None:
          names.append(name)
        elif why:
          aside[why].append(name)
      if start and not listed and not is_debris:
        empty.append(start.rstrip('/'))
      # Those at the end are the next.
      folders += reversed(inner)

  def _entries(self, start: str, is_debris: bool) -> list[os.DirEntry[str]]:
    """Returns what a folder holds, sorted by name."""
    try:
      with os.scandir(f'{self.path}/{start}') as entries:
        # Our own cache is no part of the data.
        listed = [entry for entry in entries if entry.name != cache.FOLDER]
    except PermissionError:
      if not is_debris:
        raise
      return []
    return sorted(listed, key=lambda entry: entry.name)

  def _why_aside(self, entry: os.DirEntry[str], name: str) -> str | None:
    """Returns why an entry is not read; None if it is, '' if it is entered later."""
    if ignored_files.is_debris_file(entry.name):
      return ignored_files.DEBRIS
    if not entry.is_symlink():
      return None if entry.is_file(follow_symlinks=False) else ignored_files.SPECIAL
    target = pathlib.Path(os.path.realpath(entry.path))
    inside = f'{target}/'.startswith(f'{self._root}/')
    # Not the entry's own methods, which raise if links lead in a circle.
    if target.is_file():
      return None if inside or self._follow else ignored_files.LINKED
    if not target.is_dir():
      return ignored_files.SPECIAL if target.exists() else ignored_files.BROKEN
    if ignored_files.is_debris_folder(entry.name):
      return ignored_files.DEBRIS
    if inside:
      return ignored_files.AGAIN
    if not self._follow:
      return ignored_files.LINKED
    self._linked.append((name, str(target)))
    return ''

  def read(self, name: str, most: int | None = None) -> bytes:
    """The content of a file, or its first bytes.

    Raises:
      OSError: The file is larger than 1 GiB, or cannot be read.
    """
    return _content(self.path, name, most)

  def stamp(self, names: tuple[str, ...]) -> str:
    """A digest of the files' names, sizes and times."""
    return _stamp(self.path, names)


class FileSource:
  """A single file, as that of a folder that has no other."""

  def __init__(self, path: pathlib.Path) -> None:
    self.path = path
    self.names: tuple[str, ...] = (path.name,)
    self.aside: Mapping[str, Sequence[str]] = {}
    self.empty: Sequence[str] = ()

  def read(self, name: str, most: int | None = None) -> bytes:
    """The content of the file, or its first bytes.

    Raises:
      OSError: It is larger than 1 GiB, or cannot be read.
    """
    return _content(self.path.parent, name, most)

  def stamp(self, names: tuple[str, ...]) -> str:
    """A digest of the file's name, size and time."""
    return _stamp(self.path.parent, names)


class TarSource:
  """The files of an uncompressed .tar.

  The place of each file in it is kept in the cache: reading the headers of 200,000
  files takes several seconds.
  """

  def __init__(self, path: pathlib.Path) -> None:
    self.path = path
    stat = path.stat()
    stamp = cache.fingerprint('index of plain names', stat.st_size, stat.st_mtime_ns)
    entry = cache.fetch(
      cache.root_for(path), f'{path.name}-index-{stamp}', self._write_index
    )
    pieces = entry.arrays['pieces'].tolist()
    self._pieces = dict(zip(entry.info['names'], pieces, strict=True))
    listed = {'': list(self._pieces), **entry.info['aside']}
    own = {
      why: [name for name in names if not ignored_files.is_debris(name)]
      for why, names in listed.items()
    }
    self.names = tuple(own.pop(''))
    debris = [
      n for names in listed.values() for n in names if ignored_files.is_debris(n)
    ]
    self.aside: Mapping[str, Sequence[str]] = {**own, ignored_files.DEBRIS: debris}
    self.empty: Sequence[str] = entry.info['empty']

  def _write_index(self, folder: pathlib.Path) -> dict[str, Any]:
    """Writes where each file begins and how long it is, int64 [n, 2], in bytes."""
    try:
      # Compressed archives cannot be read at random, which decoding needs.
      members = archives.tar_members(self.path)
      pieces, aside, empty = tar_index.build(members)
    except (tarfile.TarError, OSError, ValueError) as error:
      raise ValueError(
        f'{self.path} is not a readable uncompressed .tar file: {error}.'
      ) from error
    array = np.array(list(pieces.values()), np.int64).reshape(-1, 2)
    np.save(folder / 'pieces.npy', array)
    return {'names': list(pieces), 'aside': aside, 'empty': empty}

  def read(self, name: str, most: int | None = None) -> bytes:
    """The content of a file, or its first bytes.

    Raises:
      OSError: The file is larger than 1 GiB, or the archive ends within it.
    """
    start, size = self._pieces[name]
    size = size if most is None else min(size, most)
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


def _content(folder: pathlib.Path, name: str, most: int | None) -> bytes:
  """Returns the content of a file of a folder, or its first bytes."""
  # A string: for 200,000 files without a suffix, path objects take seconds.
  with open(f'{folder}/{name}', 'rb', buffering=0) as file:  # noqa: PTH123
    if most is None:
      _check_size(name, os.fstat(file.fileno()).st_size)
    return file.read(-1 if most is None else most)


def _stamp(folder: pathlib.Path, names: tuple[str, ...]) -> str:
  """Returns a digest of names, sizes and times of files of a folder."""
  # Strings: for 200,000 files, path objects take seconds.
  stats = [os.stat(f'{folder}/{name}') for name in names]  # noqa: PTH116
  return cache.fingerprint(
    *((n, s.st_size, s.st_mtime_ns) for n, s in zip(names, stats, strict=True))
  )


def _check_size(name: str, size: int) -> None:
  if size > _MAX_BYTES:
    raise OSError(f'{name} has {size:,} bytes; at most {_MAX_BYTES:,} are read')


def data_path(
  task: str, data_dir: str | os.PathLike[str] | None, what: str
) -> pathlib.Path:
  """Returns where the data of a task are.

  Args:
    task: Name of the task.
    data_dir: What the user says.
    what: What it must be.

  Raises:
    ValueError: The user says nothing.
  """
  if data_dir is None:
    raise ValueError(f'Task {task} needs data_dir: {what}.')
  return pathlib.Path(data_dir).expanduser()


def open_source(
  path: pathlib.Path, follow_links: bool = False
) -> FolderSource | TarSource:
  """Opens a folder or .tar file.

  Args:
    path: The folder or file.
    follow_links: Whether links that lead out of a folder are followed.

  Returns:
    Its files.

  Raises:
    ValueError: There is nothing at `path`, or it is neither.
  """
  if path.is_dir():
    return FolderSource(path, follow_links)
  if path.is_file():
    if (advice := ignored_files.what_to_do(path.name)) is not None:
      raise ValueError(
        f'{path} is a file; images must be in a folder or .tar: {advice}.'
      )
    return TarSource(path)
  raise ValueError(f'There is no folder or .tar file at {path}.')


def texts(where: str, what: str, names: Iterable[str]) -> dict[str, str]:
  """Returns each name as text; see `inert.line`.

  Args:
    where: What to call their place in errors.
    what: What they are, in the plural.
    names: The names.

  Raises:
    ValueError: The text of two names is the same: in one there is a character of which
      the other has the escape.
  """
  of_text: dict[str, str] = {}
  for name in sorted({*names}):
    other = of_text.setdefault(inert.line(name), name)
    if other != name:
      raise ValueError(
        f'{where} has the {what} {other!a} and {name!a}, which would be '
        'written alike; rename one of them.'
      )
  return {name: text for text, name in of_text.items()}


def shallowest(source: Source, file_names: tuple[str, ...]) -> str | None:
  """The file with one of these names that is in the fewest folders, or None.

  Args:
    source: The files.
    file_names: The names, the best one first; their case counts only among equals.
  """
  lower = [name.lower() for name in file_names]
  candidates = []
  for name in source.names:
    last = name.rpartition('/')[2]
    if last.lower() in lower:
      exact = last in file_names
      candidates.append((name.count('/'), lower.index(last.lower()), not exact, name))
  return min(candidates)[-1] if candidates else None
