"""Processes that tests start without importing TensorFlow again, which takes seconds.

The process of the tests forks one before it computes anything. When it is first asked
for a process, that one imports the library, and forks it (`binaries.launching.forks`).
Tests of what an import or a new interpreter does start `python` themselves.
"""

import importlib
import os
import pathlib
import signal
import socket
import sys
import tempfile

from binaries.launching import forks
from binaries.torturing import programs

SECONDS = 300
_STANDARD = 3


class Process:
  """A module that runs as `python -m`, with the interface of `subprocess.Popen`."""

  def __init__(self, module: str, *arguments: str):
    """Starts it.

    Args:
      module: Its full name.
      *arguments: Its command line.
    """
    self._folder = tempfile.TemporaryDirectory()
    temporary = pathlib.Path(self._folder.name)
    self._process = programs.Process(module, arguments, temporary, _forks)
    self.pid = self._process.pid
    # In the environment of what it starts, by which that is known.
    self.mark = f'TMPDIR={temporary}'
    self.returncode: int | None = None

  def poll(self) -> int | None:
    """Returns its exit status, None while it runs."""
    return None if self._process.is_alive else self._end(0.0)[2]

  def send_signal(self, number: int) -> None:
    """Sends it a signal, if it has not ended."""
    self._process.kill(number)

  def kill(self) -> None:
    """Kills it, if it has not ended."""
    self.send_signal(signal.SIGKILL)

  def communicate(self, timeout: float = SECONDS) -> tuple[str, str]:
    """Waits for it, and kills it after the time; returns what it has printed."""
    return self._end(timeout)[:2]

  def _end(self, seconds: float) -> tuple[str, str, int]:
    if self.returncode is None:
      self._ended = self._process.end(seconds)
      self.returncode = self._ended.status
      self._folder.cleanup()
    return self._ended.stdout, self._ended.stderr, self.returncode


class _Server:
  """The process that forks them, as `forks.Forks` knows it."""

  def __init__(self) -> None:
    ours, theirs = socket.socketpair()
    self.pid = os.fork()
    if not self.pid:
      try:
        _serve(theirs.fileno())
      finally:
        os._exit(0)
    theirs.close()
    self.stdin = ours.makefile('w')
    self.stdout = ours.makefile('r')


class _Forks(forks.Forks):
  """Forks processes by one that has been forked already."""

  def prepare(self) -> None:
    """Forks the process that forks them; where nothing has been computed yet."""
    self._process = _Server()


_forks = _Forks()
prepare = _forks.prepare


def server() -> forks.Forks:
  """Returns what forks them, for tests of what it does."""
  return _forks


def _serve(channel: int) -> None:
  """Answers requests until the process of the tests ends."""
  forks.end_with_parent()
  nothing = os.open(os.devnull, os.O_WRONLY)
  for number, source in enumerate((channel, channel, nothing)):
    os.dup2(source, number)
  # Of xdist and of pytest, whose readers wait for the last one to be closed.
  os.closerange(_STANDARD, os.sysconf('SC_OPEN_MAX'))
  sys.stdin, sys.stdout, sys.stderr = (
    os.fdopen(number, mode) for number, mode in enumerate('rww')
  )
  importlib.invalidate_caches()
  forks.main()
