"""The flags of the benchmark, and the cohorts that they describe."""

from collections.abc import Iterable
import dataclasses
from typing import Any

from absl import flags

from binaries.benchmarking import experiments
from binaries.benchmarking import measure
from binaries.benchmarking import objectives
from binaries.benchmarking import precisions
from binaries.benchmarking import workloads
from binaries.flags import common
from binaries.flags import methods
from binaries.flags import outputs
from binaries.flags import training
from tff_ssl.encoders import precision
from tff_ssl.federated import local_training

# Values if the command line gives none.
_DEFAULTS = {'rounds': 10, 'local_epochs': 1, 'objective': 'simclr'}
_WITH_LOCAL_TRAINING = (*experiments.WITH_LOCAL_TRAINING, precisions.NAME)
WITH_OBJECTIVE = (*experiments.WITH_OBJECTIVE, precisions.NAME)
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
  'clients',
  'examples_per_client',
  'local_epochs',
  'batch_size',
  'growth',
  'growth_points',
  'memory_rounds',
  'format',
  'plot',
)

EXPERIMENT = flags.DEFINE_enum(
  'experiment',
  'dcco',
  (*experiments.EXPERIMENTS, precisions.NAME),
  'What is measured: rounds of an algorithm against the centralized step, or the '
  'centralized step in both precisions.',
)
REGIME = flags.DEFINE_enum(
  'regime',
  None,
  tuple(workloads.REGIMES),
  'Sets clients, examples and batch: A: 128 x 4; B: 5 x 500 in batches of 50, not for '
  'dcco; C: 512 x 1; D: 256 cases of 1 to 6.',
)
_CLIENTS = flags.DEFINE_integer(
  'clients', 64, 'Clients of a round; 16 with --growth=examples.', lower_bound=1
)
_EXAMPLES = flags.DEFINE_integer(
  'examples_per_client', 4, 'Examples of each client.', lower_bound=1
)
GROWTH = flags.DEFINE_enum(
  'growth',
  None,
  tuple(workloads.GROWTH),
  'Measures several cohorts that differ in this; population: the clients from which '
  'a cohort is drawn each round.',
)
_GROWTH_POINTS = flags.DEFINE_list(
  'growth_points',
  None,
  'The values that --growth measures, ascending; by default '
  + '; '.join(
    f'{name}: {",".join(map(str, axis.points))}'
    for name, axis in workloads.GROWTH.items()
  )
  + '.',
)
MEMORY_ROUNDS = flags.DEFINE_integer(
  'memory_rounds',
  0,
  f'Rounds to run before anything is timed, to compare the memory after them with the '
  f'memory after {measure.MEMORY_SETTLED_ROUNDS}; 0: none.',
  lower_bound=0,
)
FORMAT = flags.DEFINE_enum('format', 'table', ('table', 'json'), 'What is printed.')


def check() -> None:
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
  if methods.OBJECTIVE.value not in objectives.OBJECTIVES:
    raise ValueError(
      f'objective is {methods.OBJECTIVE.value!r}; allowed are '
      f'{", ".join(objectives.OBJECTIVES)}.'
    )
  local_flags = ('local_epochs', 'batch_size')
  for name in local_flags:
    common.refuse_stray(name, 'experiment', _WITH_LOCAL_TRAINING)
  common.refuse_stray('objective', 'experiment', WITH_OBJECTIVE)
  if EXPERIMENT.value == precisions.NAME:
    _refuse_with('experiment', ('precision', 'runtime', 'growth', 'memory_rounds'))
  precision.check(common.PRECISION.value)
  if REGIME.value is not None:
    _refuse_with('regime', ('clients', 'examples_per_client', *local_flags, 'growth'))
    _check_regime()
  if 0 < MEMORY_ROUNDS.value <= measure.MEMORY_SETTLED_ROUNDS:
    raise ValueError(
      f'--memory_rounds is {MEMORY_ROUNDS.value}; it must be 0 or more than '
      f'{measure.MEMORY_SETTLED_ROUNDS}.'
    )
  if GROWTH.value is not None:
    axis = workloads.GROWTH[GROWTH.value]
    _refuse_with('growth', (axis.field, 'memory_rounds'))
    _check_points(_points(axis), axis)
  for name in ('growth_points', 'plot'):
    if flags.FLAGS[name].present and GROWTH.value is None:
      raise ValueError(f'--{name} is given without --growth; it is for growth only.')
  outputs.check(outputs.PLOT, '.png')


def cohorts() -> list[workloads.Workload]:
  """Returns the cohorts that are measured, in order."""
  if REGIME.value is not None:
    return [workloads.REGIMES[REGIME.value]]
  local = local_training.LocalPlan(training.EPOCHS.value, training.BATCH_SIZE.value)
  if GROWTH.value is None:
    return [workloads.Workload(_CLIENTS.value, _EXAMPLES.value, local)]
  axis = workloads.GROWTH[GROWTH.value]
  base = _growth_base(axis, local)
  points: list[dict[str, Any]] = [{axis.field: point} for point in _points(axis)]
  return [dataclasses.replace(base, **point) for point in points]


def _growth_base(
  axis: workloads.Axis, local: local_training.LocalPlan
) -> workloads.Workload:
  """Returns what stays fixed while an axis grows: its defaults, or given flags."""
  given: dict[str, Any] = {
    name: flags.FLAGS[name].value
    for name in ('clients', 'examples_per_client')
    if flags.FLAGS[name].present
  }
  return dataclasses.replace(axis.base, local=local, **given)


def _points(axis: workloads.Axis) -> tuple[int, ...]:
  if _GROWTH_POINTS.value is None:
    return axis.points
  try:
    return tuple(int(point) for point in _GROWTH_POINTS.value)
  except ValueError:
    raise _wrong_points() from None


def _check_points(points: tuple[int, ...], axis: workloads.Axis) -> None:
  if len(points) < 2 or points[0] < 1 or list(points) != sorted(set(points)):
    raise _wrong_points()
  clients = _growth_base(axis, local_training.LocalPlan()).clients
  if axis.field == 'population' and points[0] < clients:
    raise ValueError(
      f'--growth_points begins with {points[0]}; a population must have at least the '
      f'{clients} clients of a round.'
    )


def _wrong_points() -> ValueError:
  return ValueError(
    f'--growth_points is {",".join(_GROWTH_POINTS.value)!r}; it must be at least two '
    'positive whole numbers, ascending, as in 8,32,128.'
  )


def _refuse_with(chooser: str, names: Iterable[str]) -> None:
  """Refuses flags that another flag (`chooser`) already decides."""
  for name in names:
    if name in flags.FLAGS and flags.FLAGS[name].present:
      raise ValueError(
        f'--{name} is given with --{chooser}={flags.FLAGS[chooser].value}; leave one '
        'of them out.'
      )


def _check_regime() -> None:
  local = workloads.REGIMES[REGIME.value].local
  takers = _WITH_LOCAL_TRAINING
  if local != local_training.LocalPlan() and EXPERIMENT.value not in takers:
    raise ValueError(
      f'--regime={REGIME.value} is given with --experiment={EXPERIMENT.value}; its '
      f'local batches are for {", ".join(takers)} only.'
    )
