"""Flags that name what programs read and write: run folders, pages, figures."""

import pathlib

from absl import flags

from binaries.flags import paths

RUN = paths.define('run', None, 'Folder of the run.')
RUNS = paths.define_list(
  'runs',
  None,
  "Of compare: run folders, or patterns of them such as 'runs/*'. Of study: run "
  'folders. Of claims: the folder of its run folders, by default runs/claims.',
)
OUT = paths.define(
  'out',
  None,
  'What is written: of compare a folder, by default runs/comparison; of study a '
  'folder, by default runs/study; of claims the '
  'page, by default docs/claims.md, next to the folder with its figures; of '
  'linear_theory a PNG file, next to which it leaves a .csv.',
)
PLOT = paths.define('plot', None, 'PNG file for a figure of what is printed.')


def check(flag: flags.FlagHolder[str | None], suffix: str) -> None:
  """Refuses a path that could not be written to, before the work and not after it.

  Args:
    flag: Names a file, or has no value.
    suffix: What the path must end in.

  Raises:
    ValueError: If it ends in something else, or in a folder that does not exist.
  """
  path = flag.value
  if path is None:
    return
  if not path.endswith(suffix):
    raise ValueError(f'--{flag.name} is {path!r}; it must end in {suffix}.')
  folder = pathlib.Path(path).parent
  if not folder.is_dir():
    raise ValueError(
      f'--{flag.name} is {path!r}; there must be a folder {str(folder)!r}.'
    )
