"""The algorithms whose server has no data: how flags build each of them."""

from collections.abc import Callable, Mapping
import dataclasses
import functools
import pathlib
from typing import Any

from absl import flags

from binaries.flags import common
from binaries.flags import hosts
from binaries.flags import methods
from binaries.flags import privacy
from binaries.flags import training
from binaries.methods import statistics_losses
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import centralized_training
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedbn
from tff_ssl.algorithms import fedca
from tff_ssl.algorithms import l_dawa
from tff_ssl.algorithms import scaffold
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.algorithms.statistics import fedsc
from tff_ssl.algorithms.without_server import topology as topology_lib
from tff_ssl.encoders import checks
from tff_ssl.federated import phases
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import target
from tff_ssl.runs import alarms
from tff_ssl.runs import checkpoints
from tff_ssl.runs import personal_models
from tff_ssl.runs import run_config

# Where every algorithm's state has the encoder.
TRAINABLE = 'global_model_weights/trainable'
ENCODER = f'{TRAINABLE}/{dual_encoder.ENCODER}'


def _nothing() -> None:
  """Checks nothing."""


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """An algorithm, which minimises an objective.

  Attributes:
    build: Objective -> the library's algorithm. If clients are numbered: (objective,
      number of clients). If the server has data: (objective,
      `server_algorithms.Problem`). If it is not federated: objective -> a process in
      plain TensorFlow.
    takes: Flags that it reads, in addition to those of every run.
    defaults: Values of flags that the command line does not give; for a flag that it
      does not take, its fixed value.
    check: Raises ValueError if flags that it takes do not fit each other.
    federated: Whether its rounds take cohorts of clients; otherwise they take batches
      drawn from all examples.
    numbered: Whether examples name the number of their client.
    models: Model weights -> the models by name, if the result is several models; each
      is evaluated in addition to the one that is saved.
    personal: (what the round loop runs, objective, the clients' data) -> clients' own
      models, if they have any.
    mixing: () -> the alarm about the shares of their own networks that clients keep,
      if they keep any.
    topology: Number of clients -> the graph in which they average without a server.
    of_clients: State -> values by name that are added to the weights of the result, if
      `personal` makes the clients' own models from both; None: it needs none.
    rows_of_one_client: Whether clients send rows of a single client, with zeros in
      place of the others, so that a sum reveals them.
    sends_encodings: Whether clients send the objective's statistics, which have its
      `share_bound`.
  """

  build: Callable[..., Any]
  takes: tuple[str, ...] = ()
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  check: Callable[[], Any] = _nothing
  federated: bool = True
  numbered: bool = False
  models: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
  personal: Callable[[Any, Any, Any], personal_models.PersonalModel] | None = None
  mixing: Callable[[], alarms.MixingAlarm] | None = None
  topology: Callable[[int], topology_lib.Topology] | None = None
  of_clients: Callable[[Any], Mapping[str, Any]] | None = None
  rows_of_one_client: bool = False
  sends_encodings: bool = False


def with_server(
  method: Callable[..., phases.Algorithm], config: Callable[[], Any]
) -> Callable[[Any], phases.Algorithm]:
  """Returns `Algorithm.build` for a server with an optimizer.

  Args:
    method: (objective, server's optimizer, configuration) -> the algorithm.
    config: Returns its configuration from the flags.
  """
  return lambda objective: method(
    objective, training.build_server_optimizer(), config()
  )


def checked(config: Callable[[], Any]) -> Callable[[], None]:
  """Returns a check that builds the configuration, so that bad flags end a run."""

  def check() -> None:
    config()
    training.server_config()

  return check


def _fedprox_config() -> fedavg.FedAvgConfig:
  if not training.PROXIMAL.value:
    raise ValueError(
      'proximal_weight is 0; --algorithm=fedprox needs one above 0 (0 is fedavg).'
    )
  return training.client_config()


def _fedbn_config() -> fedavg.FedAvgConfig:
  if common.NORM.value != 'batch':
    raise ValueError(
      f'encoder_norm is {common.NORM.value}; --algorithm=fedbn needs batch, which it '
      'keeps on the client.'
    )
  return training.client_config()


def _fed_ssl(objective: Any) -> phases.Algorithm:
  reset = (target.TARGET,) if methods.RESET_TARGET.value else ()
  method = functools.partial(fed_ssl.fed_ssl, reset=reset)
  return with_server(method, training.client_config)(objective)


def _scaffold_config(population: int) -> scaffold.ScaffoldConfig:
  return scaffold.ScaffoldConfig(population, training.client_config())


def _scaffold(objective: Any, population: int) -> phases.Algorithm:
  build = with_server(scaffold.scaffold, lambda: _scaffold_config(population))
  return build(objective)


def _l_dawa_config() -> l_dawa.LDAWAConfig:
  return l_dawa.LDAWAConfig(training.client_config())


def _dcco_config() -> dcco.DCCOConfig:
  return dcco.DCCOConfig(
    training.CLIENT_RATE.value,
    methods.LOCAL_STEPS.value,
    methods.STALE.value,
    common.SEED.value,
    methods.FROZEN.value,
  )


def _fedsc_config() -> fedsc.FedSCConfig:
  return fedsc.FedSCConfig(
    training.CLIENT_RATE.value, methods.LOCAL_STEPS.value, common.SEED.value
  )


def _check_dcco() -> None:
  """Refuses flags of one loss that are given with another."""
  own = statistics_losses.LOSSES[methods.LOSS.value].takes
  for loss in statistics_losses.LOSSES.values():
    for other in loss.takes:
      if other not in own and flags.FLAGS[other].present:
        raise ValueError(
          f'--{other} is given with --loss={methods.LOSS.value}, which does not use it.'
        )
  if methods.STALE.value and methods.ENCODING_NORM.value is not None:
    raise ValueError(
      f'--{methods.ENCODING_NORM.name} is given with --{methods.STALE.name}; leave it '
      'out, because the statistics of the previous round have a different reference.'
    )
  checked(_dcco_config)()


def _centralized_steps(objective: Any) -> centralized.UnionProcess:
  optimizer = training.build_server_optimizer()
  return centralized.Centralized(
    objective, optimizer, common.SEED.value, common.ROUNDS.value
  )


def _centralized(objective: Any) -> centralized.UnionProcess:
  plan, rate = training.plan(), training.schedule()
  return centralized_training.CentralizedTraining(
    objective, plan, rate, common.SEED.value, common.ROUNDS.value
  )


def _check_centralized() -> None:
  training.plan()
  training.schedule()


def _fedca(objective: Any, population: int) -> phases.Algorithm:
  """Builds FedCA; refuses a base model with another encoder."""
  params = _base_params()
  if params is not None:
    name = f'the encoder of {methods.ALIGNMENT_RUN.value}'
    checks.params(name, objective.model.encoder.specs, params)
  config = fedca.FedCAConfig(
    population, methods.DICTIONARY_SIZE.value, training.client_config()
  )
  optimizer = training.build_server_optimizer()
  return fedca.fedca(objective, optimizer, config, params)


def _check_fedca() -> None:
  """Refuses a base model without a weight, a weight without it, unfinished runs."""
  weight, run = methods.ALIGNMENT_WEIGHT.value, methods.ALIGNMENT_RUN.value
  if weight and not run:
    raise ValueError(
      f'--alignment_weight={weight} is given without --alignment_run; it must '
      'name a finished run, whose encoder is the base model.'
    )
  if run and not weight:
    raise ValueError(
      f'--alignment_run={run} is given without --alignment_weight; it must be above 0.'
    )
  _base_params()
  training.client_config()
  training.server_config()


def _base_params() -> Mapping[str, Any] | None:
  """Reads the encoder of the run that the flag names; None without the flag."""
  if not methods.ALIGNMENT_RUN.value:
    return None
  folder = pathlib.Path(methods.ALIGNMENT_RUN.value)
  stored = run_config.read(folder)['flags']
  # The parameters' names and shapes do not show the norm.
  norm = stored.get(common.NORM.name)
  if norm != common.NORM.value:
    raise ValueError(
      f'{folder} is a run with --encoder_norm={norm}; the base model must have '
      f'{common.NORM.value} norm, as the clients have.'
    )
  round, params = checkpoints.read_newest(folder / 'checkpoints', ENCODER)
  rounds = stored.get(common.ROUNDS.name)
  if round != rounds:
    raise ValueError(
      f'{folder} has {round} of {rounds} rounds; the base model must come from a '
      'finished run.'
    )
  return params


# Flags that say how TFF computations are executed.
RUNTIME = ('runtime', 'worker_address', *hosts.NAMES)
_COHORTS = (
  'partition',
  'clients_per_round',
  'participation',
  'packs',
  'parts',
  *RUNTIME,
  *privacy.NAMES,
)
# Flags among those of every run that only some algorithms take.
OF_SOME = _COHORTS
# Batches are as large as a cohort's examples.
_BATCHES = ('partition', 'clients_per_round', 'participation')
TRAINING = (*_COHORTS, *training.OF_CLIENTS, *training.OF_SERVER, 'weighting')
FEDAVG = (*TRAINING, 'proximal_weight')
# For algorithms whose weights are all in the server's single model at the start.
STARTS = ('init_from',)

ALGORITHMS: Mapping[str, Algorithm] = {
  'fedavg': Algorithm(
    with_server(fedavg.fedavg, training.client_config),
    (*FEDAVG, *STARTS),
    check=checked(training.client_config),
  ),
  'fedprox': Algorithm(
    with_server(fedavg.fedavg, training.client_config),
    (*FEDAVG, *STARTS),
    check=checked(_fedprox_config),
  ),
  'fedbn': Algorithm(
    with_server(fedbn.fedbn, training.client_config),
    FEDAVG,
    # Without batch norm, clients have nothing to keep.
    {'encoder_norm': 'batch'},
    check=checked(_fedbn_config),
  ),
  'fed_ssl': Algorithm(
    _fed_ssl,
    (*FEDAVG, *STARTS, 'reset_target'),
    check=checked(training.client_config),
  ),
  'scaffold': Algorithm(
    _scaffold,
    (*FEDAVG, *STARTS),
    check=checked(lambda: _scaffold_config(1)),
    # For the size of the population; the numbers are not read.
    numbered=True,
  ),
  'l_dawa': Algorithm(
    with_server(l_dawa.l_dawa, _l_dawa_config),
    (*FEDAVG, *STARTS),
    check=checked(_l_dawa_config),
  ),
  'centralized': Algorithm(
    _centralized,
    (*_BATCHES, *STARTS, *training.OF_CLIENTS),
    check=_check_centralized,
    federated=False,
  ),
  'dcco': Algorithm(
    with_server(dcco.dcco, _dcco_config),
    (
      *_COHORTS,
      *STARTS,
      *training.OF_SERVER,
      'client_learning_rate',
      'local_steps',
      'stale_statistics',
      'frozen_statistics',
      'loss',
      *(name for loss in statistics_losses.LOSSES.values() for name in loss.takes),
    ),
    check=_check_dcco,
    sends_encodings=True,
  ),
  'fedsc': Algorithm(
    with_server(fedsc.fedsc, _fedsc_config),
    (*_COHORTS, *STARTS, *training.OF_SERVER, 'client_learning_rate', 'local_steps'),
    check=checked(_fedsc_config),
    sends_encodings=True,
  ),
  'centralized_steps': Algorithm(
    _centralized_steps,
    (*_BATCHES, *STARTS, *training.OF_SERVER),
    check=training.server_config,
    federated=False,
  ),
  'fedca': Algorithm(
    _fedca,
    (*FEDAVG, 'dictionary_size', 'alignment_run'),
    check=_check_fedca,
    numbered=True,
    rows_of_one_client=True,
  ),
}
