"""Runs a command, and leaves no process that it started, however it ends.

Ray starts processes in sessions of their own. If the process that asked for them is
killed, they survive it. The guard becomes the parent of them all: the kernel assigns it
the processes that lose their parent. It ends them when the command has ended, or when
its own parent has.
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
# Seconds between checks for processes that are left.
_PAUSE = 0.01
_ENTRY = 'from binaries.benchmarking.racing import guard; guard.main()'


def command(guarded: list[str]) -> list[str]:
  """Returns the command that runs another command under the guard.

  Args:
    guarded: The other command.
  """
  return [sys.executable, '-c', _ENTRY, str(os.getpid()), *guarded]


def main() -> None:
  """Runs the command that the command line holds; exits with its status."""
  parent, *guarded = sys.argv[1:]
  signal.signal(signal.SIGTERM, _end)
  prctl = ctypes.CDLL(None).prctl
  prctl(_SET_CHILD_SUBREAPER, 1)
  prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
  if os.getppid() != int(parent):
    # The parent had ended before the kernel was told to signal its end.
    sys.exit(1)
  status = 1
  try:
    status = subprocess.Popen(guarded).wait()
  finally:
    _kill_all()
  sys.exit(status)


def _end(number: int, frame: types.FrameType | None) -> None:
  """Ends the guard with SystemExit, so that `main` kills what is left."""
  del number, frame
  raise SystemExit(1)


def _kill_all() -> None:
  """Kills all descendants of this process, and those that they start meanwhile."""
  signal.signal(signal.SIGTERM, signal.SIG_IGN)
  while found := psutil.Process().children(recursive=True):
    for process in found:
      with contextlib.suppress(psutil.Error):
        process.kill()
    # Reaps all that have ended, including those that lost their parent. The next pass
    # finds those that were started meanwhile.
    with contextlib.suppress(ChildProcessError):
      while os.waitpid(-1, os.WNOHANG)[0]:
        pass
    time.sleep(_PAUSE)
