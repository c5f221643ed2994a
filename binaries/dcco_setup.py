"""The algorithms of `binaries.dcco`, built from its flags."""

from collections.abc import Collection
from typing import Any

from absl import flags

from binaries import common
from binaries import experiment
from binaries import optimizer_flags
from tasks import task as task_lib
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import dcco
from tff_ssl.algorithms import fedavg
from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.federated import local_training
from tff_ssl.objectives import base
from tff_ssl.objectives import contrastive
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised

ALGORITHMS = ('dcco', 'fedavg_cco', 'fedavg_nt_xent', 'centralized_cco', 'supervised')
FEDERATED = ('dcco', 'fedavg_cco', 'fedavg_nt_xent')
# The paper's projectors on CIFAR-100 (section 4), a quarter as wide for small encoders.
_CCO_PROJECTOR = (256, 256, 256)
_NT_XENT_PROJECTOR = (256, 256, 128)

ALGORITHM = flags.DEFINE_enum('algorithm', 'dcco', ALGORITHMS, 'What is run.')
_LOSS = flags.DEFINE_enum(
  'loss', 'cco', statistics.LOSSES, 'Loss of the statistics, of dcco alone.'
)
_OFF_DIAGONAL = flags.DEFINE_float('off_diagonal_weight', 20.0, "CCO's lambda.")
_TEMPERATURE = flags.DEFINE_float('temperature', 0.1, 'Of fedavg_nt_xent.')
_LOCAL_STEPS = flags.DEFINE_integer(
  'local_steps', 1, 'Steps of a client in a round.', lower_bound=1
)
_STALE = flags.DEFINE_bool(
  'stale_statistics', False, 'dcco with the statistics of the round before.'
)
_SUPERVISED_LABELS = flags.DEFINE_float(
  'supervised_labels', 0.1, 'Share of the training labels that `supervised` has.'
)
# Flags that belong to some algorithms only: elsewhere they would do nothing.
_TAKEN_BY: dict[str, Collection[str]] = {
  'loss': ('dcco',),
  'stale_statistics': ('dcco',),
  'off_diagonal_weight': ('dcco', 'fedavg_cco', 'centralized_cco'),
  'temperature': ('fedavg_nt_xent',),
  'local_steps': FEDERATED,
  'client_learning_rate': FEDERATED,
  'supervised_labels': ('supervised',),
  'projector': (*FEDERATED, 'centralized_cco'),
  'augmentation': (*FEDERATED, 'centralized_cco'),
  'worker_address': FEDERATED,
  'packs': FEDERATED,
}


def check_flags() -> None:
  """Refuses what can be seen to be wrong without data.

  Raises:
    ValueError: If a flag is missing, out of range, not taken by the chosen algorithm,
      or not that of the run in the folder.
  """
  experiment.refuse_strays(_TAKEN_BY, 'algorithm')
  if common.NORM.value == 'batch':
    raise ValueError(
      'encoder_norm is batch; DCCO and what it is compared with take group, for their '
      'layers must not depend on the batch. binaries.fedavg_ssl takes both.'
    )
  optimizer_flags.server_config()
  experiment.check_flags()


def build_objective(task: task_lib.Task, encoder: network.Network) -> base.Objective:
  """Builds what is minimised."""
  if ALGORITHM.value == 'supervised':
    return supervised.SupervisedObjective(
      encoder,
      projector.build_linear(encoder.output_dim, task.num_classes),
      byol.by_name('flip'),
    )
  if ALGORITHM.value == 'fedavg_nt_xent':
    return contrastive.ContrastiveObjective(
      common.build_siamese(encoder, _NT_XENT_PROJECTOR), _TEMPERATURE.value
    )
  return statistics.StatisticsObjective(
    common.build_siamese(encoder, _CCO_PROJECTOR), _LOSS.value, _OFF_DIAGONAL.value
  )


def build_algorithm(objective: Any, element_spec: Any) -> Any:
  """Builds what the round loop runs."""
  optimizer = optimizer_flags.build_server_optimizer()
  rate = optimizer_flags.CLIENT_RATE.value
  steps, seed = _LOCAL_STEPS.value, common.SEED.value
  if ALGORITHM.value == 'dcco':
    dcco_config = dcco.DCCOConfig(rate, steps, _STALE.value, seed=seed)
    return dcco.build_dcco(objective, element_spec, optimizer, dcco_config)
  if ALGORITHM.value in FEDERATED:
    local = local_training.LocalPlan(epochs=steps)
    fedavg_config = fedavg.FedAvgConfig(local, rate, seed=seed)
    return fedavg.build_fedavg(objective, element_spec, optimizer, fedavg_config)
  return centralized.Centralized(objective, optimizer, seed)


def build_experiment() -> experiment.Experiment:
  """Returns what the flags say is run."""
  name = ALGORITHM.value
  return experiment.Experiment(
    name,
    build_objective,
    build_algorithm,
    federated=name in FEDERATED,
    label_share=_SUPERVISED_LABELS.value if name == 'supervised' else None,
  )
