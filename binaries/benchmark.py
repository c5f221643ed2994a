r"""Measures a federated round against a centralized step on the same examples.

  python -m binaries.benchmark --experiment=fedavg --regime=B
  python -m binaries.benchmark --experiment=dcco --clients=64 --examples_per_client=4
  python -m binaries.benchmark --experiment=dcco --growth=clients --rounds=5 \
      --plot=growth.png

Both sides have the same network, objective, augmentation, seed and way of reading
random images. They take turns for `--rounds` rounds after a warm-up, and medians are
reported. `cpu_ratio` divides the CPU seconds of driver and worker by the CPU seconds of
the centralized step. Unlike `ratio`, which compares wall times, it hardly depends on
what else the machine runs. By passes through the network alone it would be 4/3 for
DCCO, whose clients encode twice, and 1 for the others: `fedema`, `per_ssfl` and
`featarc` are measured against the same rounds in memory, one client after another.
Images in chunks that stay in the cache can make it less.

`--regime` sets the cohort: A, 128 clients of 4 examples; B, 5 of 500, which train in
batches of 50; C, 512 of 1; D, 256 cases of 1 to 6. `--growth` measures several cohorts,
or several populations from which 64 clients are drawn each round.

`--experiment=precision` measures the centralized step alone, with the encoder in
float32 and in bfloat16 by turns. `--precision=bfloat16` measures other experiments in
bfloat16.

`--runtime=worker` measures rounds in TFF's worker.

`--format=json` prints a single JSON object with all numbers and the machine;
`--format=table` prints a line for each cohort.
"""

import collections
import gc
from typing import Any

from binaries.benchmarking import experiments
from binaries.benchmarking import measure
from binaries.benchmarking import precisions
from binaries.benchmarking import problems
from binaries.benchmarking import report
from binaries.benchmarking import settings
from binaries.benchmarking import workloads
from binaries.flags import common
from binaries.flags import hosts
from binaries.flags import methods
from binaries.flags import outputs
from binaries.flags import reading
from tff_ssl.execution import contexts
from tff_ssl.objectives import dual_encoder

_PROJECTOR = (256, 256, 256)
_IMAGE_SIZE = 32
# The flags that --help lists.
TAKEN = settings.TAKEN


def main() -> None:
  """Measures, and prints the result."""
  settings.check()
  model = _build_model()
  growth = settings.GROWTH.value
  with hosts.open_context() as execution:
    results = []
    for workload in settings.cohorts():
      # Frees the graphs of the previous cohort, which are in reference cycles.
      gc.collect()
      results.append(_measure(execution, model, workload))
      if settings.FORMAT.value == 'table':
        tell = precisions.line if _is_of_precisions() else report.line
        print(tell(results[-1]), flush=True)
  document = _configuration()
  if growth is None:
    document.update(results[0])
  else:
    axis = workloads.GROWTH[growth]
    document.update(report.slopes(results, axis.field), points=results)
  document.update(report.machine())
  if settings.FORMAT.value == 'json':
    print(report.json_text(document))
  elif growth is not None:
    print(report.slopes_line(document, growth))
  if outputs.PLOT.value is not None:
    # Imported only here: on its first import matplotlib writes its cache, and may
    # print a message about it.
    from binaries.benchmarking import growth_plot

    growth_plot.write(document, outputs.PLOT.value)


def _build_model() -> dual_encoder.Siamese:
  size = _image_size()
  encoder = common.build_encoder_of_shape((size, size, 3))
  return common.build_siamese(encoder, _PROJECTOR)


def _image_size() -> int:
  return reading.IMAGE_SIZE.value or _IMAGE_SIZE


def _measure(
  execution: contexts.Context,
  model: dual_encoder.Siamese,
  workload: workloads.Workload,
) -> dict[str, Any]:
  """Measures one cohort; returns its description and its numbers."""
  seed = common.SEED.value
  clients = workloads.register(workload, _image_size(), seed, common.PACKS.value)
  problem = problems.Problem(
    model, clients, workload.local, seed, methods.OBJECTIVE.value
  )
  about = _about(workload, problem)
  if _is_of_precisions():
    about.update(precisions.compare(problem, common.ROUNDS.value))
    return about
  build = experiments.EXPERIMENTS[settings.EXPERIMENT.value]
  runner = measure.Runner(problem, build(problem))
  memory_rounds = settings.MEMORY_ROUNDS.value
  memory = (
    measure.memory_growth(execution, runner, memory_rounds)
    if memory_rounds
    else measure.Numbers()
  )
  times = measure.compare(execution, runner, common.ROUNDS.value)
  visited = experiments.visited_examples(problem, round=0)
  return collections.OrderedDict(
    **about,
    **times,
    samples_per_second=visited / times['federated_seconds'],
    centralized_samples_per_second=visited / times['centralized_seconds'],
    bytes_down=runner.metrics['bytes_down'],
    bytes_up=runner.metrics['bytes_up'],
    nonfinite_clients=runner.metrics['nonfinite_clients'],
    register_seconds=clients.register_seconds,
    **measure.peak_memory(execution),
    **memory,
  )


def _is_of_precisions() -> bool:
  return settings.EXPERIMENT.value == precisions.NAME


def _about(
  workload: workloads.Workload, problem: problems.Problem
) -> collections.OrderedDict[str, Any]:
  """Returns the description of one cohort."""
  takes_any = settings.EXPERIMENT.value in settings.WITH_OBJECTIVE
  examples = experiments.held_examples(problem, round=0)
  return collections.OrderedDict(
    # Repeated for each cohort, so that each line of a table names its experiment.
    experiment=settings.EXPERIMENT.value,
    objective=methods.OBJECTIVE.value if takes_any else None,
    regime=settings.REGIME.value,
    clients=workload.clients,
    examples_per_client=workload.examples_per_client or examples / workload.clients,
    examples=examples,
    population=len(problem.clients.partition),
    local_epochs=workload.local.epochs,
    batch_size=workload.local.batch_size,
  )


def _configuration() -> dict[str, Any]:
  """Returns the part of what was measured that is the same for every cohort."""
  return collections.OrderedDict(
    experiment=settings.EXPERIMENT.value,
    growth=settings.GROWTH.value,
    encoder=common.ENCODER.value,
    encoder_width=common.WIDTH.value,
    encoder_stem=common.STEM.value,
    encoder_patch=common.PATCH.value,
    precision=None if _is_of_precisions() else common.PRECISION.value,
    projector=list(common.projector_widths(_PROJECTOR)),
    augmentation=common.AUGMENTATION.value,
    image_shape=[_image_size(), _image_size(), 3],
    seed=common.SEED.value,
    packs=common.PACKS.value,
    runtime=common.RUNTIME.value,
    rounds=common.ROUNDS.value,
    warm_up_rounds=measure.WARM_UP_ROUNDS,
  )


if __name__ == '__main__':
  common.run(main, TAKEN)
