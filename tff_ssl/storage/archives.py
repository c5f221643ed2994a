"""Archives that may come from strangers: sizes are checked before memory is allocated.

A small archive may unpack to more than the memory, declare a header of gigabytes, or
list millions of files. Here nothing is read in one piece but what is known to be small,
and the arrays of an `.npz` file are measured before they are read.
"""

import collections
from collections.abc import Iterator
import contextlib
import io
import math
import os
import tarfile
from typing import IO, Any, NamedTuple
import zipfile

import numpy as np

# The most that a library reads of an archive at once: the list of a zip's files, or a
# header. It lists about 100,000 files.
_MOST_AT_ONCE = 2**24
_BLOCK = 2**20


class _Capped(io.BufferedReader):
  """A file of which no large piece is read at once."""

  def read(self, size: int | None = -1) -> bytes:
    """Returns the next bytes; raises ValueError if they are too many for one piece."""
    if size is None or size < 0:
      size = os.fstat(self.fileno()).st_size - self.tell()
    if size > _MOST_AT_ONCE:
      raise ValueError(
        f'its list of files, or a header, has {size:,} bytes; it must have at most '
        f'{_MOST_AT_ONCE:,}'
      )
    return super().read(size)


def open_file(path: str | os.PathLike[str]) -> io.BufferedReader:
  """Opens an archive for a library that trusts the sizes in it."""
  return _Capped(io.FileIO(path))


@contextlib.contextmanager
def open_zip(path: str | os.PathLike[str], stored: bool) -> Iterator[zipfile.ZipFile]:
  """Opens a zip archive.

  Args:
    path: The file.
    stored: Whether all its files must be stored as they are, as our own programs do. So
      they take no more memory than the archive has bytes.

  Raises:
    ValueError: If a file is compressed though it must not be, or all files together
      have more bytes than the archive.
    OSError, zipfile.BadZipFile: If it cannot be read.
  """
  with open_file(path) as file, zipfile.ZipFile(file) as archive:
    if stored:
      _check_stored(archive, os.fstat(file.fileno()).st_size)
    yield archive


def _check_stored(archive: zipfile.ZipFile, size: int) -> None:
  entries = archive.infolist()
  for entry in entries:
    if entry.compress_type != zipfile.ZIP_STORED:
      raise ValueError(
        f'{entry.filename!r} is compressed, to {entry.file_size:,} bytes; it must be '
        'stored as it is'
      )
  # Files may overlap, so that each is no larger than the archive, but all are.
  total = sum(entry.file_size for entry in entries)
  if total > size:
    raise ValueError(f'its files have {total:,} bytes, more than its own {size:,}')


def read_member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
  """Returns a file of a zip archive.

  Args:
    archive: From `open_zip`.
    name: Name of the file.
    most: Bytes that it may have.

  Raises:
    KeyError: If there is no such file.
    ValueError: If it is larger.
  """
  entry = archive.getinfo(name)
  if entry.file_size > most:
    raise ValueError(
      f'{name} has {entry.file_size:,} bytes; it must have at most {most:,}'
    )
  with archive.open(entry) as file:
    return b''.join(iter(lambda: file.read(_BLOCK), b''))


class Header(NamedTuple):
  """What an array is, as its header says.

  Attributes:
    shape: Its shape.
    dtype: Its type; no Python objects.
    is_fortran: Whether its first axis changes fastest.
  """

  shape: tuple[int, ...]
  dtype: np.dtype
  is_fortran: bool

  @property
  def num_bytes(self) -> int:
    """Bytes that the array takes."""
    return math.prod(self.shape) * self.dtype.itemsize


class Arrays:
  """The arrays of an `.npz` file, of which none has been read.

  `open_arrays` opens it.

  Attributes:
    headers: What each array is, by name, in the order of the file.
  """

  def __init__(self, archive: zipfile.ZipFile, start: str | tuple[str, ...] = ''):
    """Reads the headers.

    Args:
      archive: From `open_zip`.
      start: The beginning, or beginnings, of the names of all arrays that count.

    Raises:
      ValueError: If a header is damaged, or promises another size than the array has.
    """
    self._archive = archive
    self._entries: dict[str, zipfile.ZipInfo] = {}
    self.headers: collections.OrderedDict[str, Header] = collections.OrderedDict()
    for entry in archive.infolist():
      name = entry.filename.removesuffix('.npy')
      if not name.startswith(start):
        continue
      if name in self.headers:
        raise ValueError(f'{name!r} is in it twice')
      self._entries[name] = entry
      with archive.open(entry) as file:
        self.headers[name] = header = _header(file)
        size = entry.file_size - file.tell()
      if size != header.num_bytes:
        raise ValueError(
          f'{name!r} has {size:,} bytes, not the {header.num_bytes:,} of '
          f'{header.dtype} {list(header.shape)}, as its header says'
        )

  def read(self, name: str) -> np.ndarray:
    """Returns an array.

    Args:
      name: One of `headers`.
    """
    header = self.headers[name]
    content = np.empty(header.num_bytes, np.uint8)
    with self._archive.open(self._entries[name]) as file:
      _header(file)
      start = 0
      while block := file.read(_BLOCK):
        content[start : start + len(block)] = np.frombuffer(block, np.uint8)
        start += len(block)
    if start != len(content):
      raise ValueError(f'{name!r} ends after {start:,} of {len(content):,} bytes')
    array = content.view(header.dtype)
    if header.is_fortran:
      return array.reshape(header.shape[::-1]).T
    return array.reshape(header.shape)


def _header(file: IO[bytes]) -> Header:
  """Reads the header of a `.npy` file.

  Raises:
    ValueError, SyntaxError, tokenize.TokenError: If it is damaged, or of a kind that
      needs more than numbers and text.
  """
  version = np.lib.format.read_magic(file)
  # Later versions have room for headers of gigabytes, which only lists of names need.
  if version != (1, 0):
    raise ValueError(f'the version of an array is {version}; it must be (1, 0)')
  shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
  if dtype.hasobject or not dtype.itemsize:
    raise ValueError(f'an array holds {dtype}; it must hold numbers or text')
  if any(size < 0 for size in shape):
    raise ValueError(f'the shape of an array is {shape}; it must not be negative')
  return Header(shape, dtype, is_fortran)


@contextlib.contextmanager
def open_arrays(
  path: str | os.PathLike[str], stored: bool, start: str | tuple[str, ...] = ''
) -> Iterator[Arrays]:
  """Opens an `.npz` file.

  Args:
    path: The file.
    stored: See `open_zip`.
    start: The beginning, or beginnings, of the names of all arrays that count.

  Raises:
    files.NPZ_ERRORS: If it is damaged, or a size is not as it must be.
  """
  with open_zip(path, stored) as archive:
    yield Arrays(archive, start)


def tar_members(path: str | os.PathLike[str]) -> Iterator[tarfile.TarInfo]:
  """Yields the members of an uncompressed `.tar`, without keeping them.

  Args:
    path: The file.

  Raises:
    ValueError, tarfile.TarError: If it is damaged, such as by a header that is large or
      leads back.
    OSError: If it cannot be read.
  """
  last = -1
  try:
    tar: Any
    with open_file(path) as file, tarfile.open(fileobj=file, mode='r:') as tar:
      while (member := tar.next()) is not None:
        # With a negative size, the next member would be one before it, without end.
        if member.size < 0 or member.offset <= last:
          raise ValueError(f'{member.name!r} has a size of {member.size} bytes')
        last = member.offset
        tar.members.clear()
        yield member
  except RecursionError as error:
    raise ValueError('its headers are nested too deeply') from error
