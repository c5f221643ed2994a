"""The algorithms whose clients have models of their own, built from flags."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from absl import flags

from binaries.flags import common
from binaries.flags import methods
from binaries.flags import own_encoders
from binaries.flags import training
from binaries.methods import algorithms
from tff_ssl.algorithms import bilevel_ssfl
from tff_ssl.algorithms import exchange
from tff_ssl.algorithms import fedema
from tff_ssl.algorithms import fedu
from tff_ssl.algorithms import la_ssfl
from tff_ssl.algorithms import maml_ssfl
from tff_ssl.algorithms import online_update
from tff_ssl.algorithms import per_ssfl
from tff_ssl.runtime import personal_models


def _exchange() -> exchange.Exchange:
  return exchange.Exchange(
    methods.AVERAGED.value, methods.REPLACED.value, methods.RESTART_ABSENT.value
  )


def _fedema_config() -> fedema.FedEMAConfig:
  return fedema.FedEMAConfig(
    training.client_config(),
    methods.TAU.value,
    methods.SCALER.value,
    methods.CONSTANT_MU.value,
    methods.DIVERGENCE_NORM.value,
    methods.EMA_ON.value,
    _exchange(),
  )


def _fedema(objective: Any, element_spec: Any) -> Any:
  optimizer = training.build_server_optimizer()
  return fedema.build_fedema(objective, element_spec, optimizer, _fedema_config())


def _check_fedema() -> None:
  for flag in (methods.CONSTANT_MU, methods.SCALER):
    if flag.value is not None and flags.FLAGS[methods.TAU.name].present:
      raise ValueError(f'--tau is given with --{flag.name}; leave one of them out.')
  _fedema_config()
  training.server_config()


def _fed_byol(objective: Any, element_spec: Any) -> Any:
  """Builds FedSSL, or where other networks are shared, FedEMA without mu."""
  if _exchange() == exchange.Exchange() and methods.STOP_GRADIENT.value:
    return algorithms.build_fed_ssl(objective, element_spec)
  config = dataclasses.replace(_fedema_config(), scaler=0.0)
  optimizer = training.build_server_optimizer()
  return fedema.build_fedema(objective, element_spec, optimizer, config)


def _fedu_config() -> fedu.FedUConfig:
  return fedu.FedUConfig(
    training.client_config(),
    methods.THRESHOLD.value,
    methods.DIVERGENCE_NORM.value,
    _exchange(),
  )


def _fedu(objective: Any, element_spec: Any) -> Any:
  optimizer = training.build_server_optimizer()
  return fedu.build_fedu(objective, element_spec, optimizer, _fedu_config())


def _check_fedu() -> None:
  _fedu_config()
  training.server_config()


def _per_ssfl(objective: Any, element_spec: Any) -> Any:
  config = per_ssfl.PerSSFLConfig(training.client_config(), methods.CONSENSUS.value)
  optimizer = training.build_server_optimizer()
  return per_ssfl.build_per_ssfl(objective, element_spec, optimizer, config)


def _bilevel_ssfl(objective: Any, element_spec: Any) -> Any:
  config = bilevel_ssfl.BiLevelConfig(training.client_config(), methods.PROXIMITY.value)
  optimizer = training.build_server_optimizer()
  return bilevel_ssfl.build_bilevel_ssfl(objective, element_spec, optimizer, config)


def _maml_ssfl(objective: Any, element_spec: Any) -> Any:
  config = maml_ssfl.MamlConfig(
    training.client_config(), methods.INNER_RATE.value, methods.SECOND_ORDER.value
  )
  optimizer = training.build_server_optimizer()
  return maml_ssfl.build_maml_ssfl(objective, element_spec, optimizer, config)


def _at_least_0(flag: flags.FlagHolder[float]) -> Callable[[], None]:
  """Returns a check of FedAvg's flags, and of a rate or weight."""

  def check() -> None:
    if not 0 <= flag.value < float('inf'):
      raise ValueError(f'{flag.name} is {flag.value}; it must be at least 0.')
    algorithms.check_fedavg()

  return check


def shared_model(
  process: Any, objective: Any, data: Any
) -> personal_models.PersonalModel:
  """Returns the global model as that of each client."""
  del process, objective, data
  return personal_models.shared


def _adapted(flag: flags.FlagHolder[float]) -> Callable[[Any, Any, Any], Any]:
  """Returns what builds the global model after a step on a client's own examples."""

  def build(process: Any, objective: Any, data: Any) -> Any:
    del process
    config = la_ssfl.AdaptationConfig(flag.value, seed=common.SEED.value)
    return personal_models.adapted(data, la_ssfl.build_adapt(objective, config))

  return build


def _online(process: Any, objective: Any, data: Any) -> personal_models.PersonalModel:
  """Returns the online networks that clients keep."""
  del objective, data
  return personal_models.kept(process, online_update.online)


def _kept(process: Any, objective: Any, data: Any) -> personal_models.PersonalModel:
  """Returns the personal models that clients keep."""
  del objective, data
  return personal_models.kept(process)


_EXCHANGE = (
  *algorithms.FEDAVG,
  'averaged',
  'replaced',
  'restart_absent',
  'predictor',
  'stop_gradient',
)

ALGORITHMS: Mapping[str, algorithms.Algorithm] = {
  'fed_byol': algorithms.Algorithm(
    _fed_byol, _EXCHANGE, {'divergence_norm': 'l2'}, check=algorithms.check_fedavg
  ),
  'fedu': algorithms.Algorithm(
    _fedu,
    (*_EXCHANGE, 'divergence_norm', 'threshold', *own_encoders.NAMES),
    {'divergence_norm': 'conv_mean', 'threshold': 0.4},
    check=_check_fedu,
    personal=_online,
  ),
  'fedema': algorithms.Algorithm(
    _fedema,
    (
      *_EXCHANGE,
      'tau',
      'scaler',
      'constant_mu',
      'ema_on',
      'divergence_norm',
      *own_encoders.NAMES,
    ),
    {'divergence_norm': 'l2'},
    check=_check_fedema,
    personal=_online,
  ),
  'la': algorithms.Algorithm(
    algorithms.build_fedavg,
    (*algorithms.FEDAVG, 'adaptation_rate', *own_encoders.NAMES),
    check=_at_least_0(methods.ADAPTATION_RATE),
    personal=_adapted(methods.ADAPTATION_RATE),
  ),
  'maml': algorithms.Algorithm(
    _maml_ssfl,
    (*algorithms.FEDAVG, 'inner_rate', 'second_order', *own_encoders.NAMES),
    check=_at_least_0(methods.INNER_RATE),
    personal=_adapted(methods.INNER_RATE),
  ),
  'bilevel': algorithms.Algorithm(
    _bilevel_ssfl,
    (*algorithms.FEDAVG, 'proximity_weight', *own_encoders.NAMES),
    check=_at_least_0(methods.PROXIMITY),
    personal=_kept,
  ),
  'per': algorithms.Algorithm(
    _per_ssfl,
    (*algorithms.TRAINING, 'consensus_weight', *own_encoders.NAMES),
    check=_at_least_0(methods.CONSENSUS),
    personal=_kept,
  ),
}
