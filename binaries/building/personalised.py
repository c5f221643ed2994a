"""SSFL: methods whose clients have their own models."""

import functools
from typing import Any

from binaries.building import algorithms
from binaries.config import run_config
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.ssfl import bilevel_ssfl
from tff_ssl.algorithms.ssfl import la_ssfl
from tff_ssl.algorithms.ssfl import maml_ssfl
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.runs import personal_models
from tff_ssl.settings import personal

# Rate of the step to a client's own model, which MAML's inner step anticipates.
_STEP = 0.01


def _adapted(
  config: run_config.RunConfig, process: Any, objective: Any, data: Any
) -> personal_models.PersonalModel:
  """Builds the global model after a step on a client's own examples."""
  del process
  adapt = la_ssfl.la_ssfl(objective, _STEP, seed=config.random_seed)
  return personal_models.adapted(data, adapt)


_ALGORITHMS = {
  personal.LA: algorithms.without_settings(fedavg.fedavg, personal=_adapted),
  personal.Maml: algorithms.without_settings(
    functools.partial(maml_ssfl.maml_ssfl, inner_rate=_STEP), personal=_adapted
  ),
  personal.Bilevel: algorithms.with_server(
    bilevel_ssfl.bilevel_ssfl, personal=algorithms.of_states, keeps_states=True
  ),
  personal.Per: algorithms.with_server(
    per_ssfl.per_ssfl, personal=algorithms.of_states, keeps_states=True
  ),
}
algorithms.register(_ALGORITHMS)
