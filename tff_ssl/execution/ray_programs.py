"""Runs of programs on the machines of a cluster of Ray; their folders come home.

A run is a process below an actor, which ends with it. Where a machine sees the file of
its output, as in a folder that all machines share, the run works in place. Elsewhere it
begins with what its folder has here, and the folder comes back when it ends. If its
machine dies, Ray starts it again on another, from the same.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import tarfile
import tempfile
import threading
from typing import Any, NamedTuple, TextIO

import ray

from tff_ssl.execution import ray_parts

_FOLDER = '--run_dir='
# Starts a program: (arguments after `python`, file for its output) -> process, with the
# methods of `subprocess.Popen`. The process must end with the one that starts it.
Start = Callable[[Sequence[str], TextIO], Any]


class _Ended(NamedTuple):
  """The end of a run.

  Attributes:
    status: Its exit status.
    output: What it has printed, unless the machine sees the file for it.
    folder: The archive of its folder, likewise.
  """

  status: int
  output: str
  folder: bytes


@contextlib.contextmanager
def starting(address: str, start: Start) -> Iterator[Start]:
  """Returns a function that starts programs on a cluster; they end with the block.

  Args:
    address: The cluster's, as `ray.init` takes it.
    start: Starts a program on the machine where it is called.

  Raises:
    ConnectionError: If there is no such cluster.
  """
  started = ray_parts.start(address)
  try:
    yield lambda arguments, log: Process(start, arguments, pathlib.Path(log.name))
  finally:
    if started:
      ray.shutdown()


def cores() -> int:
  """Returns how many CPUs the cluster has."""
  return max(1, int(ray.cluster_resources().get('CPU', 0.0)))


class Process:
  """A program that was started on the cluster."""

  def __init__(self, start: Start, arguments: Sequence[str], log: pathlib.Path):
    """Starts it as soon as a machine has a free CPU.

    Args:
      start: See `starting`.
      arguments: The arguments after `python`, with the run's folder.
      log: The file for its output.
    """
    (folder,) = (own for own in arguments if own.startswith(_FOLDER))
    self._folder = pathlib.Path(folder.removeprefix(_FOLDER))
    self._log = log
    # Two threads may wait for a run that is stopped.
    self._lock, self._is_home = threading.Lock(), False
    self._actor = (
      ray.remote(_Site)
      .options(num_cpus=1, max_restarts=-1, max_task_retries=-1, max_concurrency=2)
      .remote(start, os.fspath(pathlib.Path.cwd()))
    )
    self._ended = self._actor.run.remote(
      [*arguments], log, _identity(log), self._folder, _packed(self._folder)
    )

  def send_signal(self, number: int) -> None:
    """Sends a signal, if it has not ended."""
    self._actor.send_signal.remote(number)

  def kill(self) -> None:
    """Kills it, if it has not ended."""
    ray.kill(self._actor)

  def wait(self, timeout: float | None = None) -> int:
    """Waits for it, and brings its folder home; returns its exit status.

    Args:
      timeout: Seconds; None: no limit.

    Raises:
      subprocess.TimeoutExpired: If it has not ended by then.
    """
    try:
      ended = ray.get(self._ended, timeout=timeout)
    except ray.exceptions.GetTimeoutError:
      raise subprocess.TimeoutExpired('a run on the cluster', timeout or 0.0) from None
    except ray.exceptions.ActorDiedError:
      return -signal.SIGKILL
    with self._lock:
      if not self._is_home:
        with self._log.open('a', encoding='utf-8') as log:
          log.write(ended.output)
        _unpack(ended.folder, self._folder)
        self._is_home = True
    return int(ended.status)


class _Site:
  """An actor that runs one program."""

  def __init__(self, start: Start, folder: str):
    """Goes to the folder of the checkout, the same on all machines."""
    os.chdir(folder)
    # Ray's, for the actor itself.
    os.environ.pop('OMP_NUM_THREADS', None)
    self._start = start
    self._process: Any = None

  def run(
    self,
    arguments: Sequence[str],
    log: pathlib.Path,
    identity: tuple[int, int],
    folder: pathlib.Path,
    begun: bytes,
  ) -> _Ended:
    """Runs a program, in its own folder if this machine sees it.

    Args:
      arguments: See `Process`.
      log: The file for its output.
      identity: `_identity` of that file where the run is started. Another machine may
        have a run of the same path.
      folder: The run's folder.
      begun: The archive of what it begins with.
    """
    if log.is_file() and _identity(log) == identity:
      with log.open('a', encoding='utf-8') as file:
        return _Ended(self._run(arguments, file), '', b'')
    with tempfile.TemporaryDirectory() as outside:
      copy = pathlib.Path(outside) / folder.name
      _unpack(begun, copy)
      here = [
        f'{_FOLDER}{copy}' if own.startswith(_FOLDER) else own for own in arguments
      ]
      with tempfile.TemporaryFile('w+', encoding='utf-8') as file:
        status = self._run(here, file)
        file.seek(0)
        return _Ended(status, file.read(), _packed(copy))

  def send_signal(self, number: int) -> None:
    """Sends a signal to the program, if it has begun."""
    if self._process is not None:
      self._process.send_signal(number)

  def _run(self, arguments: Sequence[str], log: TextIO) -> int:
    self._process = self._start(arguments, log)
    return int(self._process.wait())


def _identity(file: pathlib.Path) -> tuple[int, int]:
  """Returns (inode, time of its last change in ns), the same on all that share it."""
  status = file.stat()
  return status.st_ino, status.st_mtime_ns


def _packed(folder: pathlib.Path) -> bytes:
  """Returns the archive of a folder; b'' if there is none."""
  if not folder.is_dir():
    return b''
  content = io.BytesIO()
  with tarfile.open(fileobj=content, mode='w') as archive:
    archive.add(folder, '.')
  return content.getvalue()


def _unpack(content: bytes, folder: pathlib.Path) -> None:
  """Makes a folder what an archive of `_packed` has; nothing if it is empty."""
  if not content:
    return
  folder.mkdir(parents=True, exist_ok=True)
  with tarfile.open(fileobj=io.BytesIO(content)) as archive:
    archive.extractall(folder, filter='data')
