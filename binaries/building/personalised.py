"""SSFL: methods whose clients have their own models."""

from collections.abc import Mapping
from typing import Any

from binaries.building import algorithms
from binaries.building import training
from binaries.config import run_config
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.ssfl import bilevel_ssfl
from tff_ssl.algorithms.ssfl import la_ssfl
from tff_ssl.algorithms.ssfl import maml_ssfl
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.runs import personal_models

# Rate of the step to a client's own model, which MAML's inner step anticipates.
_STEP = 0.01


def _per_config(config: run_config.RunConfig) -> per_ssfl.PerSSFLConfig:
  return per_ssfl.PerSSFLConfig(
    training.client_config(config), config.method.consensus_weight
  )


def _bilevel_config(config: run_config.RunConfig) -> bilevel_ssfl.BiLevelConfig:
  return bilevel_ssfl.BiLevelConfig(
    training.client_config(config), config.method.proximity_weight
  )


def _maml_config(config: run_config.RunConfig) -> maml_ssfl.MamlConfig:
  return maml_ssfl.MamlConfig(training.client_config(config), _STEP)


def _adapted(
  config: run_config.RunConfig, process: Any, objective: Any, data: Any
) -> personal_models.PersonalModel:
  """Builds the global model after a step on a client's own examples."""
  del process
  own = la_ssfl.AdaptationConfig(_STEP, seed=config.random_seed)
  return personal_models.adapted(data, la_ssfl.la_ssfl(objective, own))


ALGORITHMS: Mapping[str, algorithms.Algorithm] = {
  'la': algorithms.with_server(
    fedavg.fedavg, training.client_config, personal=_adapted
  ),
  'maml': algorithms.with_server(maml_ssfl.maml_ssfl, _maml_config, personal=_adapted),
  'bilevel': algorithms.with_server(
    bilevel_ssfl.bilevel_ssfl,
    _bilevel_config,
    personal=algorithms.of_states,
    keeps_states=True,
  ),
  'per': algorithms.with_server(
    per_ssfl.per_ssfl,
    _per_config,
    personal=algorithms.of_states,
    keeps_states=True,
  ),
}
