"""Time, CPU time and memory of federated rounds and centralized steps.

The two alternate, so that whatever else the machine does slows both. CPU time counts
all threads, including spinning while they wait, which wall time on idle cores hides.
"""

import collections
import statistics
import time
from typing import Any

from binaries.benchmarking import experiments
from binaries.benchmarking import in_memory
from binaries.benchmarking import problems
from binaries.benchmarking import states
from tff_ssl.execution import contexts
from tff_ssl.runs import flat_metrics

# Rounds that are not measured. The first traces graphs; over the first few the worker
# opens its sessions, and oneDNN prepares its kernels in each thread.
WARM_UP_ROUNDS = 3
# Rounds after which memory is first read: one-time allocations are done by then.
MEMORY_SETTLED_ROUNDS = 20

Numbers = collections.OrderedDict[str, float]


class Runner:
  """Runs an experiment's two sides, each from its last state."""

  def __init__(
    self,
    problem: problems.Problem,
    experiment: problems.Experiment,
  ):
    """Starts both from their initial states, inside an execution context."""
    self._problem = problem
    self._experiment = experiment
    self._federated = experiment.federated.initialize()
    self._centralized = experiment.centralized.initialize()
    self.metrics: Numbers = collections.OrderedDict()

  def federated_round(self, round: int) -> None:
    """Runs a round, from drawing the cohort to reading its metrics."""
    federated = self._experiment.federated
    cohort: Any
    if isinstance(federated, states.StatefulClients):
      cohort = federated.cohort(self._problem.clients.cohorts(round))
    else:
      cohort = experiments.federated_cohort(self._problem, round)
    output: Any = federated.next(self._federated, cohort)
    self._federated = output.state
    self.metrics = flat_metrics.flatten(output.metrics['client_work'])

  def centralized_round(self, round: int) -> None:
    """Takes the steps on the same examples, from drawing them to reading metrics."""
    centralized: Any = self._experiment.centralized
    output: Any = None
    if isinstance(centralized, in_memory.InMemory):
      cohorts: list[Any] = [self._problem.clients.cohorts(round)]
    else:
      batches = experiments.centralized_batches(self._problem, round)
      cohorts = [[batch] for batch in batches]
    for cohort in cohorts:
      output = centralized.next(self._centralized, cohort)
      self._centralized = output.state
    flat_metrics.flatten(output.metrics)


def compare(execution: contexts.Context, runner: Runner, rounds: int) -> Numbers:
  """Measures rounds against centralized steps, one after the other.

  Args:
    execution: The context; if it has a worker, no other context uses that worker.
    runner: What is measured.
    rounds: Number of rounds; at least 1.

  Returns:
    Medians over the rounds, in seconds, and their ratios.
  """
  for round in range(WARM_UP_ROUNDS):
    runner.federated_round(round)
    runner.centralized_round(round)
  samples: dict[str, list[float]] = collections.defaultdict(list)
  for round in range(WARM_UP_ROUNDS, WARM_UP_ROUNDS + rounds):
    cpu_before, started = execution.cpu_seconds(), time.perf_counter()
    runner.federated_round(round)
    cpu_between, between = execution.cpu_seconds(), time.perf_counter()
    runner.centralized_round(round)
    cpu_after, ended = execution.cpu_seconds(), time.perf_counter()
    samples['federated_seconds'].append(between - started)
    samples['centralized_seconds'].append(ended - between)
    samples['federated_driver_cpu_seconds'].append(
      cpu_between['driver'] - cpu_before['driver']
    )
    # The worker has no part in the centralized step. What it does meanwhile, such as
    # freeing its values, follows from a round. In process there is no worker.
    samples['federated_worker_cpu_seconds'].append(
      cpu_after.get('worker', 0.0) - cpu_before.get('worker', 0.0)
    )
    samples['federated_cpu_seconds'].append(
      samples['federated_driver_cpu_seconds'][-1]
      + samples['federated_worker_cpu_seconds'][-1]
    )
    samples['centralized_cpu_seconds'].append(
      cpu_after['driver'] - cpu_between['driver']
    )
  result: Numbers = collections.OrderedDict(
    (name, statistics.median(values)) for name, values in samples.items()
  )
  result['ratio'] = result['federated_seconds'] / result['centralized_seconds']
  # The kernel counts CPU time in ticks of 10 ms: a tiny step may have taken zero.
  result['cpu_ratio'] = (
    result['federated_cpu_seconds'] / result['centralized_cpu_seconds']
    if result['centralized_cpu_seconds']
    else float('nan')
  )
  return result


def memory_growth(execution: contexts.Context, runner: Runner, rounds: int) -> Numbers:
  """Runs federated rounds and compares memory after 20 of them and after all.

  Args:
    execution: The context; if it has a worker, no other context uses that worker.
    runner: What is run, from its first round.
    rounds: More than `MEMORY_SETTLED_ROUNDS`.

  Returns:
    Resident MiB of `driver` and `worker` at both times, and the ratio of each.
  """
  for round in range(MEMORY_SETTLED_ROUNDS):
    runner.federated_round(round)
  settled = execution.memory()
  for round in range(MEMORY_SETTLED_ROUNDS, rounds):
    runner.federated_round(round)
  final = execution.memory()
  result: Numbers = collections.OrderedDict(memory_rounds=rounds)
  for name in settled:
    result[f'{name}_mib_settled'] = settled[name]
    result[f'{name}_mib_final'] = final[name]
    result[f'{name}_growth'] = final[name] / settled[name]
  return result


def peak_memory(execution: contexts.Context) -> Numbers:
  """Returns peak MiB of driver and worker, and their sum as `peak_memory_mib`."""
  peaks = execution.peak_memory()
  result: Numbers = collections.OrderedDict(peak_memory_mib=sum(peaks.values()))
  result.update((f'{name}_peak_memory_mib', mib) for name, mib in peaks.items())
  return result
