"""Programs that begin with TensorFlow imported, by `multiprocessing`'s fork server.

Importing TensorFlow and TFF takes five to eight seconds of CPU time. The fork server
has imported them (`fork_server`) and forks a child for each program: a separate process
with a command line, environment, files, signals and an exit status, which can be killed
like any other. The children end with the server, which ends with this process.

The server has imported only third-party libraries, and computed nothing. It has no
computing thread and no flag, and TensorFlow has not seeded the generator for noise that
is drawn without a seed. Our own modules would seed it (through the session that
`tff_ssl.computing.sessions` opens), and all children would draw the same noise.
"""

from collections.abc import Mapping, Sequence
import ctypes
import importlib
import multiprocessing
from multiprocessing import connection
from multiprocessing import forkserver
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading

from binaries.launching import stopping

CONTEXT = multiprocessing.get_context('forkserver')
CONTEXT.set_forkserver_preload(['binaries.launching.fork_server'])
_PR_SET_PDEATHSIG = 1
_STOPPING = (signal.SIGINT, signal.SIGTERM)
# Device files of GPUs, whose drivers a process and its fork cannot share.
_ACCELERATORS = ('/dev/nvidiactl', '/dev/kfd')


def can_fork() -> bool:
  """Returns whether programs can be forked here.

  Forking is only tried on Linux, and not if there is a GPU: a driver that was loaded
  before the fork may not work after it.
  """
  return sys.platform == 'linux' and not any(map(os.path.exists, _ACCELERATORS))


class Process:
  """A program that was forked, with the interface of `subprocess.Popen`."""

  def __init__(
    self,
    arguments: Sequence[str],
    log: str,
    errors: str | None = None,
    environment: Mapping[str, str] = {},
    nice: int = 0,
  ):
    """Starts the program.

    Args:
      arguments: The full name of a module, and its command line.
      log: Path to which its output is appended.
      errors: The same for what it prints to standard error; None: `log`.
      environment: Variables that are added to those of this process.
      nice: Added to its niceness.
    """
    variables = {**os.environ, **environment}
    given = ([*arguments], (log, errors or log), variables, nice)
    self._process = CONTEXT.Process(target=_run, args=given)
    self._process.start()
    self._polling = threading.Lock()

  @property
  def pid(self) -> int:
    """The id of its process."""
    assert self._process.pid is not None
    return self._process.pid

  @property
  def returncode(self) -> int | None:
    """Its exit status, negative for a signal; None while it runs."""
    return self.poll()

  def poll(self) -> int | None:
    """Returns `returncode`."""
    # Two threads would both read what is written once.
    with self._polling:
      return self._process.exitcode

  def send_signal(self, number: int) -> None:
    """Sends a signal to it, if it has not ended."""
    if self.poll() is None:
      os.kill(self.pid, number)

  def kill(self) -> None:
    """Kills it, if it has not ended."""
    self.send_signal(signal.SIGKILL)

  def wait(self, timeout: float | None = None) -> int:
    """Waits for it; returns its exit status.

    Args:
      timeout: Seconds; None: no limit.

    Raises:
      subprocess.TimeoutExpired: If it has not ended by then.
    """
    connection.wait([self._process.sentinel], timeout)
    if (status := self.poll()) is None:
      assert timeout is not None
      raise subprocess.TimeoutExpired(f'process {self.pid}', timeout)
    return status


def end_with_parent(parent: int | None = None) -> None:
  """Has the kernel kill this process when the one that started it ends.

  Args:
    parent: The process that started it. If it has ended already, of which the kernel
      tells nothing any more, this process is killed now. None: not checked.
  """
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
  if parent is not None and os.getppid() != parent:
    os.kill(os.getpid(), signal.SIGKILL)


def _run(
  arguments: Sequence[str],
  files: Sequence[str],
  environment: Mapping[str, str],
  nice: int,
) -> None:
  """Runs a program in this forked process; see `Process`."""
  # With this, which children are given, the server would live as long as they do.
  os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
  end_with_parent()
  asking = multiprocessing.parent_process()
  if asking is None or not asking.is_alive():
    # The server may have ended before the kernel was asked.
    sys.exit(1)
  # Ctrl-C is for the process that asked.
  os.setsid()
  os.nice(nice)
  for number in _STOPPING:
    signal.signal(number, signal.SIG_DFL)
  stopping.while_it_imports()
  signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
  for place, path in enumerate([os.devnull, *files]):
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    os.dup2(os.open(path, flags if place else os.O_RDONLY, 0o600), place)
  os.environ.clear()
  os.environ.update(environment)
  tempfile.tempdir = None
  # Each child has its own draws if it sets no seed, as `random` has by itself.
  importlib.import_module('numpy').random.seed()
  sys.argv = [*arguments]
  # A test may have imported it before the fork.
  sys.modules.pop(arguments[0], None)
  # `runpy` puts the path there, like `python -m`.
  runpy.run_module(arguments[0], run_name='__main__', alter_sys=True)
