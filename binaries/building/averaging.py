"""FedAvg and its variants over any objective, and the same training centrally."""

import functools
from typing import Any

from binaries.building import algorithms
from binaries.building import training
from binaries.config import run_config
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import centralized_training
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedbn
from tff_ssl.algorithms import fedu2
from tff_ssl.algorithms import l_dawa
from tff_ssl.algorithms import orchestra
from tff_ssl.algorithms import scaffold
from tff_ssl.algorithms import ssd
from tff_ssl.federated import phases
from tff_ssl.objectives import target
from tff_ssl.settings import methods


def _check_fedprox(config: run_config.RunConfig) -> None:
  if not config.clients.proximal_weight:
    raise ValueError(
      'proximal_weight of --clients is 0; --method=fedprox needs one above 0 (0 is '
      'fedavg).'
    )


def _check_fedbn(config: run_config.RunConfig) -> None:
  own: Any = config.encoder
  norm = getattr(own, 'norm', None)
  if norm is None:
    raise ValueError(
      f'--encoder is {own.kind}, which has no batch norm; --method=fedbn needs an '
      'encoder that has, because it keeps batch norm on the client.'
    )
  if norm != 'batch':
    name, needed = 'norm', 'batch'
    if hasattr(own, 'batch_norm'):
      name, needed = 'batch_norm', 'trained'
    raise ValueError(
      f'{name} of --encoder is {getattr(own, name)}; --method=fedbn needs {needed}, '
      'because it keeps batch norm on the client.'
    )
  training.refuse_noise(
    config, 'its encoder has the mean of the batch norm that clients keep'
  )


def _fed_ssl(config: run_config.RunConfig, objective: Any) -> phases.Algorithm:
  reset = (target.TARGET,) if config.method.reset_target else ()
  method = functools.partial(fed_ssl.fed_ssl, reset=reset)
  return algorithms.without_settings(method).build(config, objective)


def _check_fed_ssl(config: run_config.RunConfig) -> None:
  """Refuses a target that does not exist, or does not stay on its client."""
  own = config.objective
  if config.method.reset_target and not hasattr(own, 'target_momentum'):
    raise ValueError(
      f'reset_target of --method is true with --objective={own.kind}, which keeps no '
      'target; it must be false.'
    )
  if not getattr(own, 'stop_gradient', True) and getattr(own, 'target_trained', False):
    raise ValueError(
      'target_trained of --objective is true without stop_gradient; with '
      '--method=fed_ssl, where the target stays on its client, it must be false.'
    )
  training.check(config)


def _check_fedu2(config: run_config.RunConfig) -> None:
  if config.method.unified and config.clients.weighting != 'examples':
    raise ValueError(
      f'weighting of --clients is {config.clients.weighting}; with --method=fedu2 it '
      'must be examples, unless unified=false, because the unified aggregator weighs '
      'clients by their updates.'
    )


def _check_scaffold(config: run_config.RunConfig) -> None:
  scaffold.check(config.clients)


def _centralized(
  config: run_config.RunConfig, objective: Any
) -> centralized.UnionProcess:
  return centralized_training.CentralizedTraining(
    objective, training.of_clients(config)
  )


_ALGORITHMS = {
  methods.FedAvg: algorithms.without_settings(
    fedavg.fedavg, personal=algorithms.shared_model
  ),
  methods.FedProx: algorithms.without_settings(fedavg.fedavg, _check_fedprox),
  methods.FedBN: algorithms.without_settings(
    fedbn.fedbn, _check_fedbn, keeps_states=True
  ),
  methods.FedSSL: algorithms.Algorithm(_fed_ssl, _check_fed_ssl, keeps_states=True),
  # For the size of the population; the numbers are not read.
  methods.Scaffold: algorithms.without_settings(
    scaffold.scaffold, _check_scaffold, numbered=True, keeps_states=True
  ),
  methods.LDawa: algorithms.without_settings(l_dawa.l_dawa),
  methods.FedU2: algorithms.with_server(
    fedu2.fedu2,
    _check_fedu2,
    numbered=True,
    # For its unified aggregator, which compares clients' updates.
    rows_of_one_client=lambda config: config.method.unified,
  ),
  methods.Orchestra: algorithms.with_server(
    orchestra.orchestra, numbered=True, rows_of_one_client=algorithms.always
  ),
  methods.SSD: algorithms.without_settings(ssd.ssd, numbered=True),
  methods.Centralized: algorithms.Algorithm(_centralized, training.of_clients),
}
algorithms.register(_ALGORITHMS)
