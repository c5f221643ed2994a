"""Files that are either complete or absent, whenever the process is killed."""

import collections
from collections.abc import Iterator, Mapping
import contextlib
import json
import lzma
import os
import pathlib
import shutil
import tempfile
import tokenize
from typing import Any
import zipfile
import zlib

_ASIDE = '.aside-'
# What Python's `zipfile` raises while it reads a damaged archive: NotImplementedError
# for a wrong version or method, RuntimeError for a file that says it is encrypted.
ZIP_ERRORS = (
  OSError,
  EOFError,
  RuntimeError,
  ValueError,
  lzma.LZMAError,
  zipfile.BadZipFile,
  zlib.error,
)
# What NumPy raises while it reads a damaged .npy file: it parses the header, which is
# the text of a dictionary. An empty file raises EOFError.
NPY_ERRORS = (OSError, EOFError, ValueError, SyntaxError, tokenize.TokenError)
# An archive of such files.
NPZ_ERRORS = (*ZIP_ERRORS, *NPY_ERRORS)


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
  """Yields a path to write to, which becomes `path` when the block succeeds.

  Both paths have the same suffix because some writers choose the format by it. After an
  error nothing is left; `remove_asides` removes what a SIGKILL leaves.

  Args:
    path: The file to make or replace.

  Raises:
    OSError: If the file cannot be written, such as when the disk is full; it names the
      file.
  """
  path = pathlib.Path(path)
  aside = path.with_name(f'{_ASIDE}{os.getpid()}-{path.name}')
  try:
    yield aside
    sync(aside)
    aside.replace(path)
  except OSError as error:
    if error.errno is None or error.filename not in (None, aside, str(aside)):
      raise
    raise OSError(error.errno, error.strerror, str(path)) from error
  finally:
    aside.unlink(missing_ok=True)


@contextlib.contextmanager
def temporary_in(folder: str | os.PathLike[str]) -> Iterator[None]:
  """Puts the block's temporary files, other libraries' too, into a folder.

  When Keras saves a model, it also writes temporary files in TMPDIR, where they would
  remain after a SIGKILL. `remove_asides` removes what is left in this folder. Not for
  two threads at once: the place of temporary files is one setting of the process.

  Args:
    folder: It exists, and only this process writes to it.
  """
  before = tempfile.tempdir
  with tempfile.TemporaryDirectory(prefix=_ASIDE, dir=folder) as inner:
    tempfile.tempdir = inner
    try:
      yield
    finally:
      tempfile.tempdir = before


def sync(path: str | os.PathLike[str]) -> None:
  """Makes writes to a file, or renames in a folder, durable."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def remove_asides(folder: str | os.PathLike[str]) -> None:
  """Removes what killed processes left in a folder that nobody else writes to."""
  for aside in pathlib.Path(folder).glob(f'{_ASIDE}*'):
    if aside.is_dir() and not aside.is_symlink():
      shutil.rmtree(aside)
    else:
      aside.unlink(missing_ok=True)


def is_aside(path: pathlib.Path) -> bool:
  """Returns whether the file is one that `atomic` has not finished."""
  return path.name.startswith(_ASIDE)


def read_json(path: str | os.PathLike[str]) -> 'collections.OrderedDict[str, Any]':
  """Reads a JSON file that holds an object and may come from a stranger.

  Args:
    path: The file.

  Returns:
    Its values by name, in the order of the file.

  Raises:
    ValueError: If the file is not JSON or holds no object; the message names it.
    OSError: If it cannot be read.
  """
  text = pathlib.Path(path).read_bytes()
  try:
    value = json.loads(text, object_pairs_hook=collections.OrderedDict)
  except (ValueError, RecursionError) as error:
    raise ValueError(f'{path} is not JSON: {error}') from error
  if not isinstance(value, collections.OrderedDict):
    raise ValueError(f'{path} holds a {type(value).__name__}: it must hold an object')
  return value


def write_json(path: str | os.PathLike[str], value: Mapping[str, object]) -> None:
  """Writes a JSON file, indented, in the order of the keys given."""
  with atomic(path) as aside:
    aside.write_text(json.dumps(value, indent=2) + '\n')


def check_folder(path: str | os.PathLike[str]) -> None:
  """Refuses a folder that cannot be made; removes any folders made for this check.

  Args:
    path: The folder, which may exist.

  Raises:
    OSError: If it, or a folder above it, is a file or may not be made.
  """
  path = pathlib.Path(path)
  missing = [each for each in (path, *path.parents) if not each.exists()]
  try:
    path.mkdir(parents=True, exist_ok=True)
  finally:
    for each in missing:
      # A folder that another process has begun to use remains.
      with contextlib.suppress(OSError):
        each.rmdir()
