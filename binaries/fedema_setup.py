"""The methods of `binaries.fedema`, built from its flags."""

from collections.abc import Collection, Mapping
import dataclasses
from typing import Any

from absl import flags

from binaries import client_flags
from binaries import common
from binaries import experiment
from binaries import fedca_setup
from binaries import objective_flags
from binaries import optimizer_flags
from binaries import personal
from binaries import run_parts
from tasks import task as task_lib
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedema
from tff_ssl.algorithms import fedu
from tff_ssl.encoders import network
from tff_ssl.federated import online_networks
from tff_ssl.runtime import personal_models

# Each with its objective.
METHODS: Mapping[str, str] = {
  'fed_simclr': 'simclr',
  'fed_simsiam': 'simsiam',
  'fed_moco_v1': 'moco_v1',
  'fed_moco_v2': 'moco_v2',
  'fed_byol': 'byol',
  'fedu': 'byol',
  'fedema': 'byol',
  'fedca': 'simclr',
}
_FORGETTING = ('fed_simclr', 'fed_simsiam')
# Clients keep an encoder of their own.
_PERSONAL = ('fedu', 'fedema')
_OVER_BYOL = tuple(name for name, used in METHODS.items() if used == 'byol')

METHOD = flags.DEFINE_enum('method', 'fedema', tuple(METHODS), 'What is run.')
_TAU = flags.DEFINE_float(
  'tau', 0.7, "Of the autoscaler: mu in a client's second round."
)
_SCALER = flags.DEFINE_float(
  'scaler', None, "lambda, constant; by default each client's, from the autoscaler."
)
_CONSTANT_MU = flags.DEFINE_float(
  'constant_mu', None, 'mu; by default measured from the online_networks.'
)
_EMA_ON = flags.DEFINE_enum(
  'ema_on', fedema.BOTH, fedema.APPLIED_TO, 'The networks that mu is for.'
)
_NORM = flags.DEFINE_enum(
  'divergence_norm',
  None,
  tuple(online_networks.NORMS),
  'Of the divergence; by default l2, of fedu conv_mean.',
)
_THRESHOLD = flags.DEFINE_float(
  'threshold', 0.4, 'Divergence from which on a client keeps its predictor.'
)
_AVERAGED = flags.DEFINE_enum(
  'averaged',
  online_networks.ONLINE,
  online_networks.AVERAGED,
  'The encoder that clients send.',
)
_REPLACED = flags.DEFINE_enum(
  'replaced',
  online_networks.ONLINE,
  online_networks.REPLACED,
  'What takes the global one.',
)
_RESTART = flags.DEFINE_bool(
  'restart_absent',
  False,
  'Whether clients that were not in the round before begin anew from the global model.',
)
_PREDICTOR = flags.DEFINE_bool('predictor', True, 'Whether there is a predictor.')
_STOP_GRADIENT = flags.DEFINE_bool(
  'stop_gradient', True, 'Whether no gradient trains the target.'
)
# Clients' own encoders are evaluated where a flag asks for it.
flags.set_default(personal.METHODS, [])

_TAKEN_BY: Mapping[str, Collection[str]] = {
  **{
    flag: tuple(name for name, used in METHODS.items() if used in objectives)
    for flag, objectives in objective_flags.TAKEN_BY.items()
  },
  **dict.fromkeys(('tau', 'scaler', 'constant_mu', 'ema_on'), ('fedema',)),
  'divergence_norm': ('fedu', 'fedema'),
  'threshold': ('fedu',),
  **dict.fromkeys(
    ('averaged', 'replaced', 'restart_absent', 'predictor', 'stop_gradient'), _OVER_BYOL
  ),
  **dict.fromkeys(fedca_setup.NAMES, ('fedca',)),
  **dict.fromkeys(personal.NAMES, _PERSONAL),
  # An entry of FedCA's dictionary is that of one example alone.
  'encoder_norm': tuple(name for name in METHODS if name != 'fedca'),
}


def check_flags() -> None:
  """Refuses what can be seen to be wrong without data.

  Raises:
    ValueError: If a flag is missing, out of range, not taken by the chosen method, or
      not that of the run in the folder.
  """
  experiment.refuse_strays(dict(_TAKEN_BY), 'method')
  if _CONSTANT_MU.value is not None and flags.FLAGS[_TAU.name].present:
    raise ValueError('--tau is given with --constant_mu; leave one of them out.')
  if _SCALER.value is not None and flags.FLAGS[_TAU.name].present:
    raise ValueError('--tau is given with --scaler; leave one of them out.')
  if METHOD.value == 'fedu':
    _fedu()
  else:
    _fedema()
  fedca_setup.check()
  personal.check_flags()
  optimizer_flags.server_config()
  experiment.check_flags()


def build_objective(
  task: task_lib.Task, encoder: network.Network
) -> objective_flags.Objective:
  """Builds what is minimised."""
  del task
  if METHODS[METHOD.value] != 'byol':
    return objective_flags.BUILDERS[METHODS[METHOD.value]](encoder)
  built = objective_flags.build_byol(encoder)
  return dataclasses.replace(
    built,
    predictor=built.predictor if _PREDICTOR.value else None,
    stop_gradient=_STOP_GRADIENT.value,
  )


def build_algorithm(objective: objective_flags.Objective, element_spec: Any) -> Any:
  """Builds what the round loop runs."""
  optimizer = optimizer_flags.build_server_optimizer()
  if METHOD.value in _FORGETTING:
    return fedavg.build_fedavg(objective, element_spec, optimizer, _training())
  if METHOD.value == 'fedu':
    return fedu.build_fedu(objective, element_spec, optimizer, _fedu())
  if METHOD.value == 'fedema':
    return fedema.build_fedema(objective, element_spec, optimizer, _fedema())
  if _exchange() == online_networks.Exchange() and _STOP_GRADIENT.value:
    return fed_ssl.build_fed_ssl(objective, element_spec, optimizer, _training())
  # Fed-BYOL with other networks shared: FedEMA without mu.
  config = dataclasses.replace(_fedema(), scaler=0.0)
  return fedema.build_fedema(objective, element_spec, optimizer, config)


def build_personal(parts: run_parts.Parts) -> personal.Personal:
  """Builds the clients' own encoders: the online ones that they keep."""
  kept = personal_models.kept(parts.algorithm, fedema.online)
  return personal.Personal(parts, kept)


def build_experiment() -> experiment.Experiment:
  """Returns what the flags say is run."""
  if METHOD.value == 'fedca':
    return fedca_setup.build_experiment(_training())
  return experiment.Experiment(
    METHOD.value,
    build_objective,
    build_algorithm,
    build_personal=build_personal if personal.is_asked_for() else None,
  )


def _training() -> fedavg.FedAvgConfig:
  return fedavg.FedAvgConfig(
    client_flags.plan(),
    client_flags.schedule(),
    objective_flags.WEIGHTING.value,
    common.SEED.value,
  )


def _exchange() -> online_networks.Exchange:
  return online_networks.Exchange(_AVERAGED.value, _REPLACED.value, _RESTART.value)


def _fedema() -> fedema.FedEMAConfig:
  return fedema.FedEMAConfig(
    _training(),
    _TAU.value,
    _SCALER.value,
    _CONSTANT_MU.value,
    _NORM.value or 'l2',
    _EMA_ON.value,
    _exchange(),
  )


def _fedu() -> fedu.FedUConfig:
  return fedu.FedUConfig(
    _training(), _THRESHOLD.value, _NORM.value or 'conv_mean', _exchange()
  )
