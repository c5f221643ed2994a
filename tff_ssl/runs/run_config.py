"""`config.json` of a run folder: the settings of a run, compared when it resumes."""

import collections
from collections.abc import Collection, Mapping
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shlex
import sys
from typing import Any

from tff_ssl.storage import files

NAME = 'config.json'
# The file that is locked by the process writing to the folder.
LOCK = 'lock'
_IDENTITY = 'identity'
# Its folder holds links to the logs of wandb itself.
_OF_TRACKERS = ('wandb',)
_PACKAGES = ('tensorflow', 'tensorflow-federated', 'numpy')


def build(
  flags: Mapping[str, object], task_fingerprint: str, may_differ: Collection[str] = ()
) -> collections.OrderedDict[str, Any]:
  """Returns the configuration of a run that starts now.

  Args:
    flags: All settings that the run depends on, as JSON values.
    task_fingerprint: Identifies the task's examples.
    may_differ: See `compare`.

  Returns:
    `flags`, `versions` of Python and packages, `task`, the `identity` of all these, and
    `command`, for the reader: the program that `python -m` ran, and its arguments.
  """
  versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
  counting = {name: value for name, value in flags.items() if name not in may_differ}
  config = collections.OrderedDict(
    flags=dict(flags),
    versions={'python': platform.python_version(), **versions},
    task=task_fingerprint,
    identity=_digest([counting, versions, platform.python_version(), task_fingerprint]),
    command=[_program(), *sys.argv[1:]],
  )
  # Through JSON, like the stored configuration: tuples are lists there.
  return json.loads(json.dumps(config), object_pairs_hook=collections.OrderedDict)


def command(config: Mapping[str, Any]) -> str:
  """Returns the command in a configuration, as a shell takes it; '' without one."""
  recorded = config.get('command')
  if isinstance(recorded, list) and recorded:
    return shlex.join(['python', '-m', *map(str, recorded)])
  return ''


def _program() -> str:
  spec = getattr(sys.modules['__main__'], '__spec__', None)
  return spec.name if spec else sys.argv[0]


def read(folder: str | os.PathLike[str]) -> dict[str, Any]:
  """Returns the configuration of a run.

  Args:
    folder: The run folder.

  Raises:
    ValueError: If there is no such folder, it is not a run folder, or a link leads out
      of it.
  """
  folder = pathlib.Path(folder)
  if not folder.is_dir():
    raise ValueError(f'{folder} is not a run: there is no such folder')
  check_contained(folder)
  return _read(folder)


def check_contained(folder: str | os.PathLike[str]) -> None:
  """Refuses a run folder that is not all within itself; see `files.check_contained`."""
  files.check_contained(folder, _OF_TRACKERS)


def _read(folder: pathlib.Path) -> dict[str, Any]:
  path = folder / NAME
  if not path.is_file():
    raise ValueError(f'{folder} is not a run: it has no {NAME}')
  config = files.read_json(path)
  if not isinstance(config.get('flags'), dict):
    raise ValueError(f"{path} does not belong to a run: it has no 'flags'")
  return config


def identity(folder: str | os.PathLike[str]) -> str:
  """Returns the identity of a run: a digest of everything that its numbers depend on.

  Args:
    folder: The run folder.

  Returns:
    The digest; '' if there is no configuration, as in programs without one.
  """
  folder = pathlib.Path(folder)
  if not (folder / NAME).is_file():
    return ''
  return str(_read(folder).get(_IDENTITY, ''))


def with_larger_values(
  stored: Mapping[str, Any], config: Mapping[str, Any]
) -> collections.OrderedDict[str, Any]:
  """Returns the configuration of a run that continues with a larger value of a flag.

  The run keeps its identity: its checkpoints and client states still belong to it.

  Args:
    stored: The one from `read`.
    config: The one from `build`.
  """
  identity = {_IDENTITY: stored[_IDENTITY]} if _IDENTITY in stored else {}
  return collections.OrderedDict(config, **identity)


def _digest(parts: object) -> str:
  text = json.dumps(parts, sort_keys=True)
  return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def check_flags(
  folder: str | os.PathLike[str],
  flags: Mapping[str, object],
  may_differ: Collection[str] = (),
  may_grow: Collection[str] = (),
) -> None:
  """Refuses a folder that a run with these flags cannot use.

  This makes nothing and does not need the task: it can come before data are read.

  Args:
    folder: The run folder; it need not exist.
    flags: All settings that the run depends on, as JSON values.
    may_differ: See `compare`.
    may_grow: See `compare`.

  Raises:
    ValueError: If the folder belongs to another run or holds something else.
  """
  if (pathlib.Path(folder) / NAME).exists():
    stored = read(folder)
    compare(folder, stored, build(flags, stored.get('task', '')), may_differ, may_grow)
  elif pathlib.Path(folder).is_dir():
    check_unused(folder)


def check_unused(folder: str | os.PathLike[str]) -> None:
  """Raises ValueError if a folder that has no configuration holds anything.

  Files left by a run that was killed before it had a configuration do not count.

  Args:
    folder: The folder, which exists.
  """
  others = [
    path.name
    for path in pathlib.Path(folder).iterdir()
    if path.name != LOCK and not files.is_aside(path)
  ]
  if others:
    raise ValueError(
      f"{folder} holds '{min(others)}' but no {NAME}: the run folder must hold a "
      'run, be empty or be new'
    )


def compare(
  folder: str | os.PathLike[str],
  stored: Mapping[str, object],
  config: Mapping[str, object],
  may_differ: Collection[str],
  may_grow: Collection[str] = (),
) -> None:
  """Raises ValueError with the first difference between two configurations.

  Settings in both come first: which other settings exist follows from the method. The
  examples come next, and then the versions, of which all that differ are named.

  Args:
    folder: The run folder, for the message.
    stored: The one from `read`.
    config: The one from `build`.
    may_differ: Flags that may differ: they do not change the numbers.
    may_grow: Flags that may be larger now: they do not change the numbers that the run
      already has.
  """
  before, now = _section(stored, 'flags'), _section(config, 'flags')
  shared = before.keys() & now.keys()
  for name in (*sorted(shared), *sorted((before.keys() | now.keys()) - shared)):
    was, is_ = before.get(name, 'absent'), now.get(name, 'absent')
    if was == is_ or name in may_differ:
      continue
    if name in may_grow and is_larger(is_, was):
      continue
    raise ValueError(
      f'{folder} is a run with --{name}={was}, not --{name}={is_}: resume it with its '
      'own value or name another folder'
    )
  if stored.get('task') != config.get('task'):
    raise ValueError(
      f'The data have changed since {folder} began; resume it with the examples as '
      'they were, or name another folder.'
    )
  _check_versions(folder, _section(stored, 'versions'), _section(config, 'versions'))


def _check_versions(
  folder: str | os.PathLike[str],
  before: Mapping[str, object],
  now: Mapping[str, object],
) -> None:
  """Raises ValueError with all versions of packages that have changed."""
  changed = [
    f'{name} {before.get(name, "of no recorded version")} (here: '
    f'{now.get(name, "not recorded")})'
    for name in sorted(before.keys() | now.keys())
    if before.get(name) != now.get(name)
  ]
  if changed:
    raise ValueError(
      f'{folder} was made with {" and ".join(changed)}; resume it with the versions '
      'that it was made with, or name another folder.'
    )


def is_larger(value: object, other: object) -> bool:
  """Returns whether both are whole numbers, and the first is larger."""
  return isinstance(value, int) and isinstance(other, int) and value > other


def _section(config: Mapping[str, object], name: str) -> Mapping[str, object]:
  values = config.get(name)
  return values if isinstance(values, Mapping) else {}
