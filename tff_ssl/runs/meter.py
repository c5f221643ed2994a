"""Time and memory of rounds."""

import collections
from collections.abc import Mapping
import os
import time

from tff_ssl.execution import contexts
from tff_ssl.execution import resources


class Meter:
  """Time and memory of one round."""

  def __init__(self, execution: contexts.Context | None):
    """Measures this process, or an execution context with its workers.

    Args:
      execution: The context, if there is one.
    """
    self._execution = execution
    self._values: collections.OrderedDict[str, float] = collections.OrderedDict()
    self._started = self._cpu_started = 0.0

  def start(self) -> None:
    """Forgets everything measured, and begins anew."""
    self._values.clear()
    self._started, self._cpu_started = time.monotonic(), self._cpu_seconds()

  def split(self, name: str) -> None:
    """Gives the seconds since the last split this name."""
    now = time.monotonic()
    self._values[name] = now - self._started
    self._started = now

  def read(self) -> collections.OrderedDict[str, float]:
    """Returns everything measured since `start`, with the memory now."""
    self._values['cpu_seconds'] = self._cpu_seconds() - self._cpu_started
    for name, mib in self._memory().items():
      self._values[f'{name}_mib'] = mib
    return collections.OrderedDict(self._values)

  def _cpu_seconds(self) -> float:
    if self._execution is not None:
      return sum(self._execution.cpu_seconds().values())
    return sum(resources.cpu_seconds({'driver': os.getpid()}).values())

  def _memory(self) -> Mapping[str, float]:
    if self._execution is not None:
      return self._execution.memory()
    return resources.memory({'driver': os.getpid()})
