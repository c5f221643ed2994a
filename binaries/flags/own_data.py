"""Flags of the user's own data: what a manifest or folders mean, and what is read."""

import os
import pathlib
from typing import Any

from absl import flags

from tasks import column_names
from tasks import image_folders
from tasks import intake
from tasks import manifest
from tasks import registry
from tasks import task_types
from tff_ssl.storage import files

CLASSIFY = flags.DEFINE_enum(
  'classify',
  None,
  manifest.CLASSIFIED,
  'What is classified: each image by itself, or the images of a case together; by '
  'default cases if the manifest has the column case_id.',
)
FOLDERS = flags.DEFINE_enum(
  'folders',
  None,
  image_folders.MEANINGS,
  'For the task folder: what each folder of images is; by default nothing (none).',
)
COLUMNS = flags.DEFINE_list(
  'columns',
  None,
  "For the tasks cases and features: the table's own names of columns, as in "
  'image=Photo,client_id=Patient,label=Diagnosis; label= says that no column is the '
  'label. By default a column has its own name, whatever its case and blanks.',
)
FOLLOW_LINKS = flags.DEFINE_bool(
  'follow_links',
  None,
  'For folders of images: whether links to files and folders elsewhere are followed.',
)
STRICT = flags.DEFINE_bool(
  'strict',
  None,
  'For folders of images: whether it is an error if data or truth is lost on the way: '
  'images that cannot be read or are not listed, the same file in two splits, two '
  'spellings of one name.',
)
# The tasks for which each is.
TAKERS = {
  **{
    flag.name: registry.with_option(flag.name)
    for flag in (CLASSIFY, FOLDERS, COLUMNS, FOLLOW_LINKS)
  },
  STRICT.name: registry.OF_IMAGES,
}


def arguments() -> dict[str, Any]:
  """Returns what the flags say, as arguments of `registry.load` and `outline`.

  Raises:
    ValueError: If one is malformed.
  """
  own = None if COLUMNS.value is None else column_names.parse(COLUMNS.value)
  return {
    'classify': CLASSIFY.value,
    'folders': FOLDERS.value,
    'columns': own,
    'follow_links': bool(FOLLOW_LINKS.value),
  }


def check_intake(task: task_types.Task) -> None:
  """Refuses data that lose something, if `--strict` is given.

  Args:
    task: The task.

  Raises:
    ValueError: If a finding costs data or truth.
  """
  if STRICT.value and task.intake is not None:
    task.intake.check()


def write_intake(task: task_types.Task, folder: str | os.PathLike[str]) -> None:
  """Writes what became of the files of a task, if it is one of files.

  Args:
    task: The task.
    folder: The run folder.
  """
  if task.intake is not None:
    files.write_json(pathlib.Path(folder) / intake.FILE, task.intake.as_json())
