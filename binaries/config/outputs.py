"""What programs write: checked before the work starts."""

import os
import pathlib

from tff_ssl.runs import run_config


def check_file(name: str, path: str | None, suffix: str) -> None:
  """Refuses a file that could not be written to.

  Args:
    name: Name of the flag.
    path: Its value; None: no file is written.
    suffix: The suffix that the path must have.

  Raises:
    ValueError: If it has another suffix, or its folder does not exist.
  """
  if path is None:
    return
  if not path.endswith(suffix):
    raise ValueError(f'--{name} is {path!r}; it must end in {suffix}.')
  folder = pathlib.Path(path).parent
  if not folder.is_dir():
    raise ValueError(f'--{name} is {path!r}; there must be a folder {str(folder)!r}.')


def new_folder(out: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the folder of --out, which need not exist.

  Raises:
    ValueError: If it is a run folder, or not a folder.
  """
  folder = pathlib.Path(out)
  if (folder / run_config.NAME).exists() or folder.is_file():
    raise ValueError(f'out is {str(folder)!r}; it must be a folder, not that of a run.')
  return folder
