"""FedAvg and its variants over any objective, and the same training centrally."""

from collections.abc import Mapping
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


def _fedprox_config(config: run_config.RunConfig) -> fedavg.FedAvgConfig:
  if not config.clients.proximal_weight:
    raise ValueError(
      'proximal_weight of --clients is 0; --method=fedprox needs one above 0 (0 is '
      'fedavg).'
    )
  return training.client_config(config)


def _fedbn_config(config: run_config.RunConfig) -> fedavg.FedAvgConfig:
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
  return training.client_config(config)


def _fed_ssl(config: run_config.RunConfig, objective: Any) -> phases.Algorithm:
  reset = (target.TARGET,) if config.method.reset_target else ()
  method = functools.partial(fed_ssl.fed_ssl, reset=reset)
  plain = algorithms.with_server(method, training.client_config)
  return plain.build(config, objective)


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


def _scaffold_config(
  config: run_config.RunConfig, population: int
) -> scaffold.ScaffoldConfig:
  return scaffold.ScaffoldConfig(population, training.client_config(config))


def _l_dawa_config(config: run_config.RunConfig) -> l_dawa.LDAWAConfig:
  return l_dawa.LDAWAConfig(training.client_config(config))


def _fedu2_config(config: run_config.RunConfig, population: int) -> fedu2.FedU2Config:
  own, default = config.method, type(config.method)()
  if own.unified and config.clients.weighting != 'examples':
    raise ValueError(
      f'weighting of --clients is {config.clients.weighting}; with --method=fedu2 it '
      'must be examples, unless unified=false, because the unified aggregator weighs '
      'clients by their updates.'
    )
  for name, is_used, without in (
    ('sketch_size', own.unified, 'unified=false'),
    ('tau', own.uniformity_weight, 'uniformity_weight=0'),
  ):
    if not is_used and (value := getattr(own, name)) != getattr(default, name):
      raise ValueError(
        f'{name} of --method is {value} with {without}, where it does nothing; leave '
        'it out.'
      )
  return fedu2.FedU2Config(
    population,
    own.uniformity_weight,
    own.tau,
    own.unified,
    own.sketch_size,
    training.client_config(config),
  )


def _orchestra_config(
  config: run_config.RunConfig, population: int
) -> orchestra.OrchestraConfig:
  own = config.method
  return orchestra.OrchestraConfig(
    population,
    own.clusters,
    own.local_clusters,
    training=training.client_config(config),
  )


def _ssd_config(config: run_config.RunConfig, population: int) -> ssd.SSDConfig:
  return ssd.SSDConfig(population, training=training.client_config(config))


def _centralized(
  config: run_config.RunConfig, objective: Any
) -> centralized.UnionProcess:
  return centralized_training.CentralizedTraining(
    objective,
    training.plan(config),
    training.rate(config),
    config.random_seed,
    config.rounds,
  )


def _check_centralized(config: run_config.RunConfig) -> None:
  training.plan(config)
  training.rate(config)


ALGORITHMS: Mapping[str, algorithms.Algorithm] = {
  'fedavg': algorithms.with_server(
    fedavg.fedavg, training.client_config, personal=algorithms.shared_model
  ),
  'fedprox': algorithms.with_server(fedavg.fedavg, _fedprox_config),
  'fedbn': algorithms.with_server(fedbn.fedbn, _fedbn_config, keeps_states=True),
  'fed_ssl': algorithms.Algorithm(_fed_ssl, _check_fed_ssl, keeps_states=True),
  # For the size of the population; the numbers are not read.
  'scaffold': algorithms.with_server(
    scaffold.scaffold, _scaffold_config, numbered=True, keeps_states=True
  ),
  'l_dawa': algorithms.with_server(l_dawa.l_dawa, _l_dawa_config),
  'fedu2': algorithms.with_server(
    fedu2.fedu2,
    _fedu2_config,
    numbered=True,
    # For its unified aggregator, which compares clients' updates.
    rows_of_one_client=lambda config: config.method.unified,
  ),
  'orchestra': algorithms.with_server(
    orchestra.orchestra,
    _orchestra_config,
    numbered=True,
    rows_of_one_client=algorithms.always,
  ),
  'ssd': algorithms.with_server(ssd.ssd, _ssd_config, numbered=True),
  'centralized': algorithms.Algorithm(_centralized, _check_centralized),
}
