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
from tff_ssl.settings import methods
from tff_ssl.settings import personal

_SAME_AS_FED_BYOL = 'the run is bit for bit that of --method=fed_byol'


def _check_fedema(config: run_config.RunConfig) -> None:
  """Refuses settings that do not fit another part of the run."""
  _check_mu_applies(config)
  if config.method.autoscaler == 'first_round':
    training.refuse_noise(
      config, 'with autoscaler=first_round new clients are counted in the clear'
    )
  _check_norm(config, config.method.used_norm)


def _check_mu_applies(config: run_config.RunConfig) -> None:
  """Refuses settings of FedEMA's mu where it applies to no network."""
  method, has_predictor = config.method, config.objective.predictor
  of_encoder = method.ema_on != 'predictor' and method.replaced in (
    online_networks.ONLINE,
    online_networks.BOTH,
  )
  of_predictor = (
    method.ema_on != 'encoder'
    and method.replaced != online_networks.NONE
    and has_predictor
  )
  # All fields that FedEMA has beyond FedU are of mu.
  of_fedu = kinds.field_types(personal.FedU)
  for name in (each for each in kinds.field_types(type(method)) if each not in of_fedu):
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
  method, own = config.method, config.objective
  is_plain = dataclasses.replace(method, first_target='copy') == type(method)()
  if is_plain and (own.stop_gradient or not own.target_trained):
    plain = functools.partial(fed_ssl.fed_ssl, first_target=method.first_target)
    return algorithms.without_settings(plain).build(config, objective)
  without_mu = personal.FedEMA(scaler=0.0, divergence_norm='l2', **vars(method))
  mixed = dataclasses.replace(config, method=without_mu)
  return algorithms.with_server(fedema.fedema).build(mixed, objective)


def _check_fedu(config: run_config.RunConfig) -> None:
  """Refuses settings that do not fit another part of the run."""
  if not config.objective.predictor:
    raise ValueError(
      'predictor of --objective is false; with --method=fedu it must be true, because '
      'the predictor is what far clients keep.'
    )
  quantile: float | None = config.method.threshold_quantile
  own: Any = config.aggregation
  if quantile and config.is_private and own.metrics_clip is None:
    raise ValueError(
      f'threshold_quantile of --method is {quantile} without metrics_clip of '
      '--aggregation; give one, because the threshold follows metrics, which otherwise '
      'do not leave the clients.'
    )
  _check_norm(config, config.method.divergence_norm)


def _fedca(
  config: run_config.RunConfig, objective: Any, population: int
) -> phases.Algorithm:
  """Builds FedCA; refuses a base model with another encoder."""
  params = _base_params(config)
  if params is not None:
    name = f'the encoder of {config.method.alignment_run}'
    checks.params(name, objective.model.encoder.plain.specs, params)
  server, clients = training.server_optimizer(config), training.of_clients(config)
  return fedca.fedca(objective, server, config.method, clients, population, params)


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


_ALGORITHMS = {
  personal.FedByol: algorithms.Algorithm(_fed_byol, training.check, keeps_states=True),
  personal.FedU: algorithms.with_server(
    fedu.fedu,
    _check_fedu,
    personal=algorithms.of_states,
    keeps_states=True,
    mixing=_mixing_of_fedu,
  ),
  personal.FedEMA: algorithms.with_server(
    fedema.fedema,
    _check_fedema,
    personal=algorithms.of_states,
    keeps_states=True,
    mixing=_mixing_of_fedema,
  ),
  methods.FedCA: algorithms.Algorithm(
    _fedca, _check_fedca, numbered=True, rows_of_one_client=algorithms.always
  ),
}
algorithms.register(_ALGORITHMS)
