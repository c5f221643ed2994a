"""Flags that name what programs read and write: run folders, pages, figures."""

import pathlib

from absl import flags

from binaries.flags import paths
from tff_ssl.runtime import run_config

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
  'page, by default docs/claims.md, next to the folder with its figures; of export '
  'and embed a folder; of race the page, by default docs/benchmarks.md; of '
  'linear_theory a PNG file, next to which it leaves a .csv.',
)
TO = flags.DEFINE_list(
  'to',
  None,
  'Formats that are written: of export some of keras, savedmodel, tflite, onnx and '
  'tflite_training, by default keras,savedmodel,tflite; of embed some of parquet and '
  'csv, by default both.',
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


def new_folder() -> pathlib.Path:
  """Returns the folder of --out, which is given; it need not exist.

  Raises:
    ValueError: If it is that of a run, or something else.
  """
  folder = pathlib.Path(OUT.value)
  if (folder / run_config.NAME).exists() or folder.is_file():
    raise ValueError(f'out is {str(folder)!r}; it must be a folder, not that of a run.')
  return folder
