"""Programs as processes, and their results: the smallest runs of each kind."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import hashlib
import math
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import psutil

from binaries.launching import forks

ROOT = pathlib.Path(__file__).parents[2]
# Rounds of a run of any kind.
ROUNDS = 12
# Time limit of a run: far more than one takes on a loaded machine.
SECONDS = 900.0
_POLL_SECONDS = 0.02
_SMALL = (
  '--task=digits',
  '--encoder=conv2',
  '--encoder_width=0.125',
  f'--rounds={ROUNDS}',
  '--checkpoint_every=2',
)
_DCCO = (
  *_SMALL,
  '--clients_per_round=4',
  '--projector=8,8',
  '--evaluate_every=6',
  '--augmentation=mild',
  '--evaluation_methods=knn',
)
# The beginning of the last line of a program that reports an error.
_ERROR = 'Error: '
# The function that applies a hook before a program begins.
_APPLY = ('binaries.torturing.hooks', 'apply')
# The line above a traceback, which no such program may print.
_TRACEBACK = 'Traceback (most recent call last)'


@dataclasses.dataclass(frozen=True)
class Kind:
  """A kind of process.

  Attributes:
    program: A program of `binaries`.
    flags: Flags of its runs, except the folder.
    hosts: Number of separate workers that it needs, whose addresses are added to the
      flags.
    private: Whether noise is added, so that no two runs are equal.
  """

  program: str
  flags: tuple[str, ...]
  hosts: int = 0
  private: bool = False

  @property
  def starts_worker(self) -> bool:
    """Whether a run has a worker as its child process."""
    return '--runtime=worker' in self.flags


KINDS: Mapping[str, Kind] = collections.OrderedDict(
  worker=Kind('dcco', (*_DCCO, '--runtime=worker')),
  in_process=Kind('dcco', (*_DCCO, '--runtime=in_process', '--packs=0')),
  centralized=Kind('dcco', ('--algorithm=centralized_cco', *_DCCO)),
  stateful=Kind(
    'fedema',
    (
      '--method=fedema',
      *_SMALL,
      '--partition=iid:clients=6',
      '--examples_per_client_at_most=8',
      '--clients_per_round=3',
      '--batch_size=8',
      '--local_epochs=1',
      '--projector=8,8',
      '--predictor_width=8',
      '--evaluation_methods=knn',
      '--runtime=in_process',
    ),
  ),
  server_data=Kind(
    'fedsup',
    (
      '--method=finetuned_simclr',
      *_SMALL,
      '--partition=iid:clients=6',
      '--examples_per_client_at_most=8',
      '--clients_per_round=3',
      '--batch_size=8',
      '--local_epochs=1',
      '--projector=8,8',
      '--evaluation_methods=knn',
      '--runtime=in_process',
    ),
  ),
  hosts=Kind('dcco', (*_DCCO, '--runtime=hosts', '--parts=2'), hosts=2),
  private=Kind(
    'dcco',
    (
      *_DCCO,
      '--runtime=in_process',
      '--packs=0',
      '--aggregation=private',
      '--privacy_noise_multiplier=2',
      '--privacy_delta=1e-4',
      '--privacy_update_clip=1',
      '--privacy_statistics_clip=4',
    ),
    private=True,
  ),
)


class Ended(NamedTuple):
  """How a process ended.

  Attributes:
    status: Its exit status, or the negative number of a signal.
    stdout: What it printed to standard output.
    stderr: What it printed to standard error.
    seconds: How long it took.
  """

  status: int
  stdout: str
  stderr: str
  seconds: float

  @property
  def is_sentence(self) -> bool:
    """Whether it ended by reporting an error in one sentence."""
    lines = [line for line in self.stderr.splitlines() if line.strip()]
    said = bool(lines) and _ERROR in lines[-1]
    return self.status == 1 and said and _TRACEBACK not in self.stderr


class Process:
  """A running program."""

  def __init__(
    self,
    program: str,
    arguments: Sequence[str],
    temporary: pathlib.Path,
    forked_by: forks.Forks | None = None,
    hook: str | None = None,
    environment: Mapping[str, str] = {},
  ) -> None:
    """Starts a program.

    Args:
      program: Its name.
      arguments: Its command line.
      temporary: Its own TMPDIR, where nothing may be left.
      forked_by: The process that has already imported the library and forks it; None:
        it is `python -m binaries.PROGRAM`.
      hook: A change to a forked process before the program begins; see `hooks.apply`.
      environment: Further variables of its environment.
    """
    temporary.mkdir(parents=True, exist_ok=True)
    # Files instead of pipes, which fill up while nobody reads them.
    self._files = [tempfile.NamedTemporaryFile() for _ in range(2)]  # noqa: SIM115
    self._started = time.monotonic()
    self._forks = forked_by
    self._status: int | None = None
    own = {'TMPDIR': str(temporary), 'TF_CPP_MIN_LOG_LEVEL': '3', **environment}
    if forked_by is not None:
      paths = [file.name for file in self._files]
      before = (*_APPLY, hook) if hook else ()
      self.pid = forked_by.start(program, arguments, own, paths, before)
      return
    self._process = subprocess.Popen(
      [sys.executable, '-m', f'binaries.{program}', *arguments],
      cwd=ROOT,
      env={**os.environ, **own},
      stdin=subprocess.DEVNULL,
      stdout=self._files[0],
      stderr=self._files[1],
    )
    self.pid = self._process.pid

  @property
  def is_alive(self) -> bool:
    """Whether it is still running."""
    if self._status is None:
      forked = self._forks
      self._status = forked.status(self.pid) if forked else self._process.poll()
    return self._status is None

  @property
  def cpu_seconds(self) -> float:
    """CPU seconds so far: on a busy machine they say more than wall time."""
    try:
      times = psutil.Process(self.pid).cpu_times()
    except psutil.NoSuchProcess:
      return math.inf
    return float(times.user + times.system)

  def kill(self, number: int) -> None:
    """Sends a signal to it, if it has not ended."""
    if self.is_alive:
      os.kill(self.pid, number)

  def end(self, seconds: float = SECONDS) -> Ended:
    """Waits for it; after the given time kills it, with the status of SIGKILL."""
    deadline = time.monotonic() + seconds
    while self.is_alive:
      if time.monotonic() > deadline:
        self.kill(signal.SIGKILL)
      time.sleep(_POLL_SECONDS)
    seconds = time.monotonic() - self._started
    texts = []
    for file in self._files:
      # A forked child has opened them by name.
      texts.append(pathlib.Path(file.name).read_text(errors='replace'))
      file.close()
    return Ended(self._status or 0, texts[0], texts[1], seconds)


def rows(folder: pathlib.Path) -> int:
  """Returns the number of a run's rounds in metrics.csv."""
  path = folder / 'metrics.csv'
  return max(path.read_bytes().count(b'\n') - 1, 0) if path.exists() else 0


def numbers(folder: pathlib.Path) -> collections.OrderedDict[str, str]:
  """Returns digests of the results that must be the same for the same flags.

  Args:
    folder: Folder of a finished run.
  """
  found = collections.OrderedDict()
  for name in ('metrics.csv', 'clients.csv', 'evaluation.json', 'encoder.json'):
    if (folder / name).exists():
      found[name] = _digest((folder / name).read_bytes())
  for path in sorted((folder / 'checkpoints').glob('round_*.npz'))[-1:]:
    found[path.name] = _digest(path.read_bytes())
  states = folder / 'client_states.sqlite'
  if states.exists():
    connection = sqlite3.connect(states)
    newest = connection.execute(
      'SELECT client, max(round), state FROM states GROUP BY client ORDER BY client'
    ).fetchall()
    connection.close()
    found[states.name] = _digest(repr(newest).encode())
  return found


def _digest(content: bytes) -> str:
  return hashlib.sha256(content).hexdigest()
