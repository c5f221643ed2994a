"""`labels.json`: the names of classes, in a run folder and beside a classifier."""

from collections.abc import Iterable
import json
import os
import pathlib

from tff_ssl.storage import files

NAME = 'labels.json'


def write(folder: str | os.PathLike[str], names: Iterable[str]) -> pathlib.Path:
  """Writes the names of the classes in their order; returns the file.

  Args:
    folder: It exists.
    names: They may be a stranger's.
  """
  path = pathlib.Path(folder) / NAME
  files.write(path, json.dumps([*names], indent=2) + '\n')
  return path


def read(folder: str | os.PathLike[str]) -> tuple[str, ...]:
  """Returns the names of the classes; none if there is no such file.

  Args:
    folder: It may be a stranger's.

  Raises:
    ValueError: The file is no list of names.
  """
  path = pathlib.Path(folder) / NAME
  if not path.is_file():
    return ()
  names = files.parse_json(files.read_bytes(path, files.MOST_JSON), path)
  if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
    raise ValueError(f'{path} is no list; it must be one of names of classes.')
  return (*names,)
