"""The objectives and algorithms of `binaries.fedavg_ssl`, built from its flags."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from absl import flags

from binaries import client_flags
from binaries import common
from binaries import experiment
from binaries import objective_flags
from binaries import optimizer_flags
from tasks import task as task_lib
from tff_ssl.algorithms import centralized_training
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedbn
from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.objectives import mae
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import swav
from tff_ssl.objectives import uniformity

_SWAV_WIDTHS = (256, 128)
_FED_SSL = 'fed_ssl'
_FEDBN = 'fedbn'
_FEDAVG = ('fedavg', 'fedprox', _FEDBN, _FED_SSL)
ALGORITHMS = (*_FEDAVG, 'centralized')

Objective = objective_flags.Objective


def _statistics(loss_name: str) -> Callable[[network.Network], Objective]:
  def build(encoder: network.Network) -> Objective:
    return statistics.StatisticsObjective(
      common.build_siamese(encoder, objective_flags.WIDTHS), loss_name
    )

  return build


def _swav(encoder: network.Network) -> Objective:
  widths = common.projector_widths(_SWAV_WIDTHS)
  views = objective_flags.augmentation()
  return objective_flags.tempered(
    swav.build_swav(encoder, views, widths, _PROTOTYPES.value)
  )


def _uniformity(encoder: network.Network) -> Objective:
  widths = common.projector_widths(objective_flags.CONTRASTIVE_WIDTHS)
  return uniformity.build_uniformity(encoder, objective_flags.augmentation(), widths)


def _mae(encoder: network.Network) -> Objective:
  # Crops and flips, as the paper's, whatever the flag's default for two views.
  return mae.build_mae(encoder)


_SELF_SUPERVISED: Mapping[str, Callable[[network.Network], Objective]] = {
  **objective_flags.BUILDERS,
  'swav': _swav,
  'cco': _statistics('cco'),
  'vicreg': _statistics('vicreg'),
  'uniformity': _uniformity,
  'mae': _mae,
}
SUPERVISED = 'supervised'
OBJECTIVES = (*_SELF_SUPERVISED, SUPERVISED)

OBJECTIVE = flags.DEFINE_enum('objective', 'simsiam', OBJECTIVES, 'What is minimised.')
ALGORITHM = flags.DEFINE_enum('algorithm', 'fedavg', ALGORITHMS, 'What minimises it.')
_PROTOTYPES = flags.DEFINE_integer(
  'prototypes', 256, 'Prototypes of SwAV.', lower_bound=1
)

_WITH_TWO_VIEWS = tuple(name for name in _SELF_SUPERVISED if name != 'mae')
_OF_OBJECTIVES: dict[str, Collection[str]] = {
  **objective_flags.TAKEN_BY,
  'temperature': (*objective_flags.TAKEN_BY['temperature'], 'swav'),
  'prototypes': ('swav',),
  'projector': _WITH_TWO_VIEWS,
  'augmentation': _WITH_TWO_VIEWS,
}
_OF_ALGORITHMS: dict[str, Collection[str]] = {
  'proximal_weight': ('fedprox',),
  'weighting': _FEDAVG,
  'worker_address': _FEDAVG,
  'packs': _FEDAVG,
  **dict.fromkeys(optimizer_flags.SERVER_NAMES, _FEDAVG),
}


def check_flags() -> None:
  """Refuses what can be seen to be wrong without data.

  Raises:
    ValueError: If a flag is missing, out of range, not taken by the chosen objective or
      algorithm, or not that of the run in the folder.
  """
  experiment.refuse_strays(_OF_OBJECTIVES, 'objective')
  experiment.refuse_strays(_OF_ALGORITHMS, 'algorithm')
  if ALGORITHM.value == 'fedprox' and not client_flags.PROXIMAL.value:
    raise ValueError(
      'proximal_weight is 0; --algorithm=fedprox needs one above 0 (0 is fedavg).'
    )
  if ALGORITHM.value == _FEDBN and common.NORM.value != 'batch':
    raise ValueError(
      f'encoder_norm is {common.NORM.value}; --algorithm=fedbn needs batch, which it '
      'keeps on the client.'
    )
  optimizer_flags.server_config()
  client_flags.plan()
  client_flags.schedule()
  experiment.check_flags()


def build_objective(task: task_lib.Task, encoder: network.Network) -> Objective:
  """Builds what is minimised."""
  if OBJECTIVE.value == SUPERVISED:
    return supervised.SupervisedObjective(
      encoder,
      projector.build_linear(encoder.output_dim, task.num_classes),
      augment.by_name('flip'),
    )
  return _SELF_SUPERVISED[OBJECTIVE.value](encoder)


def build_algorithm(objective: Objective, element_spec: Any) -> Any:
  """Builds what the round loop runs."""
  plan, rate, seed = client_flags.plan(), client_flags.schedule(), common.SEED.value
  if ALGORITHM.value == 'centralized':
    return centralized_training.CentralizedTraining(objective, plan, rate, seed)
  config = fedavg.FedAvgConfig(plan, rate, objective_flags.WEIGHTING.value, seed)
  optimizer = optimizer_flags.build_server_optimizer()
  if ALGORITHM.value == _FEDBN:
    return fedbn.build_fedbn(objective, element_spec, optimizer, config)
  if ALGORITHM.value == _FED_SSL:
    return fed_ssl.build_fed_ssl(objective, element_spec, optimizer, config)
  return fedavg.build_fedavg(objective, element_spec, optimizer, config)


def build_experiment() -> experiment.Experiment:
  """Returns what the flags say is run."""
  return experiment.Experiment(
    f'{ALGORITHM.value} {OBJECTIVE.value}',
    build_objective,
    build_algorithm,
    federated=ALGORITHM.value in _FEDAVG,
    label_share=1.0 if OBJECTIVE.value == SUPERVISED else None,
  )
