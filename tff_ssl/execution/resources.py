"""Memory and CPU time of processes."""

import collections
from collections.abc import Callable, Mapping
import pathlib
import re

import psutil

_MIB = 2**20
_PEAK = re.compile(r'^VmHWM:\s+(\d+) kB', re.MULTILINE)

_Numbers = collections.OrderedDict[str, float]


def memory(pids: Mapping[str, int]) -> _Numbers:
  """Returns the resident memory [MiB] of each named process.

  Args:
    pids: Process ids by name. A process that is gone is left out.
  """
  return _measured(pids, lambda pid: psutil.Process(pid).memory_info().rss / _MIB)


def peak_memory(pids: Mapping[str, int]) -> _Numbers:
  """Returns the highest resident memory [MiB] that each process has had so far.

  This is the kernel's own high-water mark: sampling would miss short peaks.

  Args:
    pids: Process ids by name. A process that is gone is left out.
  """
  return _measured(pids, _peak)


def cpu_seconds(pids: Mapping[str, int]) -> _Numbers:
  """Returns user plus system CPU seconds of all threads of each process.

  Args:
    pids: Process ids by name. A process that is gone is left out.
  """
  return _measured(pids, lambda pid: sum(psutil.Process(pid).cpu_times()[:2]))


def _measured(
  pids: Mapping[str, int], measure: Callable[[int], float | None]
) -> _Numbers:
  numbers: _Numbers = collections.OrderedDict()
  for name, pid in pids.items():
    try:
      number = measure(pid)
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
      continue
    if number is not None:
      numbers[name] = number
  return numbers


def _peak(pid: int) -> float | None:
  """Returns a peak; None for a process that has ended and was not waited for."""
  peak = _PEAK.search(pathlib.Path(f'/proc/{pid}/status').read_text(errors='replace'))
  return int(peak.group(1)) / 1024 if peak else None
