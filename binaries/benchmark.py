r"""Measures a federated round against a centralized step on the same examples.

  python -m binaries.benchmark --experiment=fedavg --regime=B
  python -m binaries.benchmark --experiment=dcco --clients=64 --examples_per_client=4
  python -m binaries.benchmark --experiment=dcco --clients=8,32,128 --rounds=5

Both sides have the same network, objective, augmentation, seed and way of reading
random images. They take turns for `--rounds` rounds after a warm-up, and medians are
reported. `cpu_ratio` divides the CPU seconds of driver and worker by the CPU seconds of
the centralized step. Unlike `ratio`, which compares wall times, it hardly depends on
what else the machine runs. By passes through the network alone it would be 4/3 for
DCCO, whose clients encode twice, and 1 for the others: `fedema`, `per_ssfl` and
`featarc` are measured against the same rounds in memory, one client after another.
Images in chunks that stay in the cache can make it less.

`--regime` sets the cohort: A, 128 clients of 4 examples; B, 5 of 500, which train in
batches of 50; C, 512 of 1; D, 256 cases of 1 to 6. Otherwise `--clients`,
`--examples_per_client` and `--population` do; of one of them several values may be
given, and the powers with which the seconds grow are printed.

`--experiment=precision` measures the centralized step with the encoder in bfloat16
against the step in float32. `--precision=bfloat16` measures other experiments in
bfloat16. `--runtime=worker` measures rounds in TFF's worker.

`--format=json` prints a single JSON object with all numbers and the machine;
`--format=table` prints a line for each cohort.
"""

import collections
import gc
from typing import Any

from absl import flags

from binaries.benchmarking import experiments
from binaries.benchmarking import measure
from binaries.benchmarking import report
from binaries.benchmarking import sides
from binaries.benchmarking import workloads
from binaries.flags import common
from binaries.flags import hosts
from binaries.flags import methods
from binaries.flags import reading
from binaries.flags import training
from tff_ssl.encoders import network
from tff_ssl.encoders import precision
from tff_ssl.execution import contexts
from tff_ssl.federated import local_training
from tff_ssl.objectives import dual_encoder

_PROJECTOR = (256, 256, 256)
_IMAGE_SIZE = 32
# Values if the command line gives none.
_DEFAULTS = {'rounds': 10, 'local_epochs': 1, 'objective': 'simclr'}
_LOCAL = ('local_epochs', 'batch_size')
_COHORT = ('clients', 'examples_per_client', 'population')
# The flags that --help lists.
TAKEN = (
  'encoder',
  'encoder_width',
  'encoder_stem',
  'encoder_norm',
  'encoder_patch',
  'precision',
  'image_size',
  'projector',
  'augmentation',
  'rounds',
  'packs',
  'runtime',
  'seed',
  'experiment',
  'objective',
  'regime',
  *_COHORT,
  *_LOCAL,
  'format',
)

_EXPERIMENT = flags.DEFINE_enum(
  'experiment',
  'dcco',
  experiments.NAMES,
  'What is measured: rounds of an algorithm against the centralized step, or the '
  'centralized step in both precisions.',
)
_REGIME = flags.DEFINE_enum(
  'regime',
  None,
  tuple(workloads.REGIMES),
  'Sets clients, examples and batch: A: 128 x 4; B: 5 x 500 in batches of 50, not for '
  'dcco; C: 512 x 1; D: 256 cases of 1 to 6.',
)
_SIZES = {
  'clients': flags.DEFINE_list('clients', ['64'], 'Clients of a round, or several.'),
  'examples_per_client': flags.DEFINE_list(
    'examples_per_client', ['4'], 'Examples of each client, or several.'
  ),
  'population': flags.DEFINE_list(
    'population',
    None,
    'Registered clients, from which those of a round are drawn, or several; by default '
    'the clients of a round.',
  ),
}
_FORMAT = flags.DEFINE_enum('format', 'table', ('table', 'json'), 'What is printed.')


def main() -> None:
  """Measures, and prints the result."""
  _check()
  cohorts, axis = _cohorts()
  size = reading.IMAGE_SIZE.value or _IMAGE_SIZE
  model = common.build_siamese(
    common.build_encoder_of_shape((size, size, 3)), _PROJECTOR
  )
  results = []
  with hosts.open_context() as execution:
    for workload in cohorts:
      # Frees the graphs of the previous cohort, which are in reference cycles.
      gc.collect()
      results.append(_measure(execution, model, workload, size))
      if _FORMAT.value == 'table':
        print(report.line(results[-1]), flush=True)
  slopes = report.slopes(results, axis) if axis else {}
  if _FORMAT.value == 'json':
    measured = {'points': results} if axis else results[0]
    document = {**_configuration(axis, size), **slopes, **measured, **report.machine()}
    print(report.json_text(document))
  elif axis:
    print(
      f'seconds grow as {axis} to the power of {slopes["federated_slope"]:.2f} '
      f'(federated), {slopes["centralized_slope"]:.2f} (centralized)'
    )


def _measure(
  execution: contexts.Context,
  model: dual_encoder.Siamese,
  workload: workloads.Workload,
  image_size: int,
) -> dict[str, Any]:
  """Measures one cohort; returns its description and its numbers."""
  seed = common.SEED.value
  clients = workloads.register(workload, image_size, seed, common.PACKS.value)
  problem = experiments.Problem(
    model, clients, workload.local, seed, methods.OBJECTIVE.value
  )
  times = measure.compare(
    execution, *sides.build(problem, _EXPERIMENT.value), common.ROUNDS.value
  )
  visited = sides.visited_examples(problem, round=0)
  examples = sum(len(clients.partition[k]) for k in clients.cohorts(0))
  takes_objective = _EXPERIMENT.value in experiments.WITH_OBJECTIVE
  return collections.OrderedDict(
    # Repeated for each cohort, so that each line of a table names its experiment.
    experiment=_EXPERIMENT.value,
    objective=methods.OBJECTIVE.value if takes_objective else None,
    regime=_REGIME.value,
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


def _configuration(axis: str | None, image_size: int) -> dict[str, Any]:
  """Returns the part of what was measured that is the same for every cohort."""
  return collections.OrderedDict(
    experiment=_EXPERIMENT.value,
    growth=axis,
    encoder=common.ENCODER.value,
    encoder_width=common.WIDTH.value,
    encoder_stem=common.STEM.value,
    encoder_patch=common.PATCH.value,
    precision=common.PRECISION.value,
    projector=list(common.projector_widths(_PROJECTOR)),
    augmentation=common.AUGMENTATION.value,
    image_shape=[image_size, image_size, 3],
    seed=common.SEED.value,
    packs=common.PACKS.value,
    runtime=common.RUNTIME.value,
    rounds=common.ROUNDS.value,
    warm_up_rounds=measure.WARM_UP_ROUNDS,
  )


def _cohorts() -> tuple[list[workloads.Workload], str | None]:
  """Returns the cohorts that are measured, and the flag that has several values.

  Raises:
    ValueError: If a size is no positive number, or several flags have several values.
  """
  if _REGIME.value is not None:
    return [workloads.REGIMES[_REGIME.value]], None
  local = local_training.LocalPlan(training.EPOCHS.value, training.BATCH_SIZE.value)
  sizes = {name: _numbers(name) for name, flag in _SIZES.items() if flag.value}
  several = [name for name, values in sizes.items() if len(values) > 1]
  if len(several) > 1:
    raise ValueError(
      f'--{several[0]} and --{several[1]} have several values; only one of them may.'
    )
  axis = several[0] if several else None
  points: list[dict[str, Any]] = [{name: values[0] for name, values in sizes.items()}]
  if axis:
    points = [{**points[0], axis: value} for value in sizes[axis]]
  cohorts = [workloads.Workload(**point, local=local) for point in points]
  for each in cohorts:
    if each.population is not None and each.population < each.clients:
      raise ValueError(
        f'--population is {each.population}; it must be at least the {each.clients} '
        'clients of a round.'
      )
  return cohorts, axis


def _numbers(name: str) -> list[int]:
  """Returns the values of a flag of sizes."""
  texts = _SIZES[name].value
  if all(text.isdecimal() and int(text) for text in texts):
    values = [int(text) for text in texts]
    if values == sorted(set(values)):
      return values
  raise ValueError(
    f'--{name} is {",".join(texts)!r}; it must be one or several positive whole '
    'numbers, ascending, as in 8,32,128.'
  )


def _check() -> None:
  """Refuses flags that would do nothing, and values that cannot be measured.

  Raises:
    ValueError: If there is such a flag or value.
  """
  for name in common.given():
    if name not in TAKEN:
      raise ValueError(
        f'--{name} is given; the benchmark makes its own data on this machine, and '
        'does not take this flag.'
      )
  if common.RUNTIME.value == common.HOSTS:
    raise ValueError(
      f'runtime is {common.HOSTS}; it must be {common.WORKER} or {common.IN_PROCESS}, '
      'because the benchmark measures this machine.'
    )
  common.fill(_DEFAULTS)
  if methods.OBJECTIVE.value not in experiments.OBJECTIVES:
    raise ValueError(
      f'objective is {methods.OBJECTIVE.value!r}; it must be one of '
      f'{", ".join(experiments.OBJECTIVES)}.'
    )
  for name in _LOCAL:
    common.refuse_stray(name, 'experiment', experiments.WITH_LOCAL_TRAINING)
  common.refuse_stray('objective', 'experiment', experiments.WITH_OBJECTIVE)
  precision.check(common.PRECISION.value)
  if _EXPERIMENT.value == experiments.PRECISION:
    _refuse_with('experiment', ('precision', 'runtime'))
    precision.check(network.BFLOAT16)
  if _REGIME.value is not None:
    _refuse_with('regime', (*_COHORT, *_LOCAL))
    allowed = experiments.WITH_LOCAL_TRAINING
    batch_size = workloads.REGIMES[_REGIME.value].local.batch_size
    if batch_size and _EXPERIMENT.value not in allowed:
      raise ValueError(
        f'regime is {_REGIME.value} with --experiment={_EXPERIMENT.value}; its local '
        f'batches are for {", ".join(allowed)} only.'
      )


def _refuse_with(chooser: str, names: tuple[str, ...]) -> None:
  """Refuses flags that another flag (`chooser`) already decides."""
  for name in names:
    if flags.FLAGS[name].present:
      raise ValueError(
        f'--{name} is given with --{chooser}={flags.FLAGS[chooser].value}; leave one '
        'of them out.'
      )


if __name__ == '__main__':
  common.run(main, TAKEN)
