"""Measures the cohorts of a benchmark, and prints the numbers."""

import collections
from collections.abc import Mapping, Sequence
import gc
from typing import Any

from binaries.building import encoders
from binaries.building import execution
from binaries.config import run_config
from docs.bench import experiments
from docs.bench import measure
from docs.bench import options as options_lib
from docs.bench import report
from docs.bench import sides
from docs.bench import workloads
from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.encoders import precision
from tff_ssl.execution import contexts
from tff_ssl.objectives import dual_encoder


def run(
  config: run_config.RunConfig,
  options: options_lib.Options,
  sizes: Sequence[Mapping[str, int]],
  axis: str | None,
) -> None:
  """Measures each cohort, and prints the result.

  Args:
    config: Encoder, views, clients' training, rounds, seed and runtime.
    options: What is measured.
    sizes: The sizes of the cohorts, if there is no regime.
    axis: The size of a cohort that has several values, if one has.
  """
  precision.check(config.encoder.precision)
  if options.experiment == experiments.PRECISION:
    precision.check(network.BFLOAT16)
  shape = (options.image_size, options.image_size, 3)
  model = encoders.siamese(config, encoders.of_shape(config, shape))
  results, as_json = [], options.format == 'json'
  with execution.open_context(config) as context:
    for workload in _cohorts(config, options, sizes):
      # Frees the graphs of the previous cohort, which are in reference cycles.
      gc.collect()
      results.append(_measure(context, config, options, model, workload))
      if not as_json:
        print(report.line(results[-1]), flush=True)
  slopes = report.slopes(results, axis) if axis else {}
  if as_json:
    measured = {'points': results} if axis else results[0]
    settings = _settings(config, options, axis)
    print(report.json_text({**settings, **slopes, **measured, **report.machine()}))
  elif axis:
    print(
      f'seconds grow as {axis} to the power of {slopes["federated_slope"]:.2f} '
      f'(federated), {slopes["centralized_slope"]:.2f} (centralized)'
    )


def _cohorts(
  config: run_config.RunConfig,
  options: options_lib.Options,
  sizes: Sequence[Mapping[str, int]],
) -> list[workloads.Workload]:
  if options.regime is not None:
    return [workloads.REGIMES[options.regime]]
  return [workloads.Workload(**each, local=config.clients) for each in sizes]


def _measure(
  context: contexts.Context,
  config: run_config.RunConfig,
  options: options_lib.Options,
  model: dual_encoder.Siamese,
  workload: workloads.Workload,
) -> dict[str, Any]:
  """Measures one cohort; returns its description and its numbers."""
  seed = config.random_seed
  clients = workloads.register(workload, options.image_size, seed, config.runtime.packs)
  problem = experiments.Problem(
    model, clients, workload.local, seed, options.objective or 'simclr'
  )
  times = measure.compare(
    context, *sides.build(problem, options.experiment), config.rounds
  )
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
  config: run_config.RunConfig, options: options_lib.Options, axis: str | None
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
    warm_up_rounds=measure.WARM_UP_ROUNDS,
  )
