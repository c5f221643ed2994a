"""DCCO and FedSC, which aggregate encoding statistics, and the centralized step."""

from collections.abc import Mapping
from typing import Any

from binaries.building import algorithms
from binaries.building import training
from binaries.config import run_config
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.algorithms.statistics import fedsc


def _dcco_config(config: run_config.RunConfig) -> dcco.DCCOConfig:
  _check_norm(config)
  method = config.method
  if method.stale_statistics and getattr(config.objective, 'encoding_norm', None):
    raise ValueError(
      'encoding_norm of --objective is given with stale_statistics of --method; leave '
      'it out, because the statistics of the previous round have a different reference.'
    )
  return dcco.DCCOConfig(
    client_learning_rate=config.clients.learning_rate,
    local_steps=config.clients.local_steps,
    stale_statistics=method.stale_statistics,
    seed=config.random_seed,
  )


def _fedsc_config(config: run_config.RunConfig) -> fedsc.FedSCConfig:
  _check_norm(config)
  return fedsc.FedSCConfig(
    client_learning_rate=config.clients.learning_rate,
    local_steps=config.clients.local_steps,
    seed=config.random_seed,
  )


def _check_norm(config: run_config.RunConfig) -> None:
  if getattr(config.encoder, 'norm', None) != 'batch':
    return
  field, value, allowed = 'norm', 'batch', 'group'
  if published := getattr(config.encoder, 'batch_norm', None):
    field, value, allowed = 'batch_norm', published, 'folded'
  raise ValueError(
    f'{field} of --encoder is {value}; it must be {allowed} for '
    f'--method={config.method.kind}, whose layers must not depend on the batch.'
  )


def _centralized_steps(
  config: run_config.RunConfig, objective: Any
) -> centralized.UnionProcess:
  optimizer = training.server_optimizer(config)
  return centralized.Centralized(
    objective, optimizer, config.random_seed, config.rounds
  )


def _check_centralized(config: run_config.RunConfig) -> None:
  _check_norm(config)
  training.server_config(config)


ALGORITHMS: Mapping[str, algorithms.Algorithm] = {
  'dcco': algorithms.with_server(dcco.dcco, _dcco_config, sends_encodings=True),
  'fedsc': algorithms.with_server(
    fedsc.fedsc, _fedsc_config, sends_encodings=True, keeps_states=True
  ),
  'centralized_steps': algorithms.Algorithm(_centralized_steps, _check_centralized),
}
