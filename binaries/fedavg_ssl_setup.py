"""The objectives and algorithms of `binaries.fedavg_ssl`, built from its flags."""

from collections.abc import Callable, Collection, Mapping
import dataclasses
from typing import Any

from absl import flags

from binaries import client_flags
from binaries import common
from binaries import experiment
from binaries import optimizer_flags
from tasks import task as task_lib
from tff_ssl.algorithms import centralized_training
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedbn
from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.objectives import base
from tff_ssl.objectives import byol
from tff_ssl.objectives import contrastive
from tff_ssl.objectives import mae
from tff_ssl.objectives import moco
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import swav
from tff_ssl.objectives import uniformity

# The papers' heads are for ResNet-50: a quarter as wide for small encoders.
_WIDTHS = (256, 256, 256)
_CONTRASTIVE_WIDTHS = (256, 256, 128)
_SWAV_WIDTHS = (256, 128)
_FED_SSL = 'fed_ssl'
_FEDBN = 'fedbn'
_FEDAVG = ('fedavg', 'fedprox', _FEDBN, _FED_SSL)
ALGORITHMS = (*_FEDAVG, 'centralized')

Objective = base.Objective | base.Stateful


def _simclr(encoder: network.Network) -> Objective:
  return contrastive.ContrastiveObjective(
    common.build_siamese(encoder, _CONTRASTIVE_WIDTHS), _TEMPERATURE.value or 0.5
  )


def _statistics(loss_name: str) -> Callable[[network.Network], Objective]:
  def build(encoder: network.Network) -> Objective:
    return statistics.StatisticsObjective(
      common.build_siamese(encoder, _WIDTHS), loss_name
    )

  return build


def _simsiam(encoder: network.Network) -> Objective:
  widths = common.projector_widths(_WIDTHS)
  return simsiam.build_simsiam(encoder, _augmentation(), widths, _PREDICTOR.value)


def _byol(encoder: network.Network) -> Objective:
  widths = common.projector_widths(_WIDTHS)
  momentum = 0.99 if _MOMENTUM.value is None else _MOMENTUM.value
  return byol.build_byol(encoder, _augmentation(), widths, _PREDICTOR.value, momentum)


def _moco(build: Callable[..., moco.MocoObjective], default: tuple[int, ...]) -> Any:
  def build_with_flags(encoder: network.Network) -> Objective:
    momentum = 0.999 if _MOMENTUM.value is None else _MOMENTUM.value
    widths = common.projector_widths(default)
    return _tempered(build(encoder, _augmentation(), widths, momentum, _QUEUE.value))

  return build_with_flags


def _swav(encoder: network.Network) -> Objective:
  widths = common.projector_widths(_SWAV_WIDTHS)
  return _tempered(swav.build_swav(encoder, _augmentation(), widths, _PROTOTYPES.value))


def _tempered(objective: Any) -> Objective:
  """Returns the objective with the flag's temperature, or its own without one."""
  if _TEMPERATURE.value is None:
    return objective
  return dataclasses.replace(objective, temperature=_TEMPERATURE.value)


def _uniformity(encoder: network.Network) -> Objective:
  widths = common.projector_widths(_CONTRASTIVE_WIDTHS)
  return uniformity.build_uniformity(encoder, _augmentation(), widths)


def _mae(encoder: network.Network) -> Objective:
  # Crops and flips, as the paper's, whatever the flag's default for two views.
  return mae.build_mae(encoder)


def _augmentation() -> augment.AugmentConfig:
  return augment.by_name(common.AUGMENTATION.value)


_SELF_SUPERVISED: Mapping[str, Callable[[network.Network], Objective]] = {
  'simclr': _simclr,
  'moco_v1': _moco(moco.build_moco_v1, (128,)),
  'moco_v2': _moco(moco.build_moco_v2, (256, 128)),
  'simsiam': _simsiam,
  'byol': _byol,
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
_WEIGHTING = flags.DEFINE_enum(
  'weighting', 'examples', tuple(fedavg.WEIGHTINGS), 'By what clients count.'
)
_TEMPERATURE = flags.DEFINE_float(
  'temperature', None, "Of the softmax; by default the objective's paper's."
)
_PREDICTOR = flags.DEFINE_integer(
  'predictor_width', None, 'Hidden units of the predictor.', lower_bound=1
)
_MOMENTUM = flags.DEFINE_float(
  'target_momentum', None, "Of the target or key network; by default the paper's."
)
_QUEUE = flags.DEFINE_integer('queue_size', 1024, 'Keys in the queue.', lower_bound=1)
_PROTOTYPES = flags.DEFINE_integer(
  'prototypes', 256, 'Prototypes of SwAV.', lower_bound=1
)
# A server that takes the mean update as it is: FedAvg.
flags.set_default(optimizer_flags.SERVER_OPTIMIZER, 'sgd')
flags.set_default(optimizer_flags.RATE, 1.0)
flags.set_default(optimizer_flags.SCHEDULE, 'constant')
flags.set_default(optimizer_flags.CLIENT_RATE, 0.03)

_MOCO = ('moco_v1', 'moco_v2')
_WITH_TWO_VIEWS = tuple(name for name in _SELF_SUPERVISED if name != 'mae')
_OF_OBJECTIVES: dict[str, Collection[str]] = {
  'temperature': ('simclr', *_MOCO, 'swav'),
  'predictor_width': ('simsiam', 'byol'),
  'target_momentum': ('byol', *_MOCO),
  'queue_size': _MOCO,
  'prototypes': ('swav',),
  'projector': _WITH_TWO_VIEWS,
  'augmentation': _WITH_TWO_VIEWS,
}
_OF_ALGORITHMS: dict[str, Collection[str]] = {
  'proximal_weight': ('fedprox',),
  'encoder_norm': ('fedavg', 'fedprox', _FEDBN, 'centralized'),
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
  config = fedavg.FedAvgConfig(plan, rate, _WEIGHTING.value, seed)
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
