"""Processes that tests start without importing TensorFlow again, which takes seconds.

The process of the tests forks one before it computes anything. When it is first asked
for a process, that one imports the library, and forks it (`binaries.launching.forks`).
Tests of what an import or a new interpreter does start `python` themselves.
"""

from collections.abc import Mapping
import importlib
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import weakref

from binaries.launching import forks

SECONDS = 300
_STANDARD = 3


class Process(forks.Process):
  """A module that runs as `python -m`, with the interface of `subprocess.Popen`."""

  def __init__(
    self,
    module: str,
    *arguments: str,
    temporary: pathlib.Path | None = None,
    environment: Mapping[str, str] = {},
  ):
    """Starts it.

    Args:
      module: Its full name.
      *arguments: Its command line.
      temporary: Its TMPDIR; None: a folder of its own.
      environment: Further variables of its environment.
    """
    folder = pathlib.Path(tempfile.mkdtemp())
    weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
    temporary = temporary or folder
    # Files instead of pipes, which fill up while nobody reads them.
    self._outputs = [folder / 'stdout', folder / 'stderr']
    for path in self._outputs:
      path.touch()
    # In the environment of what it starts, by which that is known.
    self.mark = f'TMPDIR={temporary}'
    own = {'TMPDIR': str(temporary), 'TF_CPP_MIN_LOG_LEVEL': '3', **environment}
    super().__init__(_forks, [module, *arguments], *map(str, self._outputs), own)

  def communicate(self, timeout: float = SECONDS) -> tuple[str, str]:
    """Waits for it; returns what it has printed.

    Args:
      timeout: Seconds.

    Raises:
      subprocess.TimeoutExpired: If it has not ended by then.
    """
    self.wait(timeout)
    stdout, stderr = (path.read_text(errors='replace') for path in self._outputs)
    return stdout, stderr


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
