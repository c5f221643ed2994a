"""Measures the cohorts of a benchmark, and prints the numbers."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import gc
from typing import Any

from binaries.benchmarking import experiments
from binaries.benchmarking import measure
from binaries.benchmarking import report
from binaries.benchmarking import sides
from binaries.benchmarking import workloads
from binaries.building import encoders
from binaries.building import execution
from binaries.building import training
from binaries.config import run_config
from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.encoders import precision
from tff_ssl.execution import contexts
from tff_ssl.objectives import dual_encoder


@dataclasses.dataclass(frozen=True)
class Comparison:
  """What is compared.

  Attributes:
    experiment: One of `experiments.NAMES`.
    objective: One of `experiments.OBJECTIVES`, for experiments that take any.
    image_size: Height and width of the images.
    regime: One of `workloads.REGIMES`, or None.
    axis: The size of a cohort that has several values, if one has.
  """

  experiment: str
  objective: str
  image_size: int
  regime: str | None
  axis: str | None


def run(
  config: run_config.RunConfig,
  comparison: Comparison,
  sizes: Sequence[Mapping[str, int]],
  as_json: bool,
) -> None:
  """Measures each cohort, and prints the result.

  Args:
    config: Encoder, views, clients' training, rounds, seed and runtime.
    comparison: What is compared.
    sizes: The sizes of the cohorts, if there is no regime.
    as_json: Whether a JSON object is printed, instead of a line for each cohort.
  """
  precision.check(config.encoder.precision)
  if comparison.experiment == experiments.PRECISION:
    precision.check(network.BFLOAT16)
  shape = (comparison.image_size, comparison.image_size, 3)
  model = encoders.siamese(config, encoders.of_shape(config, shape))
  results = []
  with execution.open_context(config) as context:
    for workload in _cohorts(config, comparison, sizes):
      # Frees the graphs of the previous cohort, which are in reference cycles.
      gc.collect()
      results.append(_measure(context, config, comparison, model, workload))
      if not as_json:
        print(report.line(results[-1]), flush=True)
  axis = comparison.axis
  slopes = report.slopes(results, axis) if axis else {}
  if as_json:
    measured = {'points': results} if axis else results[0]
    settings = _settings(config, comparison)
    print(report.json_text({**settings, **slopes, **measured, **report.machine()}))
  elif axis:
    print(
      f'seconds grow as {axis} to the power of {slopes["federated_slope"]:.2f} '
      f'(federated), {slopes["centralized_slope"]:.2f} (centralized)'
    )


def _cohorts(
  config: run_config.RunConfig,
  comparison: Comparison,
  sizes: Sequence[Mapping[str, int]],
) -> list[workloads.Workload]:
  if comparison.regime is not None:
    return [workloads.REGIMES[comparison.regime]]
  local = training.plan(config)
  return [workloads.Workload(**each, local=local) for each in sizes]


def _measure(
  context: contexts.Context,
  config: run_config.RunConfig,
  comparison: Comparison,
  model: dual_encoder.Siamese,
  workload: workloads.Workload,
) -> dict[str, Any]:
  """Measures one cohort; returns its description and its numbers."""
  seed = config.random_seed
  clients = workloads.register(
    workload, comparison.image_size, seed, config.runtime.packs
  )
  problem = experiments.Problem(
    model, clients, workload.local, seed, comparison.objective
  )
  times = measure.compare(
    context, *sides.build(problem, comparison.experiment), config.rounds
  )
  visited = sides.visited_examples(problem, round=0)
  examples = sum(len(clients.partition[k]) for k in clients.cohorts(0))
  takes_objective = comparison.experiment in experiments.WITH_OBJECTIVE
  return collections.OrderedDict(
    # Repeated for each cohort, so that each line of a table names its experiment.
    experiment=comparison.experiment,
    objective=comparison.objective if takes_objective else None,
    regime=comparison.regime,
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


def _settings(config: run_config.RunConfig, comparison: Comparison) -> dict[str, Any]:
  """Returns the part of what was measured that is the same for every cohort."""
  return collections.OrderedDict(
    experiment=comparison.experiment,
    growth=comparison.axis,
    encoder=config.encoder.kind,
    encoder_width=config.encoder.width,
    encoder_stem=getattr(config.encoder, 'stem', None),
    encoder_patch=getattr(config.encoder, 'patch', None),
    precision=config.encoder.precision,
    projector=list(config.objective.projector),
    augmentation=config.augmentation,
    image_shape=[comparison.image_size, comparison.image_size, 3],
    seed=config.seed,
    packs=config.runtime.packs,
    runtime=kinds.kind_of(config.runtime),
    rounds=config.rounds,
    warm_up_rounds=measure.WARM_UP_ROUNDS,
  )
