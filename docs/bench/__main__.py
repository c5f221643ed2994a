r"""Measures a federated round against a centralized step on the same examples.

  python -m docs.bench --experiment=fedavg --regime=B
  python -m docs.bench --experiment=dcco --clients=64 --examples_per_client=4
  python -m docs.bench --experiment=dcco --clients=8,32,128 --rounds=5

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

from collections.abc import Iterator
import dataclasses
from typing import Literal

from binaries.config import changing
from binaries.config import command_line
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.computing import kinds
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives

# Sizes of a cohort, and those that it has if they are not given.
_COHORT = ('clients', 'examples_per_client', 'population')
_SIZES = {'clients': (64,), 'examples_per_client': (4,)}


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
    batch_size: Examples per gradient, not for dcco; none: all of a client's.
    objective: What fedavg and precision minimise; none: simclr.
    encoder: The encoder, as in resnet14:width=0.5,precision=bfloat16.
    image_size: Height and width of the images.
    rounds: Rounds that are measured.
    runtime: What executes the rounds, as in worker or packs=4.
    format: What is printed: a line for each cohort, or one JSON object.
  """

  experiment: Literal[
    'dcco', 'fedavg', 'fedema', 'per_ssfl', 'featarc', 'fedsup', 'precision'
  ] = 'dcco'
  regime: Literal['A', 'B', 'C', 'D'] | None = None
  clients: tuple[kinds.Count, ...] = ()
  examples_per_client: tuple[kinds.Count, ...] = ()
  population: tuple[kinds.Count, ...] = ()
  batch_size: kinds.Count | None = None
  objective: Literal['simclr', 'simsiam', 'byol', 'cco'] | None = None
  encoder: command_line.Changes = command_line.UNCHANGED
  image_size: kinds.Count = 32
  rounds: kinds.Count = 10
  runtime: command_line.Changes = command_line.UNCHANGED
  format: Literal['table', 'json'] = 'table'


def main(options: Options) -> None:
  """Measures, and prints the result.

  Args:
    options: What is measured.

  Raises:
    ValueError: If an option is malformed, or would do nothing.
  """
  known = run_config.RunConfig(
    methods.FedAvg(),
    objectives.Simclr(projector=(256, 256, 256)),
    clients=learning.SgdClients(batch_size=options.batch_size),
    rounds=options.rounds,
  )
  config = changing.changed(
    known, {'encoder': options.encoder, 'runtime': options.runtime}
  )
  for sentence in _refusals(options, config):
    raise ValueError(sentence)
  cohorts, axis = _cohorts(options)
  # TensorFlow is imported only now, when the command line has been checked.
  program.import_tff()
  from docs.bench import comparison

  comparison.run(config, options, cohorts, axis)


def _refusals(options: Options, config: run_config.RunConfig) -> Iterator[str]:
  """Yields what is wrong with options that would do nothing."""
  name, runtime = options.experiment, kinds.kind_of(config.runtime)
  if runtime == 'ray':
    yield (
      'runtime is ray; it must be worker or in_process, because the benchmark '
      'measures this machine.'
    )
  if options.objective and name not in ('fedavg', 'precision'):
    yield (
      f'--objective is given with --experiment={name}; it is for fedavg, precision '
      'only.'
    )
  if name == 'dcco' and (options.batch_size or options.regime == 'B'):
    yield (
      '--batch_size or --regime=B is given with --experiment=dcco, which has no local '
      'batches; leave it out.'
    )
  one_process = config.encoder.precision == 'float32' and runtime == 'in_process'
  if name == 'precision' and not one_process:
    yield (
      'A precision or a runtime is given with --experiment=precision, which measures '
      'both precisions in this process; leave it out.'
    )
  for other in (*_COHORT, 'batch_size') if options.regime else ():
    if getattr(options, other):
      yield f'--{other} is given with --regime={options.regime}; leave one of them out.'


def _cohorts(options: Options) -> tuple[list[dict[str, int]], str | None]:
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
  axis = several[0] if several else 'clients'
  first = {name: values[0] for name, values in given.items() if values}
  cohorts = [{**first, axis: value} for value in given[axis]]
  for each in cohorts:
    if each.get('population', each['clients']) < each['clients']:
      raise ValueError(
        f'--population is {each["population"]}; it must be at least the '
        f'{each["clients"]} clients of a round.'
      )
  return cohorts, axis if several else None


if __name__ == '__main__':
  program.run_module('docs.bench.__main__')
