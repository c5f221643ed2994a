"""The algorithms whose clients have their own models, built from flags."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from absl import flags

from binaries.flags import common
from binaries.flags import methods
from binaries.flags import own_encoders
from binaries.flags import training
from binaries.methods import algorithms
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.divergence_aware import fedu
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.algorithms.featarc import cluster_models
from tff_ssl.algorithms.featarc import featarc
from tff_ssl.algorithms.ssfl import bilevel_ssfl
from tff_ssl.algorithms.ssfl import la_ssfl
from tff_ssl.algorithms.ssfl import maml_ssfl
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.computing import checks
from tff_ssl.federated import phases
from tff_ssl.runs import alarms
from tff_ssl.runs import personal_models


def _exchange() -> online_networks.NetworkSharing:
  return online_networks.NetworkSharing(
    methods.AVERAGED.value, methods.REPLACED.value, methods.RESTART_ABSENT.value
  )


def _fedema_config() -> fedema.FedEMAConfig:
  for flag in (methods.CONSTANT_MU, methods.SCALER):
    if flag.value is not None and flags.FLAGS[methods.TAU.name].present:
      raise ValueError(f'--tau is given with --{flag.name}; leave one of them out.')
  config = fedema.FedEMAConfig(
    training.client_config(),
    methods.TAU.value,
    methods.SCALER.value,
    methods.CONSTANT_MU.value,
    methods.DIVERGENCE_NORM.value,
    methods.EMA_ON.value,
    _exchange(),
    methods.AUTOSCALER.value,
    methods.DIVERGENCE_OF.value,
  )
  # So that the run folder says which norm was used.
  common.fill({methods.DIVERGENCE_NORM.name: config.used_norm})
  return config


def _mixing_of_fedema() -> alarms.MixingAlarm:
  """Builds the alarm for mu = 1 for all, unless the flags ask for it, and mu = 0."""
  asked = methods.CONSTANT_MU.value is not None
  alone = methods.REPLACED.value in (online_networks.NONE, online_networks.TARGET)
  is_global = methods.DIVERGENCE_OF.value == online_networks.GLOBAL
  lower = 'Use --divergence_of=training, or lower' if is_global else 'Lower'
  return alarms.MixingAlarm(
    None
    if asked or alone
    else 'mu is 1 for every returning client: these clients keep their own online '
    'networks, take nothing from the global ones, and may never again. '
    f'{lower} --scaler or --tau; --scaler is meant for --divergence_norm=conv_mean.',
    'mu was 0 for every client in every round: each took the global networks, and the '
    'run is bit for bit that of --method=fed_byol. Raise --tau or --scaler, and have '
    'clients take part more than once.',
  )


def _mixing_of_fedu() -> alarms.MixingAlarm:
  """Builds the alarm that all clients have taken the global predictor."""
  return alarms.MixingAlarm(
    None,
    'no divergence reached the threshold: each client took the global predictor in '
    'every round, and the run is bit for bit that of --method=fed_byol. Use '
    '--threshold_quantile=0.5, or a --threshold below the divergences in clients.csv.',
  )


def _fed_byol(objective: Any) -> phases.Algorithm:
  """Builds FedSSL; or if other networks are shared, FedEMA without mu."""
  if _exchange() == online_networks.NetworkSharing() and methods.STOP_GRADIENT.value:
    build = algorithms.with_server(fed_ssl.fed_ssl, training.client_config)
  else:
    config = dataclasses.replace(_fedema_config(), scaler=0.0)
    build = algorithms.with_server(fedema.fedema, lambda: config)
  return build(objective)


def _fedu_config() -> fedu.FedUConfig:
  quantile = methods.THRESHOLD_QUANTILE
  if quantile.value is not None and flags.FLAGS[methods.THRESHOLD.name].present:
    raise ValueError(
      f'--{methods.THRESHOLD.name} is given with --{quantile.name}; leave one of them '
      'out.'
    )
  return fedu.FedUConfig(
    training.client_config(),
    methods.THRESHOLD.value,
    methods.DIVERGENCE_NORM.value,
    _exchange(),
    quantile.value,
    methods.DIVERGENCE_OF.value,
  )


def _per_config() -> per_ssfl.PerSSFLConfig:
  _check_at_least_0(methods.CONSENSUS)
  return per_ssfl.PerSSFLConfig(training.client_config(), methods.CONSENSUS.value)


def _bilevel_config() -> bilevel_ssfl.BiLevelConfig:
  _check_at_least_0(methods.PROXIMITY)
  return bilevel_ssfl.BiLevelConfig(training.client_config(), methods.PROXIMITY.value)


def _maml_config() -> maml_ssfl.MamlConfig:
  _check_at_least_0(methods.INNER_RATE)
  return maml_ssfl.MamlConfig(
    training.client_config(), methods.INNER_RATE.value, methods.SECOND_ORDER.value
  )


def _la_config() -> fedavg.FedAvgConfig:
  _check_at_least_0(methods.ADAPTATION_RATE)
  return training.client_config()


def _featarc_config() -> featarc.FeatARCConfig:
  return featarc.FeatARCConfig(
    methods.CLUSTERS.value, methods.ALIGNMENT_WEIGHT.value, training.client_config()
  )


def _check_at_least_0(flag: flags.FlagHolder[float]) -> None:
  checks.not_negative(**{flag.name: flag.value})


def shared_model(
  process: Any, objective: Any, data: Any
) -> personal_models.PersonalModel:
  """Returns the global model as each client's model."""
  del process, objective, data
  return personal_models.shared


def _adapted(flag: flags.FlagHolder[float]) -> Callable[[Any, Any, Any], Any]:
  """Returns a builder of the global model after a step on a client's own examples."""

  def build(process: Any, objective: Any, data: Any) -> Any:
    del process
    config = la_ssfl.AdaptationConfig(flag.value, seed=common.SEED.value)
    return personal_models.adapted(data, la_ssfl.la_ssfl(objective, config))

  return build


def _of_states(
  process: Any, objective: Any, data: Any
) -> personal_models.PersonalModel:
  """Returns the models that follow from clients' states."""
  del objective, data
  return personal_models.of_states(process)


def _featarc(*takes: str, **defaults: Any) -> algorithms.Algorithm:
  """Returns FeatARC or one of its parts.

  Args:
    *takes: Those of the two flags of FeatARC that it reads.
    **defaults: Values of both flags.
  """
  return _of(
    featarc.featarc,
    _featarc_config,
    takes=(*algorithms.FEDAVG, *own_encoders.NAMES, *takes),
    defaults=defaults,
    personal=_of_states,
    models=cluster_models.models,
  )


_EXCHANGE = (
  *algorithms.FEDAVG,
  *algorithms.STARTS,
  'averaged',
  'replaced',
  'restart_absent',
  'predictor',
  'stop_gradient',
)


def _of(
  method: Callable[..., phases.Algorithm], config: Callable[[], Any], **others: Any
) -> algorithms.Algorithm:
  return algorithms.Algorithm(
    algorithms.with_server(method, config), check=algorithms.checked(config), **others
  )


_PERSONAL = (*algorithms.FEDAVG, *own_encoders.NAMES)

ALGORITHMS: Mapping[str, algorithms.Algorithm] = {
  'fed_byol': algorithms.Algorithm(
    _fed_byol,
    _EXCHANGE,
    {'divergence_norm': 'l2'},
    check=algorithms.checked(training.client_config),
  ),
  'fedu': _of(
    fedu.fedu,
    _fedu_config,
    takes=(
      *_EXCHANGE,
      'divergence_of',
      'divergence_norm',
      'threshold',
      'threshold_quantile',
      *own_encoders.NAMES,
    ),
    defaults={'divergence_norm': 'conv_mean', 'threshold': 0.4},
    personal=_of_states,
    mixing=_mixing_of_fedu,
  ),
  'fedema': _of(
    fedema.fedema,
    _fedema_config,
    takes=(
      *_EXCHANGE,
      'tau',
      'scaler',
      'autoscaler',
      'constant_mu',
      'ema_on',
      'divergence_of',
      'divergence_norm',
      *own_encoders.NAMES,
    ),
    # Without a default, because the norm follows from --scaler.
    personal=_of_states,
    mixing=_mixing_of_fedema,
  ),
  'featarc': _featarc('clusters', 'alignment_weight', clusters=2, alignment_weight=1.0),
  'align_only': _featarc('alignment_weight', clusters=1, alignment_weight=1.0),
  'cluster_only': _featarc('clusters', clusters=2, alignment_weight=0.0),
  'la': _of(
    fedavg.fedavg,
    _la_config,
    takes=(*_PERSONAL, 'adaptation_rate'),
    personal=_adapted(methods.ADAPTATION_RATE),
  ),
  'maml': _of(
    maml_ssfl.maml_ssfl,
    _maml_config,
    takes=(*_PERSONAL, 'inner_rate', 'second_order'),
    personal=_adapted(methods.INNER_RATE),
  ),
  'bilevel': _of(
    bilevel_ssfl.bilevel_ssfl,
    _bilevel_config,
    takes=(*_PERSONAL, 'proximity_weight'),
    personal=_of_states,
  ),
  'per': _of(
    per_ssfl.per_ssfl,
    _per_config,
    takes=(*algorithms.TRAINING, 'consensus_weight', *own_encoders.NAMES),
    personal=_of_states,
  ),
}
