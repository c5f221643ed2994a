"""Files that are either complete or absent, whenever the process is killed."""

import collections
from collections.abc import Collection, Iterator, Mapping
import contextlib
import hashlib
import json
import lzma
import os
import pathlib
import shutil
import stat
import tempfile
import tokenize
from typing import Any
import zipfile
import zlib

_ASIDE = '.aside-'
# Bytes of the largest JSON file that is read: those of a run have some thousand.
MOST_JSON = 2**24
# Bytes that JSON takes once it is parsed, at most, for each of its own.
JSON_PARSED = 20
# An empty list takes 3 bytes, and 70 or more once it is parsed: there may be one list
# or object for so many bytes that a file may have.
_BYTES_A_PART = 16
# How deep lists and objects may be nested: those of a Keras model are some ten deep.
_DEEPEST = 64
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


def read_json(path: str | os.PathLike[str], most: int = MOST_JSON) -> dict[str, Any]:
  """Reads a JSON file that holds an object and may come from a stranger.

  Args:
    path: The file.
    most: Bytes that it may have.

  Returns:
    Its values by name, in the order of the file.

  Raises:
    ValueError: If the file is too large, is not JSON or holds no object; the message
      names it.
    OSError: If it cannot be read.
  """
  value = parse_json(read_bytes(path, most), path, most)
  if not isinstance(value, dict):
    raise ValueError(f'{path} holds a {type(value).__name__}: it must hold an object')
  return value


def parse_json(
  content: bytes, name: str | os.PathLike[str], most: int = MOST_JSON
) -> Any:
  """Returns the value of JSON that may come from a stranger.

  Args:
    content: The JSON.
    name: What to call it in errors.
    most: Bytes that it may have.

  Raises:
    ValueError: If it is too large, has too many parts, is nested too deeply or has a
      name twice, or is not JSON.
  """
  if len(content) > most:
    raise ValueError(
      f'{name} has {len(content):,} bytes: it must have at most {most:,}'
    )
  if (parts := content.count(b'[') + content.count(b'{')) > most // _BYTES_A_PART:
    raise ValueError(
      f'{name} has {parts:,} lists and objects: it must have at most '
      f'{most // _BYTES_A_PART:,}'
    )
  try:
    value = json.loads(content, object_pairs_hook=_unique)
  except (ValueError, RecursionError) as error:
    raise ValueError(f'{name} is not JSON: {error}') from error
  level: list[Any] = [[value]]
  for _ in range(_DEEPEST + 1):
    inner = (v.values() if isinstance(v, dict) else v for v in level)
    level = [each for v in inner for each in v if isinstance(each, dict | list)]
  if level:
    raise ValueError(f'{name} has lists in lists: they must be {_DEEPEST} deep or less')
  return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  """Returns a JSON object whose names are unique: readers disagree on others."""
  result = dict(pairs)
  if len(result) < len(pairs):
    name = collections.Counter(name for name, _ in pairs).most_common(1)[0][0]
    raise ValueError(f'{name[:60]!r} is there twice')
  return result


def through_json(value: object) -> Any:
  """Returns a value of ours as a file of JSON has it, such as lists for tuples."""
  return json.loads(json.dumps(value))


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
  """Reads a file that may come from a stranger.

  Args:
    path: The file; a pipe, which may never end, is refused, and so is a device.
    most: Bytes that it may have.

  Raises:
    ValueError: If it is no regular file, or is larger.
    OSError: If it cannot be read.
  """
  # A pipe blocks until somebody writes to it, unless it is opened like this.
  descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
  # Python makes no file of a folder's descriptor, and would leave it open.
  try:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
      raise ValueError(f'{path} is a folder, pipe or device: it must be a file')
    if status.st_size > most:
      raise ValueError(
        f'{path} has {status.st_size:,} bytes: it must have at most {most:,}'
      )
    with os.fdopen(descriptor, 'rb', closefd=False) as file:
      # Files of the kernel have no size, and no end.
      return file.read(most)
  finally:
    os.close(descriptor)


def check_contained(
  folder: str | os.PathLike[str], except_in: Collection[str] = ()
) -> None:
  """Refuses a folder with links that lead out of it, or with pipes or devices.

  The folder may come from a stranger. Whoever reads or writes its files by name would
  follow such links.

  Args:
    folder: The folder; it may itself be a link, which the user has named.
    except_in: Names of folders, at any depth, in which programs of ours neither read
      nor write.

  Raises:
    ValueError: If it holds such a thing, which is named.
  """
  root = os.path.realpath(folder)
  waiting = [root]
  while waiting:
    # Strings: there may be a folder for each of many clients.
    for entry in _entries(waiting.pop()):
      if entry.is_symlink():
        target = os.path.realpath(entry.path)
        if not target.startswith(f'{root}/'):
          raise ValueError(
            f'{entry.path} is a link to {target}: links must not lead out of {folder}'
          )
      elif entry.is_dir(follow_symlinks=False):
        if entry.name not in except_in:
          waiting.append(entry.path)
      elif not entry.is_file(follow_symlinks=False):
        raise ValueError(f'{entry.path} is a pipe or device: it must be a file')


def _entries(folder: str) -> list[os.DirEntry[str]]:
  """Returns what is in a folder; nothing if another process has removed it."""
  try:
    with os.scandir(folder) as entries:
      return list(entries)
  except FileNotFoundError:
    return []


def write(path: str | os.PathLike[str], content: bytes | str) -> None:
  """Writes a file, text as UTF-8; see `atomic`."""
  with atomic(path) as aside:
    aside.write_bytes(content.encode() if isinstance(content, str) else content)


def sha256(path: str | os.PathLike[str]) -> str:
  """Returns the digest of a file, in hexadecimal."""
  with pathlib.Path(path).open('rb') as file:
    return hashlib.file_digest(file, 'sha256').hexdigest()


def write_json(path: str | os.PathLike[str], value: Mapping[str, object]) -> None:
  """Writes a JSON file, indented, in the order of the keys given."""
  write(path, json.dumps(value, indent=2) + '\n')


def check_folder(path: str | os.PathLike[str]) -> None:
  """Refuses a folder that cannot be made; removes any folders made for this check.

  Args:
    path: The folder, which may exist.

  Raises:
    ValueError: If it, or a folder above it, is a file.
    OSError: If it may not be made.
  """
  path = pathlib.Path(path)
  missing = [each for each in (path, *path.parents) if not each.exists()]
  for each in (path, *path.parents):
    if each.exists() and not each.is_dir():
      raise ValueError(f'{each} is a file; it must be a folder')
  try:
    path.mkdir(parents=True, exist_ok=True)
  finally:
    for each in missing:
      # A folder that another process has begun to use remains.
      with contextlib.suppress(OSError):
        each.rmdir()
