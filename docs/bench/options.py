"""What the benchmark measures, as its command line says it; without TensorFlow."""

import dataclasses
from typing import Literal

from binaries.config import changing
from binaries.config import command_line
from binaries.config import run_config
from tff_ssl.computing import kinds
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives

# Sizes of a cohort, and those that it has if they are not given.
_COHORT = ('clients', 'examples_per_client', 'population')
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


def config(options: Options) -> run_config.RunConfig:
  """Returns the settings that a run has too: network, views, batches, runtime.

  Raises:
    ValueError: If an option is malformed, or would do nothing.
  """
  known = run_config.RunConfig(
    methods.FedAvg(),
    objectives.Simclr(projector=(256, 256, 256)),
    clients=learning.SgdClients(batch_size=options.batch_size),
    rounds=options.rounds,
  )
  known = changing.changed(
    known, {'encoder': options.encoder, 'runtime': options.runtime}
  )
  _check(options, known)
  return known


def sizes(options: Options) -> tuple[list[dict[str, int]], str | None]:
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


def _check(options: Options, known: run_config.RunConfig) -> None:
  """Refuses options that would do nothing."""
  runtime, name = kinds.kind_of(known.runtime), options.experiment
  if runtime == 'ray':
    raise ValueError(
      'runtime is ray; it must be worker or in_process, because the benchmark '
      'measures this machine.'
    )
  if options.objective and name not in ('fedavg', 'precision'):
    raise ValueError(
      f'--objective is given with --experiment={name}; it is for fedavg, precision '
      'only.'
    )
  if name == 'dcco' and options.batch_size:
    raise ValueError(
      '--batch_size is given with --experiment=dcco, which has none; leave it out.'
    )
  if name == 'precision' and (
    known.encoder.precision != 'float32' or runtime != 'in_process'
  ):
    raise ValueError(
      'A precision or a runtime is given with --experiment=precision, which measures '
      'both precisions in this process; leave it out.'
    )
  for other in (*_COHORT, 'batch_size') if options.regime else ():
    if getattr(options, other):
      raise ValueError(
        f'--{other} is given with --regime={options.regime}; leave one of them out.'
      )
  if options.regime == _BATCHES_OF_50 and name == 'dcco':
    raise ValueError(
      'regime is B with --experiment=dcco; its local batches are for the other '
      'experiments only.'
    )
