"""Which examples a run trained on: `examples.json` in its folder.

Runs of images in files, and of users' tables, write this file. It says of each example
of each split the name of its file (or its place in the table), its holder, its label,
and a digest of its content as it was read. It names clients, so it stays in the run
folder. With it
- a run that starts from another's weights is refused if it would be tested on what the
  other trained on (`check_unseen`), and a private one if it would train on it
  (`trained_on`);
- a run whose data have changed says what has changed (`check_same`), and can be tested
  on what is new alone (`new_to`).
"""

import collections
from collections.abc import Collection, Iterable, Mapping
import dataclasses
import json
import operator
import os
import pathlib

import numpy as np

from binaries.config import run_config
from tasks import intake
from tasks import registry
from tasks import task_types
from tff_ssl.computing import inert
from tff_ssl.computing import kinds
from tff_ssl.runs import run_config as stored_config
from tff_ssl.storage import files
from tff_ssl.storage import memory

NAME = 'examples.json'
_COLUMNS = ('name', 'holder', 'label', 'digest')
_TRAIN = 'train'
# How deep in the folder of a run an encoder may lie.
_DEEP = 3


@dataclasses.dataclass(frozen=True, slots=True)
class _Example:
  """An example as a run knows it.

  Attributes:
    split: The name of its split.
    name: The name of its file, or its place in the table.
    holder: The name of its client or case, '' if it has none.
    label: The name of its class, '' if it has none.
    digest: Digest of its content as it was read.
  """

  split: str
  name: str
  holder: str
  label: str
  digest: str


def write(folder: str | os.PathLike[str], task: task_types.Task) -> None:
  """Writes the file of a run, if its task has digests and the file does not exist.

  Args:
    folder: The run folder.
    task: The run's task.
  """
  path = pathlib.Path(folder) / NAME
  if not task.digests or path.exists():
    return
  columns: dict[str, dict[str, list[str]]] = {}
  for example in _examples(task):
    of_split = columns.setdefault(example.split, {name: [] for name in _COLUMNS})
    for name in _COLUMNS:
      of_split[name].append(getattr(example, name))
  # Not indented: that would be a fifth of the file.
  files.write(path, json.dumps(columns) + '\n')


def check_same(folder: str | os.PathLike[str], task: task_types.Task, why: str) -> None:
  """Refuses examples that are not those of a run.

  Args:
    folder: The run folder.
    task: The task as it is now.
    why: Why they must be the same, or what else can be done; the end of a sentence.

  Raises:
    ValueError: They have changed; the message counts and names what was added, removed
      or changed.
  """
  if task.fingerprint() == stored_config.read(folder).get('task'):
    return
  known = _read(folder)
  changes = f'which is not known, because it has no {NAME}'
  if known is not None:
    changes = _changes(known, task)
  raise ValueError(
    f'The data of the task {task.name!r} have changed since {folder} began: '
    f'{changes}; {why}.'
  )


def run_folder(source: str | os.PathLike[str]) -> pathlib.Path | None:
  """Returns the folder of the run that made an encoder; None: it is of no run.

  Args:
    source: A run folder, or an encoder file in it, or in that of a client or an export
      in it.
  """
  path = pathlib.Path(source).resolve()
  folders = (path, *path.parents[:_DEEP])
  return next((folder for folder in folders if _is_run(folder)), None)


def _is_run(folder: pathlib.Path) -> bool:
  path = folder / stored_config.NAME
  # Published weights may lie beside a file of this name too.
  return path.is_file() and 'config' in files.read_json(path)


def check_unseen(
  source: str | os.PathLike[str], config: run_config.RunConfig, task: task_types.Task
) -> None:
  """Refuses to test, or to choose settings, on what a run trained on.

  Copies of a picture within a data set do not count: only what was not held out there
  and is held out here. Holders count by their names if the two data sets have an
  example in common; otherwise equal names are taken for others', which is printed.

  Args:
    source: A run folder, or an encoder file in one (see `run_folder`).
    config: The run that is tested, or starts.
    task: The examples to test on.

  Raises:
    ValueError: The run trained on some of them.
  """
  path = pathlib.Path(source)
  run = run_folder(path)
  folder = run or (path if path.is_dir() else path.parent)
  stored: Mapping[str, object] = {}
  if run is not None:
    stored = stored_config.settings(stored_config.read(run)['config'])
  if not task.digests:
    _check_validation(source, stored, config, task)
    return
  known = _read(folder)
  if known is None:
    if stored.get('task') not in (None, *registry.OF_FILES):
      return
    print(
      f'{folder} has no {NAME}: what is held out here is compared with nothing that '
      f'{source} was trained on',
      flush=True,
    )
    return
  own = list(_examples(task))
  is_related = {each.digest for each in known} & {each.digest for each in own}
  trained = {each.holder for each in known if each.split == _TRAIN and each.holder}
  for split in (each for each in task.splits() if each != _TRAIN):
    moved = _moved(known, own, split)
    holders = set(_holders(task, split))
    if not holders:
      _refuse(source, task, split, {each.name for each in moved})
    elif is_related:
      leaked = {each.holder for each in moved} | (holders & trained)
      _refuse(source, task, split, leaked)
    elif both := sorted(holders & trained):
      print(
        f'{len(both):,} {split} {_unit(task)} have names of those that {source} was '
        f'trained on ({intake.some(both)}), but it knows no example of these data: '
        'they are taken for others',
        flush=True,
      )


def trained_on(folder: str | os.PathLike[str], task: task_types.Task) -> int | None:
  """Returns how many training examples of a task a run trained on, by their content.

  Args:
    folder: The run folder.
    task: The task.

  Returns:
    Their number; None if it is not known, because the task has no digests or the run no
    `examples.json`.
  """
  known = _read(folder) if task.digests else None
  if known is None:
    return None
  there = {each.digest for each in known if each.split == _TRAIN and each.digest}
  return sum(task.digests[place] in there for place in task.train.example_id.tolist())


def new_to(folder: str | os.PathLike[str], task: task_types.Task) -> task_types.Task:
  """Returns a task with those test examples alone that a run did not have.

  If cases are classified, a case that has an example that the run knew is left out.

  Args:
    folder: The run folder.
    task: A task with digests, such as the run's own with more examples.

  Raises:
    ValueError: The run has no `examples.json`, or there is no such test example.
  """
  known = _read(folder)
  if known is None:
    raise ValueError(f'{folder} has no {NAME}, which says what is new to it.')
  there = {each.digest for each in known}
  numbers = task.test.example_id.tolist()
  is_new = np.array([task.digests[number] not in there for number in numbers], bool)
  if task.case_level:
    is_new &= ~np.isin(task.test.case, task.test.case[~is_new])
  if not is_new.any():
    raise ValueError(
      f'{folder} had all {len(numbers):,} test examples of the task {task.name!r}; '
      'some must be new to it.'
    )
  return dataclasses.replace(task, test=task.test.take(np.flatnonzero(is_new)))


def _examples(task: task_types.Task) -> Iterable[_Example]:
  """Yields the examples of all splits."""
  for split, examples in task.splits().items():
    names = task.names(examples)
    holders = _holders(task, split) or [''] * len(names)
    for place, label in enumerate(examples.label.tolist()):
      yield _Example(
        split,
        inert.line(names[place]),
        holders[place],
        task.label_names[label] if label >= 0 else '',
        task.digests[int(examples.example_id[place])],
      )


def _holders(task: task_types.Task, split: str) -> list[str]:
  """Returns the names of the holders of a split, none if nobody holds anything."""
  if not task.holder_names:
    return []
  return task.names_of_holders(task.splits()[split])


def _unit(task: task_types.Task) -> str:
  """Returns what is held out as a whole."""
  if task.holder_names:
    return 'cases' if task.train.client is None else 'clients'
  return 'images' if task.files else 'rows'


def _read(folder: str | os.PathLike[str]) -> list[_Example] | None:
  """Returns what a run knows; None if it has no such file.

  Raises:
    ValueError: If the file is not as `write` writes it.
  """
  path = pathlib.Path(folder) / NAME
  if not path.is_file():
    return None
  # It grows with the data, unlike all other files of JSON that are read.
  most = max(files.MOST_JSON, memory.free() // files.JSON_PARSED)
  held = files.read_json(path, most)
  try:
    return [
      _Example(split, *map(str, cells))
      for split, columns in held.items()
      for cells in zip(*(columns[name] for name in _COLUMNS), strict=True)
    ]
  except (KeyError, TypeError, ValueError) as error:
    raise ValueError(
      f'{path} is not what a run writes ({error}); it must hold '
      f'{", ".join(_COLUMNS)} of each split, of equal lengths.'
    ) from error


def _changes(known: list[_Example], task: task_types.Task) -> str:
  """Counts and names the examples that differ from those of a run."""
  before = {each.name: each for each in known}
  now = {each.name: each for each in _examples(task)}
  both = [name for name in before if name in now]

  def differ(attribute: str) -> list[str]:
    of = operator.attrgetter(attribute)
    return [name for name in both if of(before[name]) != of(now[name])]

  unit = 'picture' if task.files else 'row'
  holder = 'case' if task.train.client is None else 'client'
  # What is said of one, and of several.
  changes = {
    ('was added', 'were added'): [name for name in now if name not in before],
    ('was removed', 'were removed'): [name for name in before if name not in now],
    ('has other content', 'have other content'): differ('digest'),
    ('has another label', 'have another label'): differ('label'),
    (f'has another {holder}', f'have another {holder}'): differ('holder'),
    ('is in another split', 'are in another split'): differ('split'),
  }
  words: list[str] = []
  for said, names in changes.items():
    if names:
      # What is counted is named once.
      count = f'{len(names):,}' if words else intake.many(len(names), unit)
      words.append(f'{count} {said[len(names) > 1]} ({intake.some(names)})')
  return ', '.join(words) or (
    f'the same {unit}s with the same content and labels are read otherwise, by another '
    'version of this program or scaled otherwise'
  )


def _moved(known: list[_Example], own: list[_Example], split: str) -> list[_Example]:
  """Returns examples of a split that a run trained on, by content.

  Of equal examples those count that are more in the held-out splits here than in those
  there, and are no further copies.
  """
  trained = {e.digest for e in known if e.split == _TRAIN}
  there = collections.Counter(e.digest for e in known)
  here = collections.Counter(e.digest for e in own)
  # Further copies, and those that were held out there.
  free = here - there
  free.update(e.digest for e in known if e.split != _TRAIN)
  names = {e.name for e in known if e.split != _TRAIN}
  moved = []
  # Those first that have the names of examples that were held out.
  for each in sorted(own, key=lambda each: each.name not in names):
    if each.split == _TRAIN or each.digest not in trained:
      continue
    free[each.digest] -= 1
    if free[each.digest] < 0 and each.split == split:
      moved.append(each)
  return moved


def _check_validation(
  source: str | os.PathLike[str],
  stored: Mapping[str, object],
  config: run_config.RunConfig,
  task: task_types.Task,
) -> None:
  """Refuses another validation share of published data, whose test split is fixed."""
  share, before = config.data.validation, stored.get('data.validation')
  if stored.get('task') == task.name and share is not None and share != before:
    raise ValueError(
      f'{source} was trained with --data=validation={kinds.value_text(before)} on the '
      f'task {task.name!r}, and this run has --data=validation={share}; it must be the '
      'same, because this run would choose by examples that the other was trained on.'
    )


def _refuse(
  source: str | os.PathLike[str],
  task: task_types.Task,
  split: str,
  leaked: Collection[str],
) -> None:
  """Raises a ValueError if anything leaked."""
  if not leaked:
    return
  total = len(set(_holders(task, split)) or task.splits()[split].label)
  raise ValueError(
    f'{source} was trained on {len(leaked):,} of the {total:,} {split} {_unit(task)} '
    f'({intake.some(sorted(leaked))}); they must be new to the encoder: give them '
    'the split train, or take weights that were not trained on them.'
  )
