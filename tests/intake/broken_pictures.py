"""Breaks a folder of photographs in the ways in which people's are broken.

  python -m tests.intake.broken_pictures              # of small pictures made here
  python -m tests.intake.broken_pictures PHOTOGRAPHS  # the first 300 of a folder

prints a table of the ways, and of what is answered to each: `as meant` (each photograph
has the label, client, split and brightness that it should have), `said` (a line tells
why not), `refused` (a sentence), or `SILENT` (something is otherwise than meant, or
lost, and no line says it); if there is such a one, the exit status is 1. The first
table is that of docs/broken_pictures.md: broken_pictures_test.py compares them.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import pathlib
import re
import shutil
import sys
import tempfile

import numpy as np

from tasks import registry
from tests.intake import lists
from tests.intake import ways
from tests.intake import whole

WAYS = {'folder': ways.FOLDERS, 'cases': lists.LISTS}
_MOST = 300
_SIZE = 16
# Mean difference of the brightness, of 255, of what still is the same picture.
_SAME = 24
AS_MEANT, SAID, REFUSED, SILENT = 'as meant', 'said', 'refused', 'SILENT'
_ROOM = 150
# Lines that would also be there otherwise: counts, and what the draw of a split does.
_USUAL = re.compile(
  r'[\d,]+ files?: |images read: |.* not in the test split|.* no classifier can learn'
)


@dataclasses.dataclass(frozen=True)
class Answer:
  """What is answered to a way.

  Attributes:
    verdict: `AS_MEANT`, `SAID`, `REFUSED` or `SILENT`.
    said: The sentence or the first line, if there is one.
  """

  verdict: str
  said: str = ''


@dataclasses.dataclass(frozen=True)
class _Read:
  """What a task says of each photograph, by its name without folder and suffix."""

  meaning: dict[str, tuple[str, str, bool]]
  brightness: dict[str, np.ndarray]
  report: tuple[str, ...]
  count: int


def answers(
  files: Sequence[bytes], place: pathlib.Path
) -> Iterator[tuple[ways.Way, Answer]]:
  """Yields each way and what is answered to it.

  Args:
    files: Photographs, at least eight.
    place: An empty folder.
  """
  for task, rows in WAYS.items():
    before = read(task, whole.Folder(place / task, files).path)
    for way in rows:
      data = whole.Folder(place / 'broken' / 'data', files)
      way.apply(data)
      yield way, _ask(task, way, data, before)
      shutil.rmtree(place / 'broken')


def _ask(task: str, way: ways.Way, data: whole.Folder, before: _Read) -> Answer:
  try:
    found = read(task, data.target)
  except ValueError as error:
    return Answer(REFUSED, _shown(str(error), data))
  lines = [
    line.strip()
    for line in found.report
    if line not in before.report and not _USUAL.match(line)
  ]
  said = _shown(lines[0], data) if lines else ''
  if _is_meant(task, data, before, found) and (lines or not way.loses):
    return Answer(AS_MEANT, said)
  return Answer(SAID if lines else SILENT, said)


def read(task: str, path: pathlib.Path) -> _Read:
  """Loads a folder as programs do."""
  folders = 'class' if task == 'folder' else None
  loaded = registry.load(task, path, _SIZE, folders=folders)
  meaning, brightness, count = {}, {}, 0
  for split, examples in loaded.splits().items():
    labels = [*loaded.label_names, '']
    clients = ['' for _ in range(len(examples))]
    if examples.client is not None:
      clients = [loaded.client_names[client] for client in examples.client]
    for place, example_id in enumerate(examples.example_id.tolist()):
      name = pathlib.PurePosixPath(loaded.files.images[example_id]).stem
      label = labels[examples.label[place]]
      meaning[name] = (label, clients[place], split == 'train')
      brightness[name] = examples.image[place].mean(axis=-1)
    count += len(examples)
  return _Read(meaning, brightness, (*loaded.report, *loaded.warnings()), count)


def _is_meant(task: str, data: whole.Folder, before: _Read, found: _Read) -> bool:
  """Returns whether each photograph, and nothing else, was read as it should be."""
  if found.count != len(data.meant) or found.meaning.keys() != data.meant.keys():
    return False
  for name, (label, client, trains) in data.meant.items():
    own_label, own_client, own_trains = found.meaning[name]
    expected = before.brightness[name]
    if name in data.changed:
      picture = data.changed[name].convert('L').resize((_SIZE, _SIZE))
      expected = np.asarray(picture, np.float32)
    if (
      own_label != label
      or (task == 'cases' and own_client != client)
      or trains not in (None, own_trains)
      or np.abs(found.brightness[name] - expected).mean() > _SAME
    ):
      return False
  return True


def _shown(text: str, data: whole.Folder) -> str:
  """Returns the beginning of a text, as a cell of a table."""
  text = text.replace(str(data.path.parent), '...').replace('|', '\\|')
  return text if len(text) <= _ROOM else f'{text[:_ROOM].rsplit(" ", 1)[0]} ...'


def table(files: Sequence[bytes]) -> list[str]:
  """Returns the lines of the table of ways and answers, in Markdown."""
  lines = ['| what is wrong | answer | |', '| --- | --- | --- |']
  with tempfile.TemporaryDirectory() as place:
    for way, answer in answers(files, pathlib.Path(place)):
      said = f'`{answer.said}`' if answer.said else ''
      lines.append(f'| {way.what} | {answer.verdict} | {said} |')
  return lines


def _photographs(folder: pathlib.Path) -> list[bytes]:
  """Returns the first photographs of a folder and the folders within, as JPEGs."""
  paths = sorted(path for path in folder.rglob('*') if path.suffix.lower() == '.jpg')
  return [path.read_bytes() for path in paths[:_MOST]]


if __name__ == '__main__':
  given = sys.argv[1:]
  lines = table(_photographs(pathlib.Path(given[0])) if given else whole.pictures())
  print('\n'.join(lines))
  sys.exit(any(f'| {SILENT} |' in line for line in lines))
