"""Waiting for what other processes do, and whether they have ended."""

from collections.abc import Callable
import time
from typing import Any

import psutil


def wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
  """Returns what a condition gives once that is true; fails if it takes too long."""
  deadline = time.monotonic() + seconds
  while not (found := condition()):
    assert time.monotonic() < deadline
    time.sleep(0.01)
  return found


def has_ended(pid: int) -> bool:
  """Returns whether a process has ended.

  A zombie has: in a container, nobody may be there to collect orphans.
  """
  try:
    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return True
