"""Runs a command, and leaves nothing of what it has started, however it ends.

Ray starts processes in sessions of their own, which outlive the one that asked for them
when that is killed. The guard is the parent of them all: the kernel gives it those that
lose theirs. It ends them when the command has ended, and when its own parent has.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
import types

import psutil

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
# Between looks for what is left, in seconds.
_PAUSE = 0.01
_ENTRY = 'from binaries.benchmarking.racing import guard; guard.main()'


def command(guarded: list[str]) -> list[str]:
  """Returns the command that runs another one under the guard.

  Args:
    guarded: The other.
  """
  return [sys.executable, '-c', _ENTRY, str(os.getpid()), *guarded]


def main() -> None:
  """Runs the command of the command line; ends with its status."""
  parent, *guarded = sys.argv[1:]
  signal.signal(signal.SIGTERM, _end)
  prctl = ctypes.CDLL(None).prctl
  prctl(_SET_CHILD_SUBREAPER, 1)
  prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
  if os.getppid() != int(parent):
    # It had ended before the kernel was told.
    sys.exit(1)
  status = 1
  try:
    status = subprocess.Popen(guarded).wait()
  finally:
    _kill_all()
  sys.exit(status)


def _end(number: int, frame: types.FrameType | None) -> None:
  """Ends the guard by SystemExit, so that `main` kills what is left."""
  del number, frame
  raise SystemExit(1)


def _kill_all() -> None:
  """Kills what there is below this process, and what those start meanwhile."""
  signal.signal(signal.SIGTERM, signal.SIG_IGN)
  while found := psutil.Process().children(recursive=True):
    for process in found:
      with contextlib.suppress(psutil.Error):
        process.kill()
    # Reaps all that have ended, also those that lost their parent; what was started
    # meanwhile is found in the next turn.
    with contextlib.suppress(ChildProcessError):
      while os.waitpid(-1, os.WNOHANG)[0]:
        pass
    time.sleep(_PAUSE)
