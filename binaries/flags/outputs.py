"""Flags that name inputs and outputs of programs: run folders, pages, figures."""

import pathlib

from absl import flags

from binaries.flags import paths
from tff_ssl.runs import run_config

RUN = paths.define('run', None, 'Folder of the run.')
RUNS = paths.define_list(
  'runs',
  None,
  "For compare: run folders, or patterns of them such as 'runs/*'.",
)
OUT = paths.define(
  'out',
  None,
  'What is written: by compare a folder, by default runs/comparison; by export and '
  'embed a folder.',
)
TO = flags.DEFINE_list(
  'to',
  None,
  'Formats to write: for export some of keras, savedmodel, tflite, onnx and '
  'tflite_training, by default keras,savedmodel,tflite; for embed some of parquet and '
  'csv, by default both.',
)
PLOT = paths.define('plot', None, 'PNG file for a figure of the printed result.')


def check(flag: flags.FlagHolder[str | None], suffix: str) -> None:
  """Refuses a path that could not be written to, before the work starts.

  Args:
    flag: A flag that names a file, or has no value.
    suffix: The suffix that the path must have.

  Raises:
    ValueError: If it has another suffix, or its folder does not exist.
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
  """Returns the folder of --out, which must be given; it need not exist.

  Raises:
    ValueError: If it is a run folder, or not a folder.
  """
  folder = pathlib.Path(OUT.value)
  if (folder / run_config.NAME).exists() or folder.is_file():
    raise ValueError(f'out is {str(folder)!r}; it must be a folder, not that of a run.')
  return folder
