"""Lives of programs that need not import TensorFlow again.

To import what a program imports takes five seconds, and tells nothing of the program. A
process that has imported the library forks a child for each life: a process of its own
with a command line, environment, files, signals and an exit status, killed as any
other. It has no thread that computes and no session before it forks, and no flag is
defined in it: the program's own modules are imported by the child. What is not tried so
is the import itself, and that is what lives of `python -m` are for (`programs`).
"""

from collections.abc import Sequence
import ctypes
import gc
import importlib
import json
import os
import pathlib
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from typing import Any

from binaries.flags import stopping
from binaries.torturing import hooks

_ROOT = pathlib.Path(__file__).parents[2]
_PACKAGES = ('tff_ssl', 'tasks')
_PR_SET_PDEATHSIG = 1


class Forks:
  """A process that forks lives when it is asked to, started with the first."""

  def __init__(self, command: Sequence[str] = ()):
    """Starts nothing yet.

    Args:
      command: What is started, if not `main` of this module.
    """
    own = [sys.executable, '-c', f'from {__name__} import main; main()']
    self._command = [*command] or own
    self._process: subprocess.Popen[str] | None = None

  def start(
    self,
    program: str,
    arguments: list[str],
    environment: dict[str, str],
    files: list[str],
    hook: str | None = None,
  ) -> int:
    """Starts a program; returns the id of its process.

    Args:
      program: Its name, or the full name of another module.
      arguments: Its command line.
      environment: What is added to that of this process.
      files: Paths that its output and its errors are written to.
      hook: What is changed in it before it begins; see `hooks.apply`.
    """
    return int(self._ask([program, arguments, environment, files, hook]))

  def status(self, pid: int) -> int | None:
    """Returns the exit status of a life, negative of a signal; None while it lives."""
    found = self._ask(pid)
    return None if found is None else int(found)

  def close(self) -> None:
    """Ends it, and all lives that have not ended."""
    if self._process is not None:
      self._process.kill()
      self._process.wait()
      self._process = None

  def _ask(self, request: object) -> Any:
    if self._process is None:
      self._process = subprocess.Popen(
        self._command,
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
      )
    assert self._process.stdin and self._process.stdout
    self._process.stdin.write(json.dumps(request) + '\n')
    self._process.stdin.flush()
    return json.loads(self._process.stdout.readline())


def main() -> None:
  """Imports the library, then answers requests until there is nobody to ask."""
  # Ctrl-C is for the campaign.
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  _prepare()
  for line in sys.stdin:
    request = json.loads(line)
    answer: int | None
    if isinstance(request, int):
      pid, found = os.waitpid(request, os.WNOHANG)
      answer = os.waitstatus_to_exitcode(found) if pid else None
    else:
      answer = os.fork()
      if not answer:
        _live(*request)
    print(json.dumps(answer), flush=True)


def _prepare() -> None:
  """Imports the library."""
  for name in _PACKAGES:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f'{name}.'):
      importlib.import_module(module.name)
  # TFF's own has a thread, which children would not have.
  importlib.import_module('tff_ssl.runtime.context').remove_default()
  gc.freeze()


def _live(
  program: str,
  arguments: list[str],
  environment: dict[str, str],
  files: list[str],
  hook: str | None,
) -> None:
  """Is the program from here on, and ends with it."""
  status = 1
  try:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM):
      signal.signal(number, signal.SIG_DFL)
    stopping.while_it_imports()
    for place, path in enumerate([os.devnull, *files]):
      flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
      os.dup2(os.open(path, flags if place else os.O_RDONLY, 0o600), place)
    os.environ.update(environment)
    tempfile.tempdir = None
    if hook is not None:
      hooks.apply(hook)
    sys.argv = [program, *arguments]
    # As of `python -m`, which has the path there.
    module = program if '.' in program else f'binaries.{program}'
    # Of a test that has imported it before it forks.
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
