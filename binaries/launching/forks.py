"""Forks programs from a process that has imported TensorFlow once.

Importing TensorFlow and TFF takes five to eight seconds of CPU time. A process that has
imported them forks a child for each requested program: a separate process with a
command line, environment, files, signals and an exit status, which can be killed like
any other. The children end with the forking process, which ends with the process that
sends it requests.

Before it forks it has imported only third-party libraries, and computed nothing. It has
no computing thread and no flag, and TensorFlow has not seeded the generator for noise
that is drawn without a seed. Our own modules would seed it (through the session that
`tff_ssl.computing.sessions` opens), and all children would draw the same noise.
"""

from collections.abc import Mapping, Sequence
import ctypes
import gc
import importlib
import itertools
import json
import os
import pathlib
import random
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from typing import Any

from binaries.launching import stopping

# Third-party libraries that programs import and that take time.
_LIBRARIES = (
  'tensorflow',
  'tensorflow_federated',
  'tensorflow_privacy',
  'tensorflow_datasets',
  'sklearn.linear_model',
  'matplotlib.pyplot',
)
_PR_SET_PDEATHSIG = 1
# How often is asked whether a program has ended, at first and later.
_POLL_SECONDS = 0.02, 0.1
_STOPPING = (signal.SIGINT, signal.SIGTERM)
# Device files of GPUs, whose drivers a process and its fork cannot share.
_ACCELERATORS = ('/dev/nvidiactl', '/dev/kfd')


def can_fork() -> bool:
  """Returns whether programs can be forked here.

  Forking is only tried on Linux, and not if there is a GPU: a driver that was loaded
  before the fork may not work after it.
  """
  return sys.platform == 'linux' and not any(map(os.path.exists, _ACCELERATORS))


class Forks:
  """A process that forks programs on request, started with the first request."""

  def __init__(
    self,
    command: Sequence[str] = (),
    folder: pathlib.Path | None = None,
    nice: int = 0,
    libraries: Sequence[str] | None = None,
  ):
    """Starts nothing yet.

    Args:
      command: The command to start, if not `main` of this module.
      folder: The folder in which programs run; None: that of this process.
      nice: Added to their niceness.
      libraries: Modules that are imported before any program; None: the third-party
        modules that our programs import.
    """
    names = tuple(_LIBRARIES if libraries is None else libraries)
    code = f'from {__name__} import main; main({nice}, {names})'
    own = [sys.executable, '-c', code]
    self._command = [*command] or own
    self._folder = folder
    self._process: subprocess.Popen[str] | None = None
    self._numbers = itertools.count()
    self._asking = threading.Lock()

  def start(
    self,
    program: str,
    arguments: Sequence[str],
    environment: dict[str, str],
    files: Sequence[str],
  ) -> int:
    """Starts a program; returns the id of its process.

    Args:
      program: Its name, or the full name of another module.
      arguments: Its command line.
      environment: Variables that are added to those of this process.
      files: Paths to which its output and its errors are appended.

    Raises:
      ChildProcessError: If the forking process has ended.
    """
    request = [program, [*arguments], environment, [*files]]
    return int(self._ask(request))

  def status(self, pid: int) -> int | None:
    """Returns a program's exit status, negative for a signal; None while it runs."""
    try:
      found = self._ask(pid)
    except ChildProcessError:
      # Programs are killed with the forking process.
      return -signal.SIGKILL
    return None if found is None else int(found)

  def close(self) -> None:
    """Ends the forking process, and all programs that have not ended."""
    process, self._process = self._process, None
    if process is not None:
      process.kill()
      process.wait()

  def _begin(self) -> None:
    """Starts the forking process."""
    self._process = subprocess.Popen(
      self._command,
      cwd=self._folder,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
      # Ctrl-C is for the requesting process.
      start_new_session=True,
    )

  def _ask(self, request: object) -> Any:
    """Sends a request, for which several threads may wait; returns the answer."""
    with self._asking:
      return self._answer(request)

  def _answer(self, request: object) -> Any:
    if self._process is None:
      self._begin()
    process = self._process
    assert process and process.stdin and process.stdout
    number = next(self._numbers)
    try:
      process.stdin.write(json.dumps([number, request]) + '\n')
      process.stdin.flush()
      # An exception, such as Ctrl-C, may have left an answer to another request.
      answered = -1
      while answered != number:
        answered, answer = json.loads(process.stdout.readline())
    except (OSError, ValueError) as error:
      self.close()
      raise ChildProcessError('the process that forks programs has ended') from error
    return answer


class Process:
  """A program that was forked, with the interface of `subprocess.Popen`."""

  def __init__(
    self,
    by: Forks,
    arguments: Sequence[str],
    log: str,
    errors: str | None = None,
    environment: Mapping[str, str] = {},
  ):
    """Starts the program.

    Args:
      by: The process that forks it.
      arguments: The full name of a module, and its command line.
      log: Path to which its output is appended.
      errors: The same for what it prints to standard error; None: `log`.
      environment: Variables that are added to those of this process.
    """
    self._forks = by
    self.returncode: int | None = None
    files = [log, errors or log]
    self.pid = by.start(arguments[0], arguments[1:], {**environment}, files)

  def poll(self) -> int | None:
    """Returns its exit status; None while it runs."""
    if self.returncode is None:
      self.returncode = self._forks.status(self.pid)
    return self.returncode

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
    began = time.monotonic()
    least, most = _POLL_SECONDS
    while (status := self.poll()) is None:
      passed = time.monotonic() - began
      if timeout is not None and passed > timeout:
        raise subprocess.TimeoutExpired(f'process {self.pid}', timeout)
      time.sleep(min(most, max(least, passed / 10)))
    return status


def main(nice: int = 0, libraries: Sequence[str] = _LIBRARIES) -> None:
  """Imports libraries, then answers requests until its standard input ends.

  Args:
    nice: Added to the niceness of this process.
    libraries: Names of modules.
  """
  os.nice(nice)
  # If it has ended already, so has standard input.
  end_with_parent()
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  _prepare(libraries)
  # Kept because a status may be asked for again, if Ctrl-C has lost the answer.
  statuses: dict[int, int] = {}
  for line in sys.stdin:
    number, request = json.loads(line)
    answer: int | None
    if isinstance(request, int):
      if request not in statuses:
        pid, found = os.waitpid(request, os.WNOHANG)
        if pid:
          statuses[pid] = os.waitstatus_to_exitcode(found)
      answer = statuses.get(request)
    else:
      forking = os.getpid()
      # A signal that comes before the child handles it is not ignored, but waits.
      signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
      answer = os.fork()
      if not answer:
        _live(forking, *request)
      signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
      statuses.pop(answer, None)
    print(json.dumps([number, answer]), flush=True)


def end_with_parent(parent: int | None = None) -> None:
  """Has the kernel kill this process when the one that started it ends.

  Args:
    parent: The process that started it. If it has ended already, of which the kernel
      tells nothing any more, this process is killed now. None: not checked.
  """
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
  if parent is not None and os.getppid() != parent:
    os.kill(os.getpid(), signal.SIGKILL)


def _prepare(libraries: Sequence[str]) -> None:
  """Imports libraries."""
  for name in libraries:
    importlib.import_module(name)
  if (tff := sys.modules.get('tensorflow_federated')) is not None:
    # TFF's default context has a thread, which the children would not have.
    tff.test.set_no_default_context()
  gc.freeze()


def _live(
  parent: int,
  program: str,
  arguments: list[str],
  environment: dict[str, str],
  files: list[str],
) -> None:
  """Runs a program in this forked process, and ends the process."""
  status = 1
  try:
    end_with_parent(parent)
    for number in _STOPPING:
      signal.signal(number, signal.SIG_DFL)
    stopping.while_it_imports()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    for place, path in enumerate([os.devnull, *files]):
      flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
      os.dup2(os.open(path, flags if place else os.O_RDONLY, 0o600), place)
    os.environ.update(environment)
    tempfile.tempdir = None
    # Each child has its own draws if it sets no seed.
    random.seed()
    importlib.import_module('numpy').random.seed()
    sys.argv = [program, *arguments]
    # `runpy` puts the path there, like `python -m`.
    module = program if '.' in program else f'binaries.{program}'
    # A test may have imported it before the fork.
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name='__main__', alter_sys=True)
    status = 0
  except SystemExit as ended:
    status = ended.code if isinstance(ended.code, int) else 1
  except BaseException:
    traceback.print_exc()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(status)
