"""A peer's process and all that it starts: requests to it, and what it consumes."""

import contextlib
import json
import os
import pathlib
import select
import subprocess
import tempfile
import threading
from typing import Any

import numpy as np
import psutil

from binaries.benchmarking.racing import environments
from binaries.benchmarking.racing import guard
from binaries.benchmarking.racing.peers import protocol

_ROOT = pathlib.Path(__file__).parents[3]
_PEERS = 'binaries.benchmarking.racing.peers'
# Time limits: to import a library, start its processes and compile; to answer a
# request; to end.
_START_SECONDS, _WORK_SECONDS, _END_SECONDS = 300.0, 900.0, 30.0
_SAMPLE_SECONDS = 0.1
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


class Process:
  """A peer at work; a context manager, which leaves no process behind."""

  def __init__(
    self,
    command: list[str],
    log: pathlib.Path,
    start_seconds: float = _START_SECONDS,
    work_seconds: float = _WORK_SECONDS,
  ):
    """Starts the peer, and waits until it says what it is.

    Args:
      command: The command to run.
      log: The file for its output.
      start_seconds: How long it may take to start.
      work_seconds: How long it may take for a request.

    Raises:
      UnavailableError: If it ends, or says nothing for too long.
    """
    self._work_seconds = work_seconds
    self._failed = False
    self._log = log
    with log.open('w', encoding='utf-8') as output:
      self._process = subprocess.Popen(
        guard.command(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        cwd=_ROOT,
        env={**os.environ, **_ENVIRONMENT},
        # Ctrl-C should reach only this program, which ends its peers.
        start_new_session=True,
      )
    self._top = psutil.Process(self._process.pid)
    try:
      hello = self._answer(start_seconds)
    except BaseException:
      self.close()
      raise
    self.versions: protocol.Versions = hello['versions']
    self.notes: str = hello['notes']

  def __enter__(self) -> 'Process':
    return self

  def __exit__(self, *unused: object) -> None:
    self.close()

  def rounds(self, count: int) -> None:
    """Has the peer train `count` rounds."""
    self._ask({'do': 'rounds', 'count': count})

  def passes(self, count: int) -> None:
    """Has the peer take centralized steps over all examples, `count` times."""
    self._ask({'do': 'passes', 'count': count})

  def weights(self, images: np.ndarray) -> tuple[protocol.Weights, np.ndarray]:
    """Returns its global weights, and its outputs for some images under them.

    Args:
      images: uint8 [n, 32, 32, 3].
    """
    with tempfile.TemporaryDirectory() as folder:
      of, path = pathlib.Path(folder, 'images.npy'), pathlib.Path(folder, 'weights.npz')
      np.save(of, images)
      self._ask({'do': 'weights', 'images': str(of), 'path': str(path)})
      found = dict(np.load(path))
    return found, found.pop('outputs')

  def cpu_seconds(self) -> float:
    """Returns the CPU seconds of it and all that it started, since their start."""
    total = 0.0
    for process in self._tree():
      with contextlib.suppress(psutil.Error):
        # The last two fields count children that have ended.
        taken = process.cpu_times()
        total += taken.user + taken.system
        total += taken.children_user + taken.children_system
    return total

  def memory_mib(self) -> float:
    """Returns the proportional set size of the peer and all that it started."""
    total = 0
    for process in self._tree():
      with contextlib.suppress(psutil.Error):
        total += process.memory_full_info().pss
    return total / _MIB

  def close(self) -> None:
    """Ends the peer and all that it started."""
    left = self._tree()
    with contextlib.suppress(OSError):
      if self._process.stdin is not None:
        self._process.stdin.close()
    try:
      self._process.wait(0.0 if self._failed else _END_SECONDS)
    except subprocess.TimeoutExpired:
      self._process.terminate()
      self._process.wait()
    # None are left, unless somebody has killed the guard.
    for process in left:
      with contextlib.suppress(psutil.Error):
        process.kill()
    if self._process.stdout is not None:
      self._process.stdout.close()

  def _tree(self) -> list[psutil.Process]:
    """Returns the running processes, without the guard."""
    try:
      return self._top.children(recursive=True)
    except psutil.Error:
      return []

  def _ask(self, what: dict[str, Any]) -> None:
    assert self._process.stdin is not None
    try:
      self._process.stdin.write(f'{json.dumps(what)}\n'.encode())
      self._process.stdin.flush()
    except OSError as error:
      raise self._gone('ended') from error
    self._answer(self._work_seconds)

  def _answer(self, seconds: float) -> dict[str, Any]:
    """Returns the peer's next answer."""
    assert self._process.stdout is not None
    ready, _, _ = select.select([self._process.stdout], [], [], seconds)
    if not ready:
      raise self._gone(f'did not answer for {seconds:.0f} s')
    line = self._process.stdout.readline()
    if not line:
      raise self._gone('ended')
    said = json.loads(line)
    if 'error' in said:
      raise self._gone(f'failed: {said["error"]}')
    return said

  def _gone(self, what: str) -> environments.UnavailableError:
    self._failed = True
    return environments.UnavailableError(f'its process {what} ({self._log})')


class PeakMemory:
  """The peak of a peer's memory while a block runs, read ten times a second."""

  def __init__(self, process: Process):
    """Reads nothing yet."""
    self._process = process
    self._ended = threading.Event()
    self._thread = threading.Thread(target=self._look, daemon=True)
    self.mib = 0.0

  def __enter__(self) -> 'PeakMemory':
    self._thread.start()
    return self

  def __exit__(self, *unused: object) -> None:
    self._ended.set()
    self._thread.join()

  def _look(self) -> None:
    while True:
      self.mib = max(self.mib, self._process.memory_mib())
      if self._ended.wait(_SAMPLE_SECONDS):
        return


def command(
  peer: environments.Peer, python: pathlib.Path, folder: pathlib.Path
) -> list[str]:
  """Returns the command that starts a peer.

  Args:
    peer: The peer.
    python: The Python of its environment.
    folder: The folder of the problem.
  """
  return [str(python), '-m', _PEERS, peer.module, str(folder)]
