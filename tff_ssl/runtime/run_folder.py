"""One run is one folder, and one process at a time writes to it.

config.json      flags, versions and the task's fingerprint; made once, then compared
metrics.csv      a row per round; deterministic numbers only: equal runs, equal bytes
system.csv       seconds and memory per round
tensorboard/     the numbers of both tables
evaluation.json  the latest evaluation
checkpoints/     the states after the last rounds that were saved
encoder.keras    the final encoder, with encoder.json as its card
worker.log       what the worker process printed
"""

import collections
from collections.abc import Collection, Mapping
import fcntl
import importlib.metadata
import json
import os
import pathlib
import platform
import types
from typing import Self

import tensorflow as tf

from tff_ssl.runtime import checkpoints
from tff_ssl.runtime import files
from tff_ssl.runtime import table

_PACKAGES = ('tensorflow', 'tensorflow-federated', 'numpy')
_CONFIG = 'config.json'
_LOCK = 'lock'


class RunFolder:
  """An open run folder, locked until `close`; also a context manager."""

  def __init__(
    self,
    path: str | os.PathLike[str],
    flags: Mapping[str, object],
    task_fingerprint: str = '',
    may_differ: Collection[str] = (),
  ):
    """Makes a new folder or goes on with one that was made with the same settings.

    Args:
      path: The folder; made when missing.
      flags: All settings that the run depends on, as JSON values.
      task_fingerprint: Identifies the task's examples.
      may_differ: Flags that do not change the numbers and may change on resuming, such
        as where the data lie.

    Raises:
      ValueError: If the folder is in use, holds something else, or belongs to a run
        with other settings; the first difference is named.
    """
    self.path = pathlib.Path(path)
    self.path.mkdir(parents=True, exist_ok=True)
    self._lock = _lock(self.path)
    try:
      files.remove_asides(self.path)
      self._check_or_write_config(flags, task_fingerprint, may_differ)
      self.checkpoints = checkpoints.Checkpoints(self.path / 'checkpoints')
      self.metrics = table.Table(self.path / 'metrics.csv')
      self.system = table.Table(self.path / 'system.csv')
    except BaseException:
      os.close(self._lock)
      raise
    self._summaries: tf.summary.SummaryWriter | None = None
    self._closed = False

  @property
  def worker_log(self) -> pathlib.Path:
    """Where the worker's output goes: `context.local(log_path=...)`."""
    return self.path / 'worker.log'

  def record(
    self,
    round: int,
    metrics: Mapping[str, int | float],
    system: Mapping[str, int | float],
  ) -> None:
    """Writes the numbers of a round to the tables and to TensorBoard.

    Args:
      round: The round they belong to.
      metrics: Deterministic numbers.
      system: Seconds and memory.
    """
    self.metrics.append(round, metrics)
    self.system.append(round, system)
    # tf.summary itself: `tff.program.TensorBoardReleaseManager` needs an event loop,
    # which a notebook already runs and does not lend.
    if self._summaries is None:
      self._summaries = tf.summary.create_file_writer(str(self.path / 'tensorboard'))
    with self._summaries.as_default(step=round):
      for group, values in (('metrics', metrics), ('system', system)):
        for name, value in values.items():
          tf.summary.scalar(f'{group}/{name}', value)

  def write_evaluation(self, round: int, evaluation: Mapping[str, float]) -> None:
    """Writes `evaluation.json`.

    Args:
      round: The round whose state was evaluated.
      evaluation: Named numbers.
    """
    files.write_json(self.path / 'evaluation.json', {'round': round, **evaluation})

  def save_encoder(self, encoder: tf.keras.Model, card: Mapping[str, object]) -> None:
    """Writes the encoder and its card; the card last, so that it vouches for both.

    Args:
      encoder: Images to encodings.
      card: JSON values that say what the encoder is and where it comes from.
    """
    with files.atomic(self.path / 'encoder.keras') as aside:
      encoder.save(aside)
    files.write_json(self.path / 'encoder.json', card)

  def close(self) -> None:
    """Finishes the TensorBoard file and gives the folder free; idempotent."""
    if self._closed:
      return
    self._closed = True
    if self._summaries is not None:
      self._summaries.close()
    os.close(self._lock)

  def __enter__(self) -> Self:
    return self

  def __exit__(
    self,
    exception_type: type[BaseException] | None,
    exception: BaseException | None,
    traceback: types.TracebackType | None,
  ) -> None:
    self.close()

  def _check_or_write_config(
    self,
    flags: Mapping[str, object],
    task_fingerprint: str,
    may_differ: Collection[str],
  ) -> None:
    config = collections.OrderedDict(
      flags=dict(flags), versions=_versions(), task=task_fingerprint
    )
    path = self.path / _CONFIG
    if not path.exists():
      others = sorted(entry.name for entry in self.path.iterdir())
      others = [name for name in others if name != _LOCK]
      if others:
        raise ValueError(
          f"{self.path} holds '{others[0]}' but no {_CONFIG}: "
          'the run folder must be a run, empty or new'
        )
      files.write_json(path, config)
      return
    try:
      stored = json.loads(path.read_text())
    except json.JSONDecodeError as error:
      raise ValueError(f'{path} is not JSON: {error}') from error
    # Through JSON, as the stored one has been: tuples are lists there.
    _compare(self.path, stored, json.loads(json.dumps(config)), may_differ)


def _lock(folder: pathlib.Path) -> int:
  """Returns a locked descriptor; the kernel unlocks it when the process ends."""
  descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    owner = os.pread(descriptor, 32, 0).decode() or 'unknown'
    os.close(descriptor)
    raise ValueError(f'{folder} is in use by process {owner}') from None
  os.ftruncate(descriptor, 0)
  os.pwrite(descriptor, str(os.getpid()).encode(), 0)
  return descriptor


def _versions() -> dict[str, str]:
  versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
  return {'python': platform.python_version(), **versions}


def _compare(
  folder: pathlib.Path,
  stored: Mapping[str, object],
  config: Mapping[str, object],
  may_differ: Collection[str],
) -> None:
  """Raises ValueError with the first difference between two configurations."""
  before, now = _flat(stored), _flat(config)
  for name in sorted(before.keys() | now.keys()):
    was, is_ = before.get(name, 'absent'), now.get(name, 'absent')
    if was == is_ or name.removeprefix('--') in may_differ:
      continue
    raise ValueError(
      f'{folder} is a run with {name}={was}, not {name}={is_}: '
      'resume it as it was or name another folder'
    )


def _flat(config: Mapping[str, object]) -> dict[str, object]:
  flat: dict[str, object] = {'the task': config.get('task')}
  for section, prefix in (('flags', '--'), ('versions', 'version of ')):
    values = config.get(section)
    if isinstance(values, Mapping):
      flat.update((prefix + name, value) for name, value in values.items())
  return flat
