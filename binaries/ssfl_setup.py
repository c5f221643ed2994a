"""The methods of `binaries.ssfl`, built from its flags."""

from collections.abc import Collection
from typing import Any

from absl import flags

from binaries import client_flags
from binaries import common
from binaries import experiment
from binaries import optimizer_flags
from binaries import personal
from binaries import run_parts
from tasks import task as task_lib
from tff_ssl.algorithms import bilevel_ssfl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import la_ssfl
from tff_ssl.algorithms import maml_ssfl
from tff_ssl.algorithms import per_ssfl
from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.objectives import simsiam
from tff_ssl.runtime import personal_models

METHODS = ('global', 'la', 'maml', 'bilevel', 'per')
# The paper's heads are for larger encoders: a quarter as wide.
_WIDTHS = (256, 256, 256)

METHOD = flags.DEFINE_enum('method', 'per', METHODS, 'What is run.')
_CONSENSUS = flags.DEFINE_float('consensus_weight', 1.0, 'lambda of per.')
_PROXIMITY = flags.DEFINE_float('proximity_weight', 0.1, 'lambda of bilevel.')
_INNER_RATE = flags.DEFINE_float(
  'inner_rate', 0.01, 'Of the inner step of maml, and of the step of its evaluation.'
)
_SECOND_ORDER = flags.DEFINE_bool(
  'second_order', True, 'Whether the gradient of maml goes through the inner step.'
)
_ADAPTATION_RATE = flags.DEFINE_float(
  'adaptation_rate', 0.01, "Of la's step before an evaluation."
)
_PREDICTOR = flags.DEFINE_integer(
  'predictor_width', None, 'Hidden units of the predictor.', lower_bound=1
)
_WEIGHTING = flags.DEFINE_enum(
  'weighting', 'examples', tuple(fedavg.WEIGHTINGS), 'By what clients count.'
)
# The server takes the mean update as it is; ten clients a round are the paper's.
flags.set_default(optimizer_flags.SERVER_OPTIMIZER, 'sgd')
flags.set_default(optimizer_flags.RATE, 1.0)
flags.set_default(optimizer_flags.SCHEDULE, 'constant')
flags.set_default(optimizer_flags.CLIENT_RATE, 0.03)
flags.set_default(common.CLIENTS_PER_ROUND, 10)

_TAKEN_BY: dict[str, Collection[str]] = {
  'consensus_weight': ('per',),
  'proximity_weight': ('bilevel',),
  'inner_rate': ('maml',),
  'second_order': ('maml',),
  'adaptation_rate': ('la',),
  'proximal_weight': ('global', 'la', 'maml', 'bilevel'),
}


def check_flags() -> None:
  """Refuses what can be seen to be wrong without data.

  Raises:
    ValueError: If a flag is missing, out of range, not taken by the chosen method, or
      not that of the run in the folder.
  """
  experiment.refuse_strays(_TAKEN_BY, 'method')
  for flag in (_CONSENSUS, _PROXIMITY, _INNER_RATE, _ADAPTATION_RATE):
    if not 0 <= flag.value < float('inf'):
      raise ValueError(f'{flag.name} is {flag.value}; it must be at least 0.')
  optimizer_flags.server_config()
  client_flags.plan()
  client_flags.schedule()
  personal.check_flags()
  experiment.check_flags()


def build_objective(
  task: task_lib.Task, encoder: network.Network
) -> simsiam.SimSiamObjective:
  """Builds SimSiam."""
  del task
  return simsiam.build_simsiam(
    encoder,
    augment.by_name(common.AUGMENTATION.value),
    common.projector_widths(_WIDTHS),
    _PREDICTOR.value,
  )


def build_algorithm(objective: simsiam.SimSiamObjective, element_spec: Any) -> Any:
  """Builds what the round loop runs."""
  config = fedavg.FedAvgConfig(
    client_flags.plan(), client_flags.schedule(), _WEIGHTING.value, common.SEED.value
  )
  optimizer = optimizer_flags.build_server_optimizer()
  if METHOD.value == 'per':
    return per_ssfl.build_per_ssfl(
      objective,
      element_spec,
      optimizer,
      per_ssfl.PerSSFLConfig(config, _CONSENSUS.value),
    )
  if METHOD.value == 'bilevel':
    return bilevel_ssfl.build_bilevel_ssfl(
      objective,
      element_spec,
      optimizer,
      bilevel_ssfl.BiLevelConfig(config, _PROXIMITY.value),
    )
  if METHOD.value == 'maml':
    return maml_ssfl.build_maml_ssfl(
      objective,
      element_spec,
      optimizer,
      maml_ssfl.MamlConfig(config, _INNER_RATE.value, _SECOND_ORDER.value),
    )
  return fedavg.build_fedavg(objective, element_spec, optimizer, config)


def build_personal(parts: run_parts.Parts) -> personal.Personal:
  """Builds the clients' own encoders: what they keep, or the adapted global one."""
  if METHOD.value in ('per', 'bilevel'):
    return personal.Personal(parts, personal_models.kept(parts.algorithm))
  if METHOD.value == 'global':
    return personal.Personal(parts, personal_models.shared)
  rate = _INNER_RATE.value if METHOD.value == 'maml' else _ADAPTATION_RATE.value
  config = la_ssfl.AdaptationConfig(rate, seed=common.SEED.value)
  adapt = la_ssfl.build_adapt(parts.objective, config)
  return personal.Personal(parts, personal_models.adapted(parts.data, adapt))


def build_experiment() -> experiment.Experiment:
  """Returns what the flags say is run."""
  return experiment.Experiment(
    f'{METHOD.value} ssfl',
    build_objective,
    build_algorithm,
    build_personal=build_personal,
  )
