"""DCCO and FedSC, which aggregate encoding statistics, and the centralized step."""

from typing import Any

from binaries.building import algorithms
from binaries.building import training
from binaries.config import run_config
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.algorithms.statistics import fedsc
from tff_ssl.federated import phases
from tff_ssl.settings import methods


def _dcco(config: run_config.RunConfig, objective: Any) -> phases.Algorithm:
  server = training.server_optimizer(config)
  own = config.method, config.clients, config.random_seed
  return dcco.dcco(objective, server, *own)


def _check_dcco(config: run_config.RunConfig) -> None:
  if config.method.stale_statistics and getattr(
    config.objective, 'encoding_norm', None
  ):
    raise ValueError(
      'encoding_norm of --objective is given with stale_statistics of --method; leave '
      'it out, because the statistics of the previous round have a different reference.'
    )
  _check(config)


def _fedsc(config: run_config.RunConfig, objective: Any) -> phases.Algorithm:
  server = training.server_optimizer(config)
  return fedsc.fedsc(objective, server, config.clients, config.random_seed)


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


def _check(config: run_config.RunConfig) -> None:
  _check_norm(config)
  training.server_optimizer(config)


_ALGORITHMS = {
  methods.Dcco: algorithms.Algorithm(_dcco, _check_dcco, sends_encodings=True),
  methods.FedSC: algorithms.Algorithm(
    _fedsc, _check, sends_encodings=True, keeps_states=True
  ),
  methods.CentralizedSteps: algorithms.Algorithm(_centralized_steps, _check),
}
algorithms.register(_ALGORITHMS)
