"""Whether processes have ended."""

import time

import psutil


def gone(pid: int, seconds: float = 5.0) -> bool:
  """Returns whether the process ends within the time.

  A zombie has ended: in a container, nobody may be there to collect orphans.
  """
  deadline = time.monotonic() + seconds
  while _runs(pid):
    if time.monotonic() > deadline:
      return False
    time.sleep(0.02)
  return True


def _runs(pid: int) -> bool:
  try:
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return False
