"""Files that are either whole or absent, whenever the process is killed."""

from collections.abc import Iterator, Mapping
import contextlib
import json
import os
import pathlib

_ASIDE = '.aside-'


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
  """Yields a path to write to, which becomes `path` when the block ends well.

  The two have the same suffix, since some writers choose the format by it. After an
  error nothing is left; what a SIGKILL leaves, `remove_asides` removes.

  Args:
    path: The file to make or replace.
  """
  path = pathlib.Path(path)
  aside = path.with_name(f'{_ASIDE}{os.getpid()}-{path.name}')
  try:
    yield aside
    sync(aside)
    aside.replace(path)
  finally:
    aside.unlink(missing_ok=True)


def sync(path: str | os.PathLike[str]) -> None:
  """Makes what was written to a file, or renamed in a folder, durable."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def remove_asides(folder: str | os.PathLike[str]) -> None:
  """Removes what killed processes left in a folder that nobody else writes to."""
  for aside in pathlib.Path(folder).glob(f'{_ASIDE}*'):
    aside.unlink(missing_ok=True)


def is_aside(path: pathlib.Path) -> bool:
  """Returns whether the file is one that `atomic` had not finished."""
  return path.name.startswith(_ASIDE)


def write_json(path: str | os.PathLike[str], value: Mapping[str, object]) -> None:
  """Writes a JSON file, indented, in the order of the keys given."""
  with atomic(path) as aside:
    aside.write_text(json.dumps(value, indent=2) + '\n')
