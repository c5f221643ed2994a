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
against the step in float32. `--encoder=precision=bfloat16` measures other experiments
in bfloat16. `--runtime=worker` measures rounds in TFF's worker.

`--format=json` prints a single JSON object with all numbers and the machine;
`--format=table` prints a line for each cohort.
"""

import dataclasses
from typing import Literal

from binaries.config import changing
from binaries.config import command_line
from binaries.config import methods
from binaries.config import objectives
from binaries.config import run_config
from binaries.config import training
from binaries.launching import libraries
from binaries.launching import program
from tff_ssl.computing import kinds

_LOCAL = ('epochs', 'batch_size')
_COHORT = ('clients', 'examples_per_client', 'population')
# Sizes of a cohort that are not given.
_SIZES = {'clients': (64,), 'examples_per_client': (4,)}
_BATCHES_OF_50 = 'B'


@dataclasses.dataclass(frozen=True)
class Options:
  """What is measured.

  Attributes:
    experiment: Rounds of an algorithm against the centralized step, or the centralized
      step in both precisions.
    regime: Cohort: A: 128 x 4; B: 5 x 500 in batches of 50, not for dcco; C: 512 x 1;
      D: 256 cases of 1 to 6; none: clients and examples_per_client say it.
    clients: Clients of a round, or several numbers; none: 64.
    examples_per_client: Examples of each client, or several numbers; none: 4.
    population: Registered clients, from which those of a round are drawn, or several
      numbers; none: the clients of a round.
    epochs: Local epochs of an experiment that has them; none: 1.
    batch_size: Its examples per gradient; none: all of a client's.
    objective: What fedavg and precision minimise; none: simclr.
    projector: Widths of the projector's layers.
    encoder: The encoder, as in resnet14:width=0.5,precision=bfloat16.
    augmentation: How the views are made.
    image_size: Height and width of the images.
    rounds: Rounds that are measured.
    runtime: What executes the rounds, as in worker or packs=4.
    seed: Seed of the weights, the images and the views.
    format: What is printed: a line for each cohort, or one JSON object.
  """

  experiment: Literal[
    'dcco', 'fedavg', 'fedsup', 'fedema', 'per_ssfl', 'featarc', 'precision'
  ] = 'dcco'
  regime: Literal['A', 'B', 'C', 'D'] | None = None
  clients: tuple[kinds.Count, ...] = ()
  examples_per_client: tuple[kinds.Count, ...] = ()
  population: tuple[kinds.Count, ...] = ()
  epochs: kinds.Count | None = None
  batch_size: kinds.Count | None = None
  objective: Literal['simclr', 'simsiam', 'byol', 'moco', 'swav', 'cco'] | None = None
  projector: tuple[kinds.Count, ...] = (256, 256, 256)
  encoder: command_line.Changes = command_line.UNCHANGED
  augmentation: str = 'byol_no_blur'
  image_size: kinds.Count = 32
  rounds: kinds.Count = 10
  runtime: command_line.Changes = command_line.UNCHANGED
  seed: run_config.Seed = 0
  format: Literal['table', 'json'] = 'table'


def main(options: Options) -> None:
  """Measures, and prints the result."""
  config = _config(options)
  _check(options, config)
  sizes, axis = _sizes(options)
  # TensorFlow is imported only now, when the command line has been checked.
  libraries.import_tff()
  from binaries.benchmarking import comparison

  comparison.run(
    config,
    comparison.Comparison(
      options.experiment,
      options.objective or 'simclr',
      options.image_size,
      options.regime,
      axis,
    ),
    sizes,
    as_json=options.format == 'json',
  )


def _config(options: Options) -> run_config.RunConfig:
  """Returns the settings that a run has too."""
  config = run_config.RunConfig(
    methods.FedAvg(),
    objectives.Simclr(projector=options.projector),
    augmentation=options.augmentation,
    clients=training.SgdClients(
      epochs=options.epochs or 1, batch_size=options.batch_size
    ),
    rounds=options.rounds,
    seed=options.seed,
  )
  return changing.changed(
    config, {'encoder': options.encoder, 'runtime': options.runtime}
  )


def _sizes(options: Options) -> tuple[list[dict[str, int]], str | None]:
  """Returns the sizes of the cohorts, and the name of the one that has several values.

  Raises:
    ValueError: If values do not ascend, several sizes have several values, or a
      population is too small.
  """
  given = {name: getattr(options, name) or _SIZES.get(name, ()) for name in _COHORT}
  for name, values in given.items():
    if list(values) != sorted(set(values)):
      raise ValueError(
        f'--{name} is {",".join(map(str, values))}; it must be one or several numbers, '
        'ascending, as in 8,32,128.'
      )
  several = [name for name, values in given.items() if len(values) > 1]
  if len(several) > 1:
    raise ValueError(
      f'--{several[0]} and --{several[1]} have several values; only one of them may.'
    )
  first = {name: values[0] for name, values in given.items() if values}
  points = [first]
  if several:
    points = [{**first, several[0]: value} for value in given[several[0]]]
  for each in points:
    if each.get('population', each['clients']) < each['clients']:
      raise ValueError(
        f'--population is {each["population"]}; it must be at least the '
        f'{each["clients"]} clients of a round.'
      )
  return points, several[0] if several else None


def _check(options: Options, config: run_config.RunConfig) -> None:
  """Refuses options that would do nothing.

  Raises:
    ValueError: If there is one.
  """
  runtime = kinds.kind_of(config.runtime)
  if runtime == 'hosts':
    raise ValueError(
      'runtime is hosts; it must be worker or in_process, because the benchmark '
      'measures this machine.'
    )
  name = options.experiment
  if options.objective and name not in ('fedavg', 'precision'):
    raise ValueError(
      f'--objective is given with --experiment={name}; it is for fedavg, precision '
      'only.'
    )
  if name == 'dcco' and (options.epochs or options.batch_size):
    raise ValueError(
      '--epochs or --batch_size is given with --experiment=dcco, which has neither; '
      'leave it out.'
    )
  if name == 'precision' and (
    config.encoder.precision != 'float32' or runtime != 'in_process'
  ):
    raise ValueError(
      'A precision or a runtime is given with --experiment=precision, which measures '
      'both precisions in this process; leave it out.'
    )
  for other in (*_COHORT, *_LOCAL) if options.regime else ():
    if getattr(options, other):
      raise ValueError(
        f'--{other} is given with --regime={options.regime}; leave one of them out.'
      )
  if options.regime == _BATCHES_OF_50 and name == 'dcco':
    raise ValueError(
      'regime is B with --experiment=dcco; its local batches are for the other '
      'experiments only.'
    )


if __name__ == '__main__':
  program.run('benchmark')
