"""Memory and CPU time of processes."""

import collections
from collections.abc import Mapping
import pathlib
import re

import psutil

_MIB = 2**20
_PEAK = re.compile(r'^VmHWM:\s+(\d+) kB', re.MULTILINE)


def memory(pids: Mapping[str, int]) -> collections.OrderedDict[str, float]:
  """Returns the resident memory [MiB] of each named process.

  Args:
    pids: Process ids by name. A process that is gone is left out.
  """
  found = collections.OrderedDict()
  for name, pid in pids.items():
    try:
      found[name] = psutil.Process(pid).memory_info().rss / _MIB
    except psutil.NoSuchProcess:
      continue
  return found


def peak_memory(pids: Mapping[str, int]) -> collections.OrderedDict[str, float]:
  """Returns the highest resident memory [MiB] that each process has had so far.

  This is the kernel's own high-water mark: sampling would miss short peaks.

  Args:
    pids: Process ids by name. A process that is gone is left out.
  """
  found = collections.OrderedDict()
  for name, pid in pids.items():
    try:
      status = pathlib.Path(f'/proc/{pid}/status').read_text(errors='replace')
    except (FileNotFoundError, ProcessLookupError):
      continue
    # Missing for a process that has ended and was not waited for.
    if peak := _PEAK.search(status):
      found[name] = int(peak.group(1)) / 1024
  return found


def cpu_seconds(pids: Mapping[str, int]) -> collections.OrderedDict[str, float]:
  """Returns user plus system CPU seconds of all threads of each process.

  Args:
    pids: Process ids by name. A process that is gone is left out.
  """
  found = collections.OrderedDict()
  for name, pid in pids.items():
    try:
      times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
      continue
    found[name] = times.user + times.system
  return found
