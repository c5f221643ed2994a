"""The algorithms of `binaries.dcco`, built from its flags."""

from collections.abc import Callable, Collection
from typing import Any

from absl import flags
import numpy as np
import tensorflow as tf

from binaries import common
from binaries import evaluation
from tasks import task as task_lib
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import dcco
from tff_ssl.algorithms import dcco_client
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import local_training
from tff_ssl.algorithms import optimizers
from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.evaluation import labels
from tff_ssl.objectives import base
from tff_ssl.objectives import contrastive
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.partition import clients as partition_lib
from tff_ssl.runtime import client_data
from tff_ssl.runtime import run_config
from tff_ssl.runtime import sampling
from tff_ssl.runtime import simulation

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
_CLIENT_RATE = flags.DEFINE_float('client_learning_rate', 1.0, "Of the clients' SGD.")
_OPTIMIZER = flags.DEFINE_enum(
  'server_optimizer', 'adam', optimizers.NAMES, 'Applies the averaged update.'
)
_RATE = flags.DEFINE_float('server_learning_rate', 2e-3, 'After the warm-up.')
_SCHEDULE = flags.DEFINE_enum(
  'server_schedule', 'cosine', optimizers.SCHEDULES, 'Over the rounds.'
)
_WARMUP = flags.DEFINE_integer(
  'server_warmup_rounds', 0, 'Linear warm-up, of the cosine.', lower_bound=0
)
_MOMENTUM = flags.DEFINE_float('server_momentum', None, 'Of sgd and lars.')
_WEIGHT_DECAY = flags.DEFINE_float('server_weight_decay', 0.0, 'Of lars.')
_SUPERVISED_LABELS = flags.DEFINE_float(
  'supervised_labels', 0.1, 'Share of the training labels that `supervised` has.'
)
# Flags that belong to some algorithms only: elsewhere they would do nothing.
_TAKEN_BY = {
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


def check_flags(may_differ: Collection[str]) -> None:
  """Refuses what can be seen to be wrong without data.

  Args:
    may_differ: Flags that may change when a run is resumed.

  Raises:
    ValueError: If a flag is missing, out of range, not taken by the chosen algorithm,
      or not that of the run in the folder.
  """
  if not common.RUN_DIR.value:
    raise ValueError('run_dir is not given; it must name a folder, new or of this run.')
  for name, takers in _TAKEN_BY.items():
    common.refuse_stray(name, 'algorithm', takers)
  common.check_flags()
  evaluation.check_flags()
  _optimizer_config()
  run_config.check_flags(common.RUN_DIR.value, common.flag_values(), may_differ)


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


def _optimizer_config() -> optimizers.OptimizerConfig:
  return optimizers.OptimizerConfig(
    _OPTIMIZER.value,
    _RATE.value,
    _SCHEDULE.value,
    common.ROUNDS.value,
    _WARMUP.value,
    _MOMENTUM.value,
    _WEIGHT_DECAY.value,
  )


def build_algorithm(objective: Any, element_spec: Any) -> Any:
  """Builds what the round loop runs."""
  optimizer = optimizers.build_optimizer(_optimizer_config())
  rate, steps, seed = _CLIENT_RATE.value, _LOCAL_STEPS.value, common.SEED.value
  if ALGORITHM.value == 'dcco':
    dcco_config = dcco_client.DCCOConfig(rate, steps, _STALE.value, seed=seed)
    return dcco.build_dcco(objective, element_spec, optimizer, dcco_config)
  if ALGORITHM.value in FEDERATED:
    local = local_training.LocalTraining(epochs=steps)
    fedavg_config = fedavg.FedAvgConfig(local, rate, seed=seed)
    return fedavg.build_fedavg(objective, element_spec, optimizer, fedavg_config)
  return centralized.Centralized(objective, optimizer, seed)


def build_cohorts(
  task: task_lib.Task,
  data: client_data.ArrayClientData,
  clients: simulation.Clients,
  partition: partition_lib.Partition,
) -> Callable[[int], list[tf.data.Dataset]]:
  """Returns the data of each round; a function of the round and the seed alone."""
  seed = common.SEED.value
  cohorts = sampling.Cohorts(data.client_ids, common.CLIENTS_PER_ROUND.value, seed)
  if ALGORITHM.value in FEDERATED:
    return lambda round: clients.cohort(cohorts(round))
  pool = np.sort(np.concatenate(list(partition.values())))
  if ALGORITHM.value == 'supervised':
    pool = labels.label_fraction(
      task.train.label, _SUPERVISED_LABELS.value, seed, groups=task.train.case
    )
  # As many examples a round as the federated algorithms see in the mean.
  mean_size = np.mean([len(positions) for positions in partition.values()])
  batches = sampling.Batches(
    pool, max(1, round(common.CLIENTS_PER_ROUND.value * mean_size)), seed
  )
  return lambda round: [data.create_tf_dataset_for_positions(batches(round))]
