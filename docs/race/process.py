"""A peer's process and all that it starts: requests to it, and what it consumes."""

from collections.abc import Callable
import contextlib
import multiprocessing
import os
import pathlib
import subprocess
import tempfile
import time
from typing import Any

import numpy as np
import psutil

from docs.race.peers import protocol

_ROOT = pathlib.Path(__file__).parents[2]
# Time limits: to import a library, start its processes and compile; to answer a
# request; to end.
_START_SECONDS, _WORK_SECONDS, _END_SECONDS = 300.0, 900.0, 30.0
# Between looks at the peer's processes: if its memory is watched, and otherwise.
_SAMPLE_SECONDS, _LOOK_SECONDS = 0.1, 1.0
_MIB = 2**20
# The same for all libraries: only CPUs, no telemetry, and Ray does not lower the
# priority of Flower's clients.
_ENVIRONMENT = {
  'PYTHONPATH': str(_ROOT),
  'TF_CPP_MIN_LOG_LEVEL': '3',
  'CUDA_VISIBLE_DEVICES': '',
  'JAX_PLATFORMS': 'cpu',
  'FLWR_TELEMETRY_ENABLED': '0',
  'RAY_USAGE_STATS_ENABLED': '0',
  'RAY_worker_niceness': '0',
}


class UnavailableError(Exception):
  """Raised if a peer cannot be measured; its text says why."""


class Process:
  """A peer at work; `close` leaves no process behind.

  A peer ends by itself when this process ends, because its pipe does.
  """

  def __init__(self, command: list[str], log: pathlib.Path):
    """Starts the peer, and waits until it says what it is.

    Args:
      command: The command to run.
      log: The file for its output.

    Raises:
      UnavailableError: If it ends, or says nothing for too long.
    """
    self._log = log
    self._pipe, theirs = multiprocessing.Pipe()
    with log.open('w', encoding='utf-8') as output, theirs:
      self._process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=_ROOT,
        env={**os.environ, **_ENVIRONMENT, protocol.PIPE: str(theirs.fileno())},
        pass_fds=[theirs.fileno()],
        # Ctrl-C should reach only this program, which ends its peers.
        start_new_session=True,
      )
    self._top = psutil.Process(self._process.pid)
    self._seen = {self._top}
    self.peak_mib = 0.0
    try:
      hello = self._answer(_START_SECONDS)
    except BaseException:
      self.close()
      raise
    self.versions: protocol.Versions = hello['versions']
    self.notes: str = hello['notes']

  def rounds(self, count: int, watch: bool = False) -> None:
    """Has the peer train rounds.

    Args:
      count: Number of rounds.
      watch: Whether to read its memory ten times a second, for `peak_mib`.
    """
    self._ask({'rounds': count}, watch)

  def weights(self) -> protocol.Weights:
    """Returns its global weights."""
    with tempfile.TemporaryDirectory() as folder:
      path = f'{folder}/weights.npz'
      self._ask({'weights': path})
      return dict(np.load(path))

  def cpu_seconds(self) -> dict[str, float]:
    """Returns the CPU seconds of it and all that it started, since their start."""
    # User and system time; the last two are of children that have ended.
    return {'peer': self._total(lambda process: sum(process.cpu_times()[:4]))}

  def close(self) -> None:
    """Ends the peer and all that it started."""
    tree = self._tree()
    self._pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
      self._process.wait(_END_SECONDS)
    for process in {*self._seen, *tree}:
      # Not another process that has got its number since.
      with contextlib.suppress(psutil.Error):
        if process.is_running():
          process.kill()
    self._process.wait()

  def _tree(self) -> list[psutil.Process]:
    """Returns the running processes, and remembers them.

    A daemon of a peer that has ended is no longer below it, and must end too.
    """
    with contextlib.suppress(psutil.Error):
      tree = [self._top, *self._top.children(recursive=True)]
      self._seen.update(tree)
      return tree
    return []

  def _total(self, quantity: Callable[[psutil.Process], float]) -> float:
    """Returns the sum of a quantity over the running processes."""
    total = 0.0
    for process in self._tree():
      with contextlib.suppress(psutil.Error):
        total += quantity(process)
    return total

  def _ask(self, what: dict[str, Any], watch: bool = False) -> None:
    try:
      self._pipe.send(what)
    except OSError as error:
      raise self._gone('ended') from error
    self._answer(_WORK_SECONDS, watch)

  def _answer(self, seconds: float, watch: bool = False) -> dict[str, Any]:
    """Returns the peer's next answer."""
    deadline = time.monotonic() + seconds
    while not self._pipe.poll(_SAMPLE_SECONDS if watch else _LOOK_SECONDS):
      if time.monotonic() > deadline:
        self._process.kill()
        raise self._gone(f'did not answer for {seconds:.0f} s')
      # The proportional set size, in which shared pages count once.
      pss = self._total(lambda p: p.memory_full_info().pss if watch else 0.0)
      self.peak_mib = max(self.peak_mib, pss / _MIB)
    self._tree()
    try:
      said = self._pipe.recv()
    except (EOFError, OSError) as error:
      raise self._gone('ended') from error
    if 'error' in said:
      raise self._gone(f'failed: {said["error"]}')
    return said

  def _gone(self, what: str) -> UnavailableError:
    return UnavailableError(f'its process {what} ({self._log})')
