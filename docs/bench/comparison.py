"""Measures the cohorts of a benchmark, and prints the numbers."""

import collections
from collections.abc import Mapping, Sequence
import functools
import gc
from typing import Any

import numpy as np
import pandas as pd

from binaries.building import encoders
from binaries.building import execution
from binaries.config import run_config
from docs.bench import __main__ as bench
from docs.bench import experiments
from docs.bench import measure
from docs.bench import sides
from docs.bench import workloads
from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.encoders import precision
from tff_ssl.execution import contexts
from tff_ssl.objectives import dual_encoder

# Rounds that are not measured. The first traces graphs; over the first few the worker
# opens its sessions, and oneDNN prepares its kernels in each thread.
WARM_UP_ROUNDS = 3
_REPORTED = ('bytes_down', 'bytes_up', 'nonfinite_clients')
_SIDES = ('federated', 'centralized')

Numbers = collections.OrderedDict[str, Any]


def run(
  config: run_config.RunConfig,
  options: bench.Options,
  cohorts: Sequence[Mapping[str, int]],
  axis: str | None,
) -> None:
  """Measures each cohort, and prints the result.

  Args:
    config: Encoder, views, clients' training, rounds, seed and runtime.
    options: What is measured.
    cohorts: The sizes of the cohorts, if there is no regime.
    axis: The size of a cohort that has several values, if one has.
  """
  precision.check(config.encoder.precision)
  if options.experiment == experiments.PRECISION:
    precision.check(network.BFLOAT16)
  shape = (options.image_size, options.image_size, 3)
  model = encoders.siamese(config, encoders.of_shape(config, shape))
  every = [workloads.Workload(**each, local=config.clients) for each in cohorts]
  if options.regime is not None:
    every = [workloads.REGIMES[options.regime]]
  results, as_json = [], options.format == 'json'
  with execution.open_context(config) as context:
    for workload in every:
      # Frees the graphs of the previous cohort, which are in reference cycles.
      gc.collect()
      results.append(_measure(context, config, options, model, workload))
      if not as_json:
        print(_line(results[-1]), flush=True)
  grown = slopes(results, axis) if axis else {}
  if as_json:
    measured = {'points': results} if axis else results[0]
    settings = _settings(config, options, axis)
    document = {**settings, **grown, **measured, **measure.machine()}
    # JSON has no NaN, for which pandas writes null.
    print(pd.Series(document, dtype=object).to_json())
  elif axis:
    print(
      f'seconds grow as {axis} to the power of {grown["federated_slope"]:.2f} '
      f'(federated), {grown["centralized_slope"]:.2f} (centralized)'
    )


def compare(
  execution: contexts.Context,
  federated: sides.Side,
  centralized: sides.Side,
  rounds: int,
) -> Numbers:
  """Measures rounds of two sides, which take turns.

  Args:
    execution: The context; if it has a worker, no other context uses that worker.
    federated: What is measured.
    centralized: What it is measured against.
    rounds: Number of rounds; at least 1.

  Returns:
    Medians over the rounds, in seconds, and their ratios; what the last round reports
    of bytes and of discarded clients; and peaks of memory in MiB.
  """
  both = dict(zip(_SIDES, (federated, centralized), strict=True))
  taken: dict[str, list[measure.Timed]] = {name: [] for name in both}
  for name in measure.turns(_SIDES, WARM_UP_ROUNDS + rounds):
    work = functools.partial(both[name].round, len(taken[name]))
    taken[name].append(measure.timed(work, execution.cpu_seconds))
  rows = []
  for own, step in list(zip(*taken.values(), strict=True))[WARM_UP_ROUNDS:]:
    # The worker has no part in the centralized step. What it does meanwhile, such as
    # freeing its values, follows from a round. In process there is no worker.
    driver = own.cpu['driver']
    worker = own.cpu.get('worker', 0.0) + step.cpu.get('worker', 0.0)
    rows.append(
      {
        'federated_seconds': own.seconds,
        'centralized_seconds': step.seconds,
        'federated_driver_cpu_seconds': driver,
        'federated_worker_cpu_seconds': worker,
        'federated_cpu_seconds': driver + worker,
        'centralized_cpu_seconds': step.cpu['driver'],
      }
    )
  result: Numbers = collections.OrderedDict(pd.DataFrame(rows).median())
  for name in ('seconds', 'cpu_seconds'):
    # The kernel counts CPU time in ticks of 10 ms: a tiny step may have taken zero.
    divisor = result[f'centralized_{name}'] or float('nan')
    result[name.replace('seconds', 'ratio')] = result[f'federated_{name}'] / divisor
  last = taken['federated'][-1].result
  result.update((name, last[name]) for name in _REPORTED if name in last)
  peaks = execution.peak_memory()
  result['peak_memory_mib'] = sum(peaks.values())
  result.update((f'{name}_peak_memory_mib', mib) for name, mib in peaks.items())
  return result


def _measure(
  context: contexts.Context,
  config: run_config.RunConfig,
  options: bench.Options,
  model: dual_encoder.Siamese,
  workload: workloads.Workload,
) -> dict[str, Any]:
  """Measures one cohort; returns its description and its numbers."""
  seed = config.random_seed
  sizes = workload.sizes(seed)
  images = workloads.random_images(int(sizes.sum()), options.image_size, seed)
  clients = workloads.register(
    images, sizes, workload.clients, seed, config.runtime.packs
  )
  problem = experiments.Problem(
    model, clients, workload.local, seed, options.objective or 'simclr'
  )
  times = compare(context, *sides.build(problem, options.experiment), config.rounds)
  visited = sides.visited_examples(problem, round=0)
  examples = sum(len(clients.partition[k]) for k in clients.cohorts(0))
  takes_objective = options.experiment in experiments.WITH_OBJECTIVE
  return collections.OrderedDict(
    # Repeated for each cohort, so that each line of a table names its experiment.
    experiment=options.experiment,
    objective=problem.objective if takes_objective else None,
    regime=options.regime,
    clients=workload.clients,
    examples_per_client=workload.examples_per_client or examples / workload.clients,
    examples=examples,
    population=len(clients.partition),
    local_epochs=workload.local.epochs,
    batch_size=workload.local.batch_size,
    **times,
    samples_per_second=visited / times['federated_seconds'],
    centralized_samples_per_second=visited / times['centralized_seconds'],
    register_seconds=clients.register_seconds,
  )


def _settings(
  config: run_config.RunConfig, options: bench.Options, axis: str | None
) -> dict[str, Any]:
  """Returns the part of what was measured that is the same for every cohort."""
  return collections.OrderedDict(
    experiment=options.experiment,
    growth=axis,
    encoder=kinds.to_text(config.encoder),
    projector=list(config.objective.projector),
    augmentation=config.augmentation,
    image_shape=[options.image_size, options.image_size, 3],
    packs=config.runtime.packs,
    runtime=kinds.kind_of(config.runtime),
    rounds=config.rounds,
    warm_up_rounds=WARM_UP_ROUNDS,
  )


def _line(result: Mapping[str, Any]) -> str:
  """Returns a result in one line, aligned with the lines of other results."""
  is_precision = result['experiment'] == experiments.PRECISION
  first, second = network.PRECISIONS[::-1] if is_precision else _SIDES
  text = (
    f'{{experiment:8s}} {result["regime"] or "":1s} {{clients:5d}} x '
    f'{{examples_per_client:<5.4g}} {first} {{federated_seconds:7.3f}} s  {second} '
    '{centralized_seconds:7.3f} s  ratio {ratio:5.2f}  CPU ratio {cpu_ratio:5.2f}'
    '  {samples_per_second:6.0f} samples/s  peak {peak_memory_mib:5.0f} MiB'
  )
  if result['population'] > result['clients']:
    text += '  of {population:6d} clients, registered in {register_seconds:.2f} s'
  return text.format(**result)


def slopes(results: Sequence[Mapping[str, Any]], field: str) -> dict[str, float]:
  """Fits the power of a field with which seconds grow, by least squares of logs.

  Args:
    results: At least two, with different values of `field`.
    field: The field that grows.

  Returns:
    `federated_slope` and `centralized_slope`: 1 where the time of a round is
    proportional to the field, 0 where it does not depend on it.
  """
  logs = np.log(pd.DataFrame(results)[[field, *(f'{side}_seconds' for side in _SIDES)]])
  powers, _ = np.polyfit(logs[field], logs.drop(columns=field), 1)
  return {f'{side}_slope': float(p) for side, p in zip(_SIDES, powers, strict=True)}
