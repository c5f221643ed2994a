"""Time and CPU time of contestants that take turns, and the machine they run on.

They alternate, so that whatever else the machine does slows all. CPU time counts all
threads, including spinning while they wait, which wall time on idle cores hides.
"""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import importlib.metadata
import os
import platform
import time
from typing import Any, NamedTuple

from tff_ssl.computing import processor

_PACKAGES = ('tensorflow', 'tensorflow-federated', 'numpy')


class Timed(NamedTuple):
  """Something that was done once.

  Attributes:
    result: What it returned.
    seconds: Wall seconds.
    cpu: CPU seconds by process.
  """

  result: Any
  seconds: float
  cpu: Mapping[str, float]


def timed(
  work: Callable[[], Any], cpu_seconds: Callable[[], Mapping[str, float]]
) -> Timed:
  """Does something, and measures it.

  Args:
    work: Does it.
    cpu_seconds: Returns the CPU seconds so far, by process.
  """
  before, started = cpu_seconds(), time.perf_counter()
  result = work()
  ended, after = time.perf_counter(), cpu_seconds()
  cpu = {name: value - before.get(name, 0.0) for name, value in after.items()}
  return Timed(result, ended - started, cpu)


def turns(names: Sequence[str], count: int) -> Iterator[str]:
  """Yields whose turn it is; a different contestant begins each time.

  Args:
    names: The contestants.
    count: Number of turns of each.
  """
  for turn in range(count):
    first = turn % max(len(names), 1)
    yield from (*names[first:], *names[:first])


def machine() -> dict[str, Any]:
  """Returns what the numbers depend on apart from the configuration."""
  return collections.OrderedDict(
    cpu_count=len(os.sched_getaffinity(0)),
    cpu_model=processor.model() or platform.machine(),
    bfloat16=processor.bfloat16_units(),
    load_average=os.getloadavg()[0],
    python=platform.python_version(),
    **{name: importlib.metadata.version(name) for name in _PACKAGES},
  )
