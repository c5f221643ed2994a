r"""Measures a federated round against a centralized step on the same examples.

  python -m binaries.benchmark --experiment=dcco --clients=64 --examples_per_client=4
  python -m binaries.benchmark --experiment=fedavg --clients=5 \
      --examples_per_client=500 --batch_size=50 --format=json

Both sides have the same network, objective, augmentation, seed and way of reading
random images; they take turns for `--rounds` rounds after a warm-up, and medians are
reported. `cpu_ratio` divides the CPU seconds of driver and worker by those of the
centralized step: unlike `ratio`, of wall times, it hardly depends on what else runs.
DCCO's floor is 4/3, for its clients encode twice.

`--format=json` prints one JSON object, with all numbers and the machine, and nothing
else; `--format=table` one line.
"""

import collections
from collections.abc import Mapping
import importlib.metadata
import json
import math
import os
import pathlib
import platform
from typing import Any

from absl import flags

from binaries import benchmark_experiments
from binaries import benchmark_measure
from binaries import common
from tff_ssl.algorithms import local_training
from tff_ssl.encoders import resnet
from tff_ssl.runtime import context

_PROJECTOR = (256, 256, 256)
_IMAGE_SIZE = 32
_NOT_TAKEN = (
  'task',
  'data_dir',
  'download',
  'partition',
  'clients_per_round',
  'evaluate_every',
  'checkpoint_every',
  'run_dir',
  'worker_address',
)
_PACKAGES = ('tensorflow', 'tensorflow-federated', 'numpy')

_EXPERIMENT = flags.DEFINE_enum(
  'experiment', 'dcco', tuple(benchmark_experiments.EXPERIMENTS), 'What is measured.'
)
_CLIENTS = flags.DEFINE_integer(
  'clients', 64, 'Clients, all in every round.', lower_bound=1
)
_EXAMPLES = flags.DEFINE_integer(
  'examples_per_client', 4, 'Examples of each client.', lower_bound=1
)
_EPOCHS = flags.DEFINE_integer(
  'local_epochs', 1, 'Epochs of a client in a round, of fedavg.', lower_bound=1
)
_BATCH_SIZE = flags.DEFINE_integer(
  'batch_size',
  None,
  'Examples of a step, of fedavg, and then of a centralized one; by default all.',
  lower_bound=1,
)
_MEMORY_ROUNDS = flags.DEFINE_integer(
  'memory_rounds',
  0,
  f'Rounds after which memory is compared with that after '
  f'{benchmark_measure.MEMORY_SETTLED_ROUNDS}, before anything is timed; 0: none.',
  lower_bound=0,
)
_FORMAT = flags.DEFINE_enum('format', 'table', ('table', 'json'), 'What is printed.')

flags.set_default(common.ROUNDS, 10)


def main() -> None:
  """Measures, and prints the result."""
  _check_flags()
  problem = _build_problem()
  with context.local() as execution:
    experiment = benchmark_experiments.EXPERIMENTS[_EXPERIMENT.value](problem)
    runner = benchmark_measure.Runner(problem, experiment)
    memory: Mapping[str, float] = {}
    if _MEMORY_ROUNDS.value:
      memory = benchmark_measure.memory_growth(execution, runner, _MEMORY_ROUNDS.value)
    times = benchmark_measure.compare(execution, runner, common.ROUNDS.value)
    peaks = benchmark_measure.peak_memory(execution)
  visited = _CLIENTS.value * _EXAMPLES.value * _EPOCHS.value
  result: dict[str, Any] = collections.OrderedDict(
    **_configuration(problem),
    **times,
    samples_per_second=visited / times['federated_seconds'],
    centralized_samples_per_second=visited / times['centralized_seconds'],
    bytes_down=runner.metrics['bytes_down'],
    bytes_up=runner.metrics['bytes_up'],
    nonfinite_clients=runner.metrics['nonfinite_clients'],
    **peaks,
    **memory,
    **_machine(),
  )
  print(_json(result) if _FORMAT.value == 'json' else _line(result))


def _check_flags() -> None:
  """Refuses flags that would do nothing."""
  for name in _NOT_TAKEN:
    if flags.FLAGS[name].present:
      raise ValueError(
        f'--{name} is given; the benchmark makes its own data on this machine, and '
        'does not take it.'
      )
  for name in ('local_epochs', 'batch_size'):
    common.refuse_stray(name, 'experiment', benchmark_experiments.WITH_LOCAL_TRAINING)
  if 0 < _MEMORY_ROUNDS.value <= benchmark_measure.MEMORY_SETTLED_ROUNDS:
    raise ValueError(
      f'--memory_rounds is {_MEMORY_ROUNDS.value}; it must be 0 or more than '
      f'{benchmark_measure.MEMORY_SETTLED_ROUNDS}.'
    )


def _build_problem() -> benchmark_experiments.Problem:
  size = common.IMAGE_SIZE.value or _IMAGE_SIZE
  encoder = resnet.build_encoder(
    common.ENCODER.value,
    (size, size, 3),
    width=common.WIDTH.value,
    stem=common.STEM.value,
  )
  return benchmark_experiments.Problem(
    common.build_siamese(encoder, _PROJECTOR),
    benchmark_experiments.random_clients(
      _CLIENTS.value, _EXAMPLES.value, size, common.SEED.value
    ),
    local_training.LocalTraining(_EPOCHS.value, _BATCH_SIZE.value),
    common.SEED.value,
  )


def _configuration(problem: benchmark_experiments.Problem) -> dict[str, Any]:
  """Returns what was measured."""
  return collections.OrderedDict(
    experiment=_EXPERIMENT.value,
    clients=_CLIENTS.value,
    examples_per_client=_EXAMPLES.value,
    local_epochs=_EPOCHS.value,
    batch_size=_BATCH_SIZE.value,
    encoder=common.ENCODER.value,
    encoder_width=common.WIDTH.value,
    encoder_stem=common.STEM.value,
    projector=list(common.projector_widths(_PROJECTOR)),
    augmentation=common.AUGMENTATION.value,
    image_shape=list(problem.data.element_type_structure['image'].shape),
    seed=common.SEED.value,
    rounds=common.ROUNDS.value,
    warm_up_rounds=benchmark_measure.WARM_UP_ROUNDS,
  )


def _machine() -> dict[str, Any]:
  """Returns what the numbers depend on besides the configuration."""
  return collections.OrderedDict(
    cpu_count=len(os.sched_getaffinity(0)),
    cpu_model=_cpu_model(),
    load_average=os.getloadavg()[0],
    python=platform.python_version(),
    **{name: importlib.metadata.version(name) for name in _PACKAGES},
  )


def _cpu_model() -> str:
  for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
    if line.startswith('model name'):
      return line.partition(':')[2].strip()
  return platform.machine()


def _json(result: Mapping[str, Any]) -> str:
  # JSON has no NaN.
  return json.dumps(
    {
      name: None if isinstance(value, float) and math.isnan(value) else value
      for name, value in result.items()
    }
  )


def _line(result: Mapping[str, Any]) -> str:
  """Returns the result in one line; lines of several runs are aligned."""
  line = (
    '{experiment:8s} {clients:5d} x {examples_per_client:<4d}'
    ' federated {federated_seconds:7.3f} s  centralized {centralized_seconds:7.3f} s'
    '  ratio {ratio:5.2f}  CPU ratio {cpu_ratio:5.2f}'
    '  {samples_per_second:6.0f} samples/s  peak {peak_memory_mib:5.0f} MiB'
  ).format(**result)
  if 'memory_rounds' in result:
    line += (
      '  memory after {memory_rounds} rounds / after {settled}:'
      ' driver {driver_growth:.3f}, worker {worker_growth:.3f}'
    ).format(settled=benchmark_measure.MEMORY_SETTLED_ROUNDS, **result)
  return line


if __name__ == '__main__':
  common.run(main)
