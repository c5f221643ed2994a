"""Time, CPU time and memory of two sides that take turns.

They alternate, so that whatever else the machine does slows both. CPU time counts all
threads, including spinning while they wait, which wall time on idle cores hides.
"""

import collections
from collections.abc import Callable, Mapping
import functools
import statistics
import time
from typing import Any, NamedTuple

from docs.bench import sides
from tff_ssl.execution import contexts

# Rounds that are not measured. The first traces graphs; over the first few the worker
# opens its sessions, and oneDNN prepares its kernels in each thread.
WARM_UP_ROUNDS = 3
_REPORTED = ('bytes_down', 'bytes_up', 'nonfinite_clients')

Numbers = collections.OrderedDict[str, float]


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


def compare(
  execution: contexts.Context,
  federated: sides.Side,
  centralized: sides.Side,
  rounds: int,
) -> Numbers:
  """Measures rounds of two sides, one after the other.

  Args:
    execution: The context; if it has a worker, no other context uses that worker.
    federated: What is measured.
    centralized: What it is measured against.
    rounds: Number of rounds; at least 1.

  Returns:
    Medians over the rounds, in seconds, and their ratios; what the last round reports
    of bytes and of discarded clients; and peaks of memory in MiB.
  """
  for number in range(WARM_UP_ROUNDS):
    federated.round(number)
    centralized.round(number)
  samples: dict[str, list[float]] = collections.defaultdict(list)
  for number in range(WARM_UP_ROUNDS, WARM_UP_ROUNDS + rounds):
    taken, step = (
      timed(functools.partial(side.round, number), execution.cpu_seconds)
      for side in (federated, centralized)
    )
    # The worker has no part in the centralized step. What it does meanwhile, such as
    # freeing its values, follows from a round. In process there is no worker.
    driver = taken.cpu['driver']
    worker = taken.cpu.get('worker', 0.0) + step.cpu.get('worker', 0.0)
    for name, value in (
      ('federated_seconds', taken.seconds),
      ('centralized_seconds', step.seconds),
      ('federated_driver_cpu_seconds', driver),
      ('federated_worker_cpu_seconds', worker),
      ('federated_cpu_seconds', driver + worker),
      ('centralized_cpu_seconds', step.cpu['driver']),
    ):
      samples[name].append(value)
  result: Numbers = collections.OrderedDict(
    (name, statistics.median(values)) for name, values in samples.items()
  )
  for name in ('seconds', 'cpu_seconds'):
    # The kernel counts CPU time in ticks of 10 ms: a tiny step may have taken zero.
    divisor = result[f'centralized_{name}'] or float('nan')
    result[name.replace('seconds', 'ratio')] = result[f'federated_{name}'] / divisor
  result.update(
    (name, taken.result[name]) for name in _REPORTED if name in taken.result
  )
  peaks = execution.peak_memory()
  result['peak_memory_mib'] = sum(peaks.values())
  result.update((f'{name}_peak_memory_mib', mib) for name, mib in peaks.items())
  return result
