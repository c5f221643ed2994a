"""Methods whose clients keep networks, or whose server keeps what clients encoded."""

from collections.abc import Mapping
import dataclasses
import functools
import pathlib
from typing import Any

from binaries.building import algorithms
from binaries.building import training
from binaries.config import changing
from binaries.config import run_config
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedca
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.divergence_aware import fedu
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.computing import kinds
from tff_ssl.encoders import checks
from tff_ssl.federated import phases
from tff_ssl.runs import alarms
from tff_ssl.runs import checkpoints
from tff_ssl.runs import frozen_base

_SAME_AS_FED_BYOL = 'the run is bit for bit that of --method=fed_byol'


def sharing(config: run_config.RunConfig) -> online_networks.NetworkSharing:
  """Returns which networks are averaged, replaced and first targets."""
  method = config.method
  return online_networks.NetworkSharing(
    averaged=method.averaged,
    replaced=method.replaced,
    first_target=method.first_target,
  )


def fedema_config(config: run_config.RunConfig) -> fedema.FedEMAConfig:
  """Returns FedEMA's settings; raises ValueError if two do not fit each other."""
  method = config.method
  for name in ('constant_mu', 'scaler'):
    if getattr(method, name) is not None and method.tau != type(method)().tau:
      raise ValueError(f'tau of --method is given with {name}; leave one of them out.')
  _check_mu_applies(config)
  if method.autoscaler == fedema.FIRST_ROUND:
    training.refuse_noise(
      config, 'with autoscaler=first_round new clients are counted in the clear'
    )
  own = fedema.FedEMAConfig(
    training=training.client_config(config),
    tau=method.tau,
    scaler=method.scaler,
    constant_mu=method.constant_mu,
    norm=method.divergence_norm,
    applied_to=method.ema_on,
    sharing=sharing(config),
    autoscaler=method.autoscaler,
    divergence_of=method.divergence_of,
  )
  _check_norm(config, own.used_norm)
  return own


def _check_mu_applies(config: run_config.RunConfig) -> None:
  """Refuses settings of FedEMA's mu where it applies to no network."""
  method, has_predictor = config.method, config.objective.predictor
  of_encoder = method.ema_on != fedema.PREDICTOR and method.replaced in (
    online_networks.ONLINE,
    online_networks.BOTH,
  )
  of_predictor = (
    method.ema_on != fedema.ENCODER
    and method.replaced != online_networks.NONE
    and has_predictor
  )
  for name in ('tau', 'scaler', 'constant_mu', 'autoscaler', 'ema_on'):
    value = getattr(method, name)
    if value != getattr(type(method)(), name) and not (of_encoder or of_predictor):
      without = '' if has_predictor else ' and predictor=false of --objective'
      raise ValueError(
        f'{name} of --method is {value} with replaced={method.replaced}{without}, so '
        'that mu applies to no network; leave it out.'
      )


def _check_norm(config: run_config.RunConfig, norm: str) -> None:
  """Refuses a norm of convolutions for networks that train none."""
  encoder = config.encoder
  if norm == 'conv_mean' and (encoder.kind == 'mlp' or encoder.lora is not None):
    lora = '' if encoder.lora is None else f':lora={encoder.lora}'
    raise ValueError(
      f'divergence_norm of --method is {norm} with --encoder={encoder.kind}{lora}, '
      'which trains no convolution; it must be l2.'
    )


def _mixing_of_fedema(config: run_config.RunConfig) -> alarms.MixingAlarm:
  """Builds the alarm for mu = 1 for all, unless it is asked for, and mu = 0."""
  method = config.method
  asked = method.constant_mu is not None
  alone = method.replaced in (online_networks.NONE, online_networks.TARGET)
  is_global = method.divergence_of == online_networks.GLOBAL
  lower = 'Use divergence_of=training, or lower' if is_global else 'Lower'
  return alarms.MixingAlarm(
    None
    if asked or alone
    else 'mu is 1 for every returning client: these clients keep their own online '
    'networks, take nothing from the global ones, and may never again. '
    f'{lower} scaler or tau of --method; scaler is meant for '
    'divergence_norm=conv_mean.',
    'mu was 0 for every client in every round: each took the global networks, and '
    f'{_SAME_AS_FED_BYOL}. Raise tau or scaler of --method, and have clients take part '
    'more than once.',
  )


def _mixing_of_fedu(config: run_config.RunConfig) -> alarms.MixingAlarm:
  """Builds the alarm that all clients have taken the global predictor."""
  del config
  return alarms.MixingAlarm(
    None,
    'no divergence reached the threshold: each client took the global predictor in '
    f'every round, and {_SAME_AS_FED_BYOL}. Use --method=threshold_quantile=0.5, or a '
    'threshold below the divergences in clients.csv.',
  )


def _fed_byol(config: run_config.RunConfig, objective: Any) -> phases.Algorithm:
  """Builds FedSSL; or if other networks are shared, FedEMA without mu."""
  first_target, own = config.method.first_target, config.objective
  plain_sharing = online_networks.NetworkSharing(first_target=first_target)
  if sharing(config) == plain_sharing and (own.stop_gradient or not own.target_trained):
    method = functools.partial(fed_ssl.fed_ssl, first_target=first_target)
    plain = algorithms.with_server(method, training.client_config)
  else:
    plain = algorithms.with_server(fedema.fedema, _without_mu)
  return plain.build(config, objective)


def _without_mu(config: run_config.RunConfig) -> fedema.FedEMAConfig:
  return fedema.FedEMAConfig(
    training=training.client_config(config),
    scaler=0.0,
    norm='l2',
    sharing=sharing(config),
  )


def fedu_config(config: run_config.RunConfig) -> fedu.FedUConfig:
  """Returns FedU's settings; raises ValueError if two do not fit each other."""
  method = config.method
  if not config.objective.predictor:
    raise ValueError(
      'predictor of --objective is false; with --method=fedu it must be true, because '
      'the predictor is what far clients keep.'
    )
  if method.replaced == online_networks.NONE:
    raise ValueError(
      'replaced of --method is none; with --method=fedu it must be online, target or '
      'both, because near clients take the global predictor.'
    )
  if (
    method.threshold_quantile is not None
    and method.threshold != type(method)().threshold
  ):
    raise ValueError(
      'threshold of --method is given with threshold_quantile; leave one of them out.'
    )
  own: Any = config.aggregation
  if method.threshold_quantile and config.is_private and own.metrics_clip is None:
    raise ValueError(
      f'threshold_quantile of --method is {method.threshold_quantile} without '
      'metrics_clip of --aggregation; give one, because the threshold follows metrics, '
      'which otherwise do not leave the clients.'
    )
  _check_norm(config, method.divergence_norm)
  return fedu.FedUConfig(
    training=training.client_config(config),
    threshold=method.threshold,
    norm=method.divergence_norm,
    sharing=sharing(config),
    quantile=method.threshold_quantile,
    divergence_of=method.divergence_of,
  )


def _fedca(
  config: run_config.RunConfig, objective: Any, population: int
) -> phases.Algorithm:
  """Builds FedCA; refuses a base model with another encoder."""
  params = _base_params(config)
  if params is not None:
    name = f'the encoder of {config.method.alignment_run}'
    checks.params(name, objective.model.encoder.plain.specs, params)
  own = fedca.FedCAConfig(
    population, config.method.dictionary_size, training.client_config(config)
  )
  return fedca.fedca(objective, training.server_optimizer(config), own, params)


def _check_fedca(config: run_config.RunConfig) -> None:
  """Refuses a base model without a weight, a weight without it, unfinished runs."""
  weight, run = config.objective.alignment_weight, config.method.alignment_run
  if weight and not run:
    raise ValueError(
      f'alignment_weight of --objective is {weight} without alignment_run of --method; '
      'it must name a finished run, whose encoder is the base model.'
    )
  if run and not weight:
    raise ValueError(
      f'alignment_run of --method is {run} without alignment_weight of --objective; it '
      'must be above 0.'
    )
  _base_params(config)
  training.check(config)


def _base_params(config: run_config.RunConfig) -> Mapping[str, Any] | None:
  """Reads the encoder of the base model's run; None without one."""
  if not config.method.alignment_run:
    return None
  folder = pathlib.Path(config.method.alignment_run)
  other = changing.read(folder, keep_paths=False)
  # The parameters' names and shapes do not show the norm, or how pixels are read.
  theirs, own = (
    kinds.to_text(
      dataclasses.replace(each.encoder, precision='float32', lora=None, frozen=None)
    )
    for each in (other, config)
  )
  if theirs != own:
    raise ValueError(
      f'{folder} is a run with --encoder={theirs}; the base model must have '
      f'--encoder={own}, as the clients have.'
    )
  round, params = checkpoints.read_newest(folder / 'checkpoints', algorithms.ENCODER)
  if round != other.rounds:
    raise ValueError(
      f'{folder} has {round} of {other.rounds} rounds; the base model must come from a '
      'finished run.'
    )
  return frozen_base.merged(folder, params)


ALGORITHMS: Mapping[str, algorithms.Algorithm] = {
  'fed_byol': algorithms.Algorithm(_fed_byol, training.check, keeps_states=True),
  'fedu': algorithms.with_server(
    fedu.fedu,
    fedu_config,
    personal=algorithms.of_states,
    keeps_states=True,
    mixing=_mixing_of_fedu,
  ),
  'fedema': algorithms.with_server(
    fedema.fedema,
    fedema_config,
    personal=algorithms.of_states,
    keeps_states=True,
    mixing=_mixing_of_fedema,
  ),
  'fedca': algorithms.Algorithm(
    _fedca, _check_fedca, numbered=True, rows_of_one_client=algorithms.always
  ),
}
