"""The method fedca of `binaries.fedema`: its flags, and what they build."""

from collections.abc import Mapping
import functools
import pathlib
from typing import Any

from absl import flags

from binaries import common
from binaries import experiment
from binaries import objective_flags
from binaries import optimizer_flags
from binaries import results
from tasks import task as task_lib
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedca
from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.objectives import fedca as objectives
from tff_ssl.runtime import checkpoints
from tff_ssl.runtime import run_config

_SIZE = flags.DEFINE_integer(
  'dictionary_size',
  16,
  'm, representations of its examples that a client shares with all others.',
  lower_bound=0,
)
_WEIGHT = flags.DEFINE_float(
  'alignment_weight', 0.0, "beta, of the distance from the base model's features."
)
_RUN = flags.DEFINE_string(
  'alignment_run',
  None,
  'Folder of the finished run, on public data, whose encoder is the base model.',
)
NAMES = ('dictionary_size', 'alignment_weight', 'alignment_run')


def check() -> None:
  """Refuses what can be seen to be wrong without data.

  Raises:
    ValueError: If there is a base model and no weight of it, or the reverse, or the
      folder is not that of a finished run whose encoder can be one.
  """
  if _WEIGHT.value and not _RUN.value:
    raise ValueError(
      f'--alignment_weight={_WEIGHT.value} is given without --alignment_run; it must '
      'name a finished run, whose encoder is the base model.'
    )
  if _RUN.value and not _WEIGHT.value:
    raise ValueError(
      f'--alignment_run={_RUN.value} is given without --alignment_weight; it must be '
      'above 0.'
    )
  _base_params()


def build_experiment(training: fedavg.FedAvgConfig) -> experiment.Experiment:
  """Returns what the flags say is run.

  Args:
    training: How a client trains.
  """
  return experiment.Experiment(
    'fedca',
    _build_objective,
    functools.partial(_build_algorithm, training),
    numbered=True,
  )


def _build_objective(task: task_lib.Task, encoder: network.Network) -> Any:
  """Builds what is minimised: SimCLR's loss, with a dictionary and alignment."""
  del task
  model = common.build_siamese(encoder, objective_flags.CONTRASTIVE_WIDTHS)
  return objective_flags.tempered(
    objectives.FedCAObjective(model, objective_flags.SIMCLR_TEMPERATURE, _WEIGHT.value)
  )


def _build_algorithm(
  training: fedavg.FedAvgConfig,
  objective: objectives.FedCAObjective,
  element_spec: Any,
  population: int,
) -> Any:
  """Builds what the round loop runs; a base model of another encoder is refused."""
  params = _base_params()
  if params is not None:
    name = f'the encoder of {_RUN.value}'
    checks.params(name, objective.model.encoder.specs, params)
  config = fedca.FedCAConfig(population, _SIZE.value, training)
  return fedca.build_fedca(
    objective,
    element_spec,
    optimizer_flags.build_server_optimizer(),
    config,
    params,
  )


def _base_params() -> Mapping[str, Any] | None:
  """Reads the encoder of the run that the flag names; None without one."""
  if not _RUN.value:
    return None
  folder = pathlib.Path(_RUN.value)
  stored = run_config.read(folder)['flags']
  # Its parameters alone do not tell.
  if stored.get(common.NORM.name) == 'batch':
    raise ValueError(
      f'{folder} is a run with --encoder_norm=batch; the base model must have group '
      'norm, as the clients have.'
    )
  round, params = checkpoints.read_newest(folder / 'checkpoints', results.ENCODER)
  rounds = stored.get(common.ROUNDS.name)
  if round != rounds:
    raise ValueError(
      f'{folder} has {round} of {rounds} rounds; the base model must be that of a '
      'finished run.'
    )
  return params
