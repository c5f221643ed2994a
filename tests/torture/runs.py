"""The smallest runs of each kind of process, and their results."""

from collections.abc import Mapping
import dataclasses
import hashlib
import math
import pathlib
import random
import sqlite3
import tempfile
import time

import psutil

from tests import forked
from tests.binaries import launch
from tests.torture import hooks

# Rounds of a run of any kind.
ROUNDS = 12
_POLL_SECONDS = 0.01
# Ray keeps them, in a folder whose name must be short.
_LOGS_OF_RAY = {'RAY_TMPDIR': tempfile.gettempdir()}
_SMALL = (
  '--task=digits',
  '--encoder=conv2:width=0.125',
  f'--rounds={ROUNDS}',
  '--checkpoint_every=2',
  '--objective=projector=8/8',
  '--evaluation=methods=knn',
)
_DCCO = (
  *_SMALL,
  '--clients_per_round=4',
  '--evaluation=every=6',
  '--augmentation=mild',
)
_LOCAL = (
  *_SMALL,
  '--partition=iid:clients=6',
  '--data=at_most=8',
  '--clients_per_round=3',
  '--clients=batch_size=8,epochs=1',
  '--runtime=in_process',
)
_PRIVATE = (
  *_DCCO,
  '--runtime=in_process:packs=0',
  '--aggregation=private:noise_multiplier=2,delta=1e-4,update_clip=1,statistics_clip=4',
)


@dataclasses.dataclass(frozen=True)
class Kind:
  """A kind of process.

  Attributes:
    program: A program of `binaries`.
    flags: Flags of its runs, except the folder.
    private: Whether noise is added, so that no two runs are equal.
  """

  program: str
  flags: tuple[str, ...]
  private: bool = False

  @property
  def starts_worker(self) -> bool:
    """Whether a run has a worker as its child process."""
    return '--runtime=worker' in self.flags


KINDS: Mapping[str, Kind] = {
  'worker': Kind('dcco', (*_DCCO, '--runtime=worker')),
  'in_process': Kind('dcco', (*_DCCO, '--runtime=in_process:packs=0')),
  'centralized': Kind(
    'dcco', (*_DCCO, '--method=centralized_steps', '--objective=cco')
  ),
  'stateful': Kind(
    'fedema', (*_LOCAL, '--method=fedema', '--objective=predictor_width=8')
  ),
  'server_data': Kind(
    'fedsup', (*_LOCAL, '--method=server_finetuned', '--objective=simclr')
  ),
  'ray': Kind('dcco', (*_DCCO, '--runtime=ray:parts=2,actors=1')),
  'private': Kind('dcco', _PRIVATE, private=True),
}


@dataclasses.dataclass(frozen=True)
class Reference:
  """An undisturbed run.

  Attributes:
    numbers: See `numbers`.
    cpu_seconds: CPU seconds that it took, without imports.
    bytes: Size of its folder.
    noised: Number of its sums to which noise was added.
  """

  numbers: Mapping[str, str]
  cpu_seconds: float
  bytes: int
  noised: int


class Runner:
  """Starts runs of each kind, and keeps the references."""

  def __init__(self, folder: pathlib.Path):
    """Runs nothing yet.

    Args:
      folder: Folder for undisturbed runs.
    """
    self._folder = folder
    self._references: dict[str, Reference] = {}

  def start(
    self,
    kind: str,
    folder: pathlib.Path,
    *flags: str,
    afresh: bool = False,
    noise: pathlib.Path | None = None,
  ) -> launch.Process:
    """Starts a run, whose TMPDIR is `temporary(folder)`.

    Args:
      kind: A name in `KINDS`.
      folder: The run folder.
      *flags: Flags in addition to those of the kind.
      afresh: Whether it starts as `python -m` instead of being forked.
      noise: File to which a line is appended for every sum to which noise was added.
    """
    program = KINDS[kind].program
    arguments = [*KINDS[kind].flags, *flags, f'--run_dir={folder}']
    own = temporary(folder)
    own.mkdir(parents=True, exist_ok=True)
    if afresh:
      environment = {'TMPDIR': str(own), **_LOGS_OF_RAY}
      return launch.start(program, *arguments, environment=environment)
    given = [f'binaries.{program}']
    if noise is not None:
      given = [hooks.__name__, str(noise), program]
    return forked.Process(*given, *arguments, temporary=own, environment=_LOGS_OF_RAY)

  def reference(self, kind: str) -> Reference:
    """Returns a kind's undisturbed run, which is made once."""
    if kind not in self._references:
      folder, noise = self._folder / kind, self._folder / f'{kind}_noise'
      seconds = self.in_peace(kind, folder, noise=noise)
      size = sum(p.stat().st_size for p in folder.rglob('*') if p.is_file())
      noised = hooks.count(noise)
      self._references[kind] = Reference(numbers(folder), seconds, size, noised)
    return self._references[kind]

  def in_peace(
    self,
    kind: str,
    folder: pathlib.Path,
    *flags: str,
    noise: pathlib.Path | None = None,
  ) -> float:
    """Runs a kind in a new folder to its end; returns its CPU seconds."""
    process = self.start(kind, folder, *flags, noise=noise)
    seconds = 0.0
    while process.poll() is None:
      if math.isfinite(so_far := cpu_seconds(process)):
        seconds = so_far
      time.sleep(_POLL_SECONDS)
    ended = launch.end(process, folder)
    assert ended.status == 0, ended
    return seconds


def temporary(folder: pathlib.Path) -> pathlib.Path:
  """Returns the TMPDIR of a run, where nothing may be left."""
  return folder.with_name(f'{folder.name}_tmp')


def is_sentence(ended: launch.Ended) -> bool:
  """Returns whether a process ended by reporting an error in one sentence."""
  lines = [line for line in ended.stderr.splitlines() if line.strip()]
  # The beginning of the last line of a program that reports an error.
  is_error = bool(lines) and 'Error: ' in lines[-1]
  return ended.status == 1 and is_error and 'Traceback' not in ended.stderr


def cpu_seconds(process: launch.Process) -> float:
  """CPU seconds so far: on a busy machine they say more than wall time."""
  try:
    times = psutil.Process(process.pid).cpu_times()
  except psutil.NoSuchProcess:
    return math.inf
  return float(times.user + times.system)


def wait_for_some_moment(
  process: launch.Process, folder: pathlib.Path, seconds: float, rng: random.Random
) -> str:
  """Waits for a random instant of a run; returns a description of it.

  Half of the instants are anywhere, half after a round of this life. They are measured
  in the run's CPU seconds, because a busy machine takes longer for the same.

  Args:
    process: The run.
    folder: Its folder.
    seconds: CPU seconds that it would take undisturbed.
    rng: Generator of the instant.
  """
  before = launch.rows(folder)
  if rng.random() < 0.5:
    until = rng.random() * seconds
    text = f'{until:.2f} s'
  else:
    while process.poll() is None and launch.rows(folder) <= before:
      time.sleep(_POLL_SECONDS)
    after = rng.random() * 0.15 * seconds
    until = cpu_seconds(process) + after
    text = f'{after:.2f} s after row {before + 1}'
  while process.poll() is None and cpu_seconds(process) < until:
    time.sleep(_POLL_SECONDS)
  return text


def numbers(folder: pathlib.Path) -> dict[str, str]:
  """Returns digests of the results that must be the same for the same flags.

  Args:
    folder: Folder of a finished run.
  """
  names = ('metrics.csv', 'clients.csv', 'evaluation.json', 'encoder.json')
  paths = [folder / name for name in names if (folder / name).exists()]
  paths += sorted((folder / 'checkpoints').glob('round_*.npz'))[-1:]
  contents = {path.name: path.read_bytes() for path in paths}
  states = folder / 'client_states.sqlite'
  if states.exists():
    connection = sqlite3.connect(states)
    newest = connection.execute(
      'SELECT client, max(round), state FROM states GROUP BY client ORDER BY client'
    ).fetchall()
    connection.close()
    contents[states.name] = repr(newest).encode()
  return {
    name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
  }
