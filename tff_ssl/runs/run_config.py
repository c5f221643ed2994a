"""`config.json` of a run folder: the settings of a run, compared when it resumes."""

import collections
from collections.abc import Collection, Iterator, Mapping, Sequence
import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shlex
import sys
from typing import Any

from tff_ssl.computing import processor
from tff_ssl.runs import own_modules
from tff_ssl.runs import removed
from tff_ssl.storage import files

NAME = 'config.json'
# The file that is locked by the process writing to the folder.
LOCK = 'lock'
_IDENTITY, _PROCESSOR = 'identity', 'processor'
_FIRST = ('method', 'task')
_CONFIG, _KIND = 'config', 'kind'
# Of a group norm in a run whose configuration names no groups.
_EARLIER_GROUPS = 32
# Depth of parts that hold parts, in a file that may be a stranger's.
_DEEPEST = 8
# Its folder holds links to the logs of wandb itself.
_OF_TRACKERS = ('wandb',)
_PACKAGES = ('tensorflow', 'tensorflow-federated', 'numpy')


def build(
  config: Mapping[str, object],
  task_fingerprint: str,
  free: Collection[str] = (),
  neutral: Collection[str] = (),
  command: Sequence[str] = (),
) -> collections.OrderedDict[str, Any]:
  """Returns the configuration of a run that starts now.

  Args:
    config: All that the run depends on, as JSON values; a part with several kinds is a
      mapping whose entry 'kind' names its kind.
    task_fingerprint: Identifies the task's examples.
    free: Names of settings (see `settings`) that may differ when the run is resumed,
      because no number depends on them.
    neutral: Names of settings that do not tell two methods apart: how the work is laid
      out, what is evaluated, where files are.
    command: What `python -m` runs to repeat the run, for the reader: a program and its
      arguments; empty: those of this process.

  Returns:
    `config`, `free`, `neutral`, `versions` of Python and packages, `task`, the
    `identity` of what counts, the digests of `imports` if it has parts of modules of
    one's own, and, for the reader, `processor`: what it has for bfloat16, and
    `command`.
  """
  versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
  own = settings(config)
  counting = {name: value for name, value in own.items() if not is_among(name, free)}
  digests = own_modules.used(counting)
  imports = {own_modules.STORED: digests} if digests else {}
  versioned = [versions, platform.python_version(), task_fingerprint, *imports.values()]
  built = collections.OrderedDict(
    config=config,
    free=sorted(free),
    neutral=sorted(neutral),
    versions={'python': platform.python_version(), **versions},
    task=task_fingerprint,
    identity=_digest([counting, *versioned]),
    **imports,
    **{_PROCESSOR: processor.bfloat16_units()},
    command=[*command] or [program(), *sys.argv[1:]],
  )
  # Through JSON, like the stored configuration: tuples are lists there.
  return collections.OrderedDict(files.through_json(built))


def settings(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the settings of a configuration by name.

  Args:
    config: Nested, as in config.json.

  Returns:
    The value of each field by its path, as in 'clients.learning_rate', and the kind of
    each part by the part's own path, as in 'clients'.

  Raises:
    ValueError: If parts lie in parts beyond all that programs write.
  """
  return _settings(config, '')


def _settings(config: Mapping[str, Any], prefix: str) -> dict[str, Any]:
  if prefix.count('.') > _DEEPEST:
    raise ValueError(
      f'config has {prefix[:40]!r}...; parts must be nested {_DEEPEST} deep or less.'
    )
  own: dict[str, Any] = {}
  if prefix and _KIND in config:
    own[prefix.removesuffix('.')] = config[_KIND]
  for name, value in config.items():
    if isinstance(value, Mapping):
      own.update(_settings(value, f'{prefix}{name}.'))
    elif not prefix or name != _KIND:
      own[f'{prefix}{name}'] = value
  return own


def is_among(name: str, names: Collection[str]) -> bool:
  """Returns whether a setting, or a part that it lies in, is among some names."""
  parts = name.split('.')
  return any('.'.join(parts[:k]) in names for k in range(1, len(parts) + 1))


def command(config: Mapping[str, Any]) -> str:
  """Returns the command in a configuration, as a shell takes it; '' without one."""
  recorded = config.get('command')
  if isinstance(recorded, list) and recorded:
    return shlex.join(['python', '-m', *map(str, recorded)])
  return ''


def program() -> str:
  """Returns the program that `python -m` runs, such as binaries.dcco."""
  spec = getattr(sys.modules['__main__'], '__spec__', None)
  return spec.name if spec else sys.argv[0]


def read(folder: str | os.PathLike[str]) -> dict[str, Any]:
  """Returns the configuration of a run.

  Args:
    folder: The run folder.

  Raises:
    ValueError: If there is no such folder, it is a file or not a run folder, or a link
      leads out of it.
  """
  folder = pathlib.Path(folder)
  check_is_folder(folder)
  check_contained(folder)
  return _read(folder)


def check_is_folder(folder: pathlib.Path) -> None:
  """Raises ValueError if a run folder is a file, or if there is none."""
  if folder.exists() and not folder.is_dir():
    raise ValueError(f'{folder} is a file; it must be the folder of a run')
  if not folder.is_dir():
    raise ValueError(f'{folder} is not a run: there is no such folder')


def check_contained(folder: str | os.PathLike[str]) -> None:
  """Refuses a run folder that is not all within itself; see `files.check_contained`."""
  files.check_contained(folder, _OF_TRACKERS)


def _read(folder: pathlib.Path) -> dict[str, Any]:
  path = folder / NAME
  if not path.is_file():
    raise ValueError(f'{folder} is not a run: it has no {NAME}')
  config = files.read_json(path)
  if not isinstance(config.get(_CONFIG), dict):
    raise ValueError(f"{path} does not belong to a run: it has no '{_CONFIG}'")
  encoder = config[_CONFIG].get('encoder')
  if isinstance(encoder, dict) and 'norm' in encoder:
    # Earlier releases had 32 groups and did not say so.
    groups = _EARLIER_GROUPS if encoder['norm'] == 'group' else None
    encoder.setdefault('groups', groups)
  removed.drop(config[_CONFIG])
  return config


@contextlib.contextmanager
def locked(folder: pathlib.Path, reads: bool = False) -> Iterator[None]:
  """Locks a folder for a block; the kernel unlocks it when the process ends.

  Args:
    folder: The folder. One that is only read and has no lock is used by nobody.
    reads: Whether others may read it too; nothing is then written, not even here.

  Raises:
    ValueError: If another process has locked it.
  """
  path = folder / LOCK
  if reads and not path.exists():
    yield
    return
  how = fcntl.LOCK_SH if reads else fcntl.LOCK_EX
  opening = os.O_RDONLY | os.O_NONBLOCK if reads else os.O_RDWR | os.O_CREAT
  descriptor = os.open(path, opening, 0o644)
  try:
    try:
      fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
      owner = os.pread(descriptor, 32, 0).decode() or 'unknown'
      raise ValueError(f'{folder} is in use by process {owner}') from None
    if not reads:
      os.ftruncate(descriptor, 0)
      os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    yield
  finally:
    os.close(descriptor)


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
  """Returns the configuration of a run that continues with a larger value of a setting.

  The run keeps its identity: its checkpoints and client states still belong to it.

  Args:
    stored: The one from `read`.
    config: The one from `build`.
  """
  kept = {name: stored[name] for name in (_IDENTITY, _PROCESSOR) if name in stored}
  return collections.OrderedDict(config, **kept)


def _digest(parts: object) -> str:
  text = json.dumps(parts, sort_keys=True)
  return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def check(
  folder: str | os.PathLike[str],
  config: Mapping[str, object],
  free: Collection[str] = (),
  may_grow: Collection[str] = (),
) -> None:
  """Refuses a folder that a run with this configuration cannot use.

  This makes nothing and does not need the task: it can come before data are read.

  Args:
    folder: The run folder; it need not exist.
    config: All that the run depends on, as for `build`.
    free: See `build`.
    may_grow: See `compare`.

  Raises:
    ValueError: If the folder belongs to another run or holds something else.
  """
  if (pathlib.Path(folder) / NAME).exists():
    stored = read(folder)
    now = build(config, stored.get('task', ''), free)
    compare(folder, stored, now, free, may_grow)
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
  stored: Mapping[str, Any],
  config: Mapping[str, Any],
  free: Collection[str],
  may_grow: Collection[str] = (),
) -> None:
  """Raises ValueError with the first difference between two configurations.

  Settings in both come first, and kinds before their fields: which other settings exist
  follows from the kinds. The examples come next, and then the versions, of which all
  that differ are named.

  Args:
    folder: The run folder, for the message.
    stored: The one from `read`.
    config: The one from `build`.
    free: Settings that may differ: they do not change the numbers.
    may_grow: Settings that may be larger now: they do not change the numbers that the
      run already has.
  """
  own_modules.check_same(folder, stored, config)
  before, now = settings(stored[_CONFIG]), settings(config[_CONFIG])
  shared = before.keys() & now.keys()

  def order(name: str) -> tuple[bool, bool, int, str]:
    # What the run is of comes before what follows from it.
    return name not in shared, name not in _FIRST, name.count('.'), name

  for name in sorted(before.keys() | now.keys(), key=order):
    was, is_ = before.get(name, 'absent'), now.get(name, 'absent')
    if was == is_ or is_among(name, free):
      continue
    # A run of before the setting was there.
    if was == 'absent' and is_ is None:
      continue
    if name in may_grow and is_larger(is_, was):
      continue
    raise ValueError(
      f'{folder} is a run with {name}={was}, not {name}={is_}: resume it with its '
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


def check_client(client_id: str) -> None:
  """Checks that a client's encoder can be written.

  Args:
    client_id: The client's id.

  Raises:
    ValueError: If its id cannot be the name of a folder.
  """
  if client_id in ('', '.', '..') or '/' in client_id:
    raise ValueError(f"the client '{client_id}' cannot be the name of a folder")
