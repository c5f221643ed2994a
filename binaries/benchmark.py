r"""Measures a federated round against a centralized step on the same examples.

  python -m binaries.benchmark --experiment=fedavg --regime=B
  python -m binaries.benchmark --experiment=dcco --clients=64 --examples_per_client=4
  python -m binaries.benchmark --experiment=dcco --growth=clients --rounds=5 \
      --plot=growth.png

Both sides have the same network, objective, augmentation, seed and way of reading
random images; they take turns for `--rounds` rounds after a warm-up, and medians are
reported. `cpu_ratio` divides the CPU seconds of driver and worker by those of the
centralized step: unlike `ratio`, of wall times, it hardly depends on what else runs.
DCCO's floor is 4/3, for its clients encode twice. Others have 1: `fedema` and
`per_ssfl` are measured against the same rounds in memory, client after client.

`--regime` sets the cohort: A, 128 clients of 4 examples; B, 5 of 500, which train in
batches of 50; C, 512 of 1; D, 256 cases of 1 to 6. `--growth` measures a list of
cohorts, or of populations from which 64 clients are drawn each round.

`--format=json` prints one JSON object, with all numbers and the machine, and nothing
else; `--format=table` a line for each cohort.
"""

import collections
from typing import Any

from absl import flags

from binaries import benchmark_experiments
from binaries import benchmark_flags
from binaries import benchmark_measure
from binaries import benchmark_problem
from binaries import benchmark_report
from binaries import benchmark_workloads
from binaries import common
from binaries import output_flags
from tff_ssl.objectives import dual_encoder
from tff_ssl.runtime import context

_PROJECTOR = (256, 256, 256)
_IMAGE_SIZE = 32

flags.set_default(common.ROUNDS, 10)


def main() -> None:
  """Measures, and prints the result."""
  benchmark_flags.check()
  model = _build_model()
  growth = benchmark_flags.GROWTH.value
  with context.local() as execution:
    results = []
    for workload in benchmark_flags.workloads():
      results.append(_measure(execution, model, workload))
      if benchmark_flags.FORMAT.value == 'table':
        print(benchmark_report.line(results[-1]), flush=True)
  document = _configuration()
  if growth is None:
    document.update(results[0])
  else:
    axis = benchmark_workloads.GROWTH[growth]
    document.update(benchmark_report.slopes(results, axis.field), points=results)
  document.update(benchmark_report.machine())
  if benchmark_flags.FORMAT.value == 'json':
    print(benchmark_report.json_text(document))
  elif growth is not None:
    print(benchmark_report.slopes_line(document, growth))
  if output_flags.PLOT.value is not None:
    # Only here: the first import of matplotlib writes its cache, and may say so.
    from binaries import benchmark_plot

    benchmark_plot.write(document, output_flags.PLOT.value)


def _build_model() -> dual_encoder.Siamese:
  size = _image_size()
  encoder = common.build_encoder_of_shape((size, size, 3))
  return common.build_siamese(encoder, _PROJECTOR)


def _image_size() -> int:
  return common.IMAGE_SIZE.value or _IMAGE_SIZE


def _measure(
  execution: context.Context,
  model: dual_encoder.Siamese,
  workload: benchmark_workloads.Workload,
) -> dict[str, Any]:
  """Measures one cohort; returns what it is and its numbers."""
  seed = common.SEED.value
  clients = benchmark_workloads.register(
    workload, _image_size(), seed, common.PACKS.value
  )
  problem = benchmark_problem.Problem(
    model, clients, workload.local, seed, benchmark_flags.OBJECTIVE.value
  )
  build = benchmark_experiments.EXPERIMENTS[benchmark_flags.EXPERIMENT.value]
  runner = benchmark_measure.Runner(problem, build(problem))
  memory_rounds = benchmark_flags.MEMORY_ROUNDS.value
  memory = (
    benchmark_measure.memory_growth(execution, runner, memory_rounds)
    if memory_rounds
    else benchmark_measure.Numbers()
  )
  times = benchmark_measure.compare(execution, runner, common.ROUNDS.value)
  takes_any = benchmark_flags.EXPERIMENT.value in benchmark_experiments.WITH_OBJECTIVE
  objective = benchmark_flags.OBJECTIVE.value if takes_any else None
  visited = benchmark_experiments.visited_examples(problem, round=0)
  examples = visited // workload.local.epochs
  return collections.OrderedDict(
    # The lines of growth are read without what is above them.
    experiment=benchmark_flags.EXPERIMENT.value,
    objective=objective,
    regime=benchmark_flags.REGIME.value,
    clients=workload.clients,
    examples_per_client=workload.examples_per_client or examples / workload.clients,
    examples=examples,
    population=len(clients.partition),
    local_epochs=workload.local.epochs,
    batch_size=workload.local.batch_size,
    **times,
    samples_per_second=visited / times['federated_seconds'],
    centralized_samples_per_second=visited / times['centralized_seconds'],
    bytes_down=runner.metrics['bytes_down'],
    bytes_up=runner.metrics['bytes_up'],
    nonfinite_clients=runner.metrics['nonfinite_clients'],
    register_seconds=clients.register_seconds,
    **benchmark_measure.peak_memory(execution),
    **memory,
  )


def _configuration() -> dict[str, Any]:
  """Returns what was measured, as far as it is the same for every cohort."""
  return collections.OrderedDict(
    experiment=benchmark_flags.EXPERIMENT.value,
    growth=benchmark_flags.GROWTH.value,
    encoder=common.ENCODER.value,
    encoder_width=common.WIDTH.value,
    encoder_stem=common.STEM.value,
    encoder_patch=common.PATCH.value,
    projector=list(common.projector_widths(_PROJECTOR)),
    augmentation=common.AUGMENTATION.value,
    image_shape=[_image_size(), _image_size(), 3],
    seed=common.SEED.value,
    packs=common.PACKS.value,
    rounds=common.ROUNDS.value,
    warm_up_rounds=benchmark_measure.WARM_UP_ROUNDS,
  )


if __name__ == '__main__':
  common.run(main)
