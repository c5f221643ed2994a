r"""Pretrains an encoder with DCCO, or with one of the baselines that it compares with.

  python -m binaries.dcco --task=digits --run_dir=runs/digits
  python -m binaries.dcco --task=cifar10 --data_dir=~/tensorflow_datasets \
      --partition=dirichlet:alpha=0,examples=4 --clients_per_round=128 --rounds=1000 \
      --run_dir=runs/cifar10

The algorithms: `dcco`; `fedavg_cco` and `fedavg_nt_xent` (FedAvg with the loss within
each client); `centralized_cco` (batches of as many examples as a round has, drawn from
all); `supervised` (centralized, from scratch, on a share of the labels).
"""

import collections
from collections.abc import Callable
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
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.partition import clients as partition_lib
from tff_ssl.partition import describe
from tff_ssl.runtime import client_data
from tff_ssl.runtime import context
from tff_ssl.runtime import loop
from tff_ssl.runtime import run_folder
from tff_ssl.runtime import sampling

ALGORITHMS = ('dcco', 'fedavg_cco', 'fedavg_nt_xent', 'centralized_cco', 'supervised')
_FEDERATED = ('dcco', 'fedavg_cco', 'fedavg_nt_xent')
# The paper's projectors on CIFAR-100 (section 4), a quarter as wide for small encoders.
_CCO_PROJECTOR = (256, 256, 256)
_NT_XENT_PROJECTOR = (256, 256, 128)

_ALGORITHM = flags.DEFINE_enum('algorithm', 'dcco', ALGORITHMS, 'What is run.')
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
_BASELINES = flags.DEFINE_bool(
  'baselines', False, 'Evaluate the random encoder and supervised training too.'
)

# Flags that belong to some algorithms only: elsewhere they would do nothing.
_TAKEN_BY = {
  'loss': ('dcco',),
  'stale_statistics': ('dcco',),
  'off_diagonal_weight': ('dcco', 'fedavg_cco', 'centralized_cco'),
  'temperature': ('fedavg_nt_xent',),
  'local_steps': _FEDERATED,
  'client_learning_rate': _FEDERATED,
  'supervised_labels': ('supervised',),
  'projector': (*_FEDERATED, 'centralized_cco'),
}
# Flags that may change when a run is resumed: they do not change its numbers.
_MAY_DIFFER = ('data_dir', 'download', 'run_dir', 'worker_address', 'checkpoint_every')


def main() -> None:
  """Runs an experiment, or goes on with it."""
  _check_flags()
  task = common.load_task()
  partition = common.build_partition(task)
  report = describe.describe(partition, task.train.label, task.num_classes)
  print(report.line())
  encoder = common.build_encoder(task)
  objective = _build_objective(task, encoder)
  evaluator = evaluation.Evaluator(task, encoder)
  with (
    run_folder.RunFolder(
      common.RUN_DIR.value, common.flag_values(), task.fingerprint(), _MAY_DIFFER
    ) as folder,
    context.local(
      worker_address=common.WORKER_ADDRESS.value, log_path=folder.worker_log
    ) as execution,
  ):
    report.write_csv(folder.path / 'partition.csv')
    data = client_data.ArrayClientData(
      task.train.image, task.train.example_id, partition, label=task.train.label
    )
    algorithm = _build_algorithm(objective, data.element_type_structure)
    cohort_fn = _build_cohorts(task, data, partition)

    def encoder_params(state: Any) -> network.Params:
      weights = algorithm.get_model_weights(state).trainable
      return network.select(weights, dual_encoder.ENCODER)

    state = loop.run(
      algorithm,
      cohort_fn,
      folder,
      common.ROUNDS.value,
      lambda state, _: evaluator.evaluate(encoder_params(state)),
      common.EVALUATE_EVERY.value,
      common.CHECKPOINT_EVERY.value,
      execution=execution,
    )
    params = encoder_params(state)
    evaluation.save_encoder(folder, task, encoder, params, _ALGORITHM.value)
    initial = encoder_params(algorithm.initialize())
  results = collections.OrderedDict()
  if _BASELINES.value:
    results['random encoder'] = evaluator.evaluate(initial)
  results[_ALGORITHM.value] = evaluator.evaluate(params)
  if _BASELINES.value:
    results['supervised from scratch'] = evaluator.supervised(initial)
  print(evaluation.table(results))
  print(f'Run folder: {common.RUN_DIR.value}')


def _check_flags() -> None:
  """Refuses what is missing, and what the chosen algorithm does not take."""
  if common.RUN_DIR.value is None:
    raise ValueError(
      'run_dir is not given; it must name a new folder, or a run of this.'
    )
  for name, takers in _TAKEN_BY.items():
    if flags.FLAGS[name].present and _ALGORITHM.value not in takers:
      raise ValueError(
        f'--{name} is given with --algorithm={_ALGORITHM.value}; only '
        f'{", ".join(takers)} takes it.'
      )


def _build_objective(task: task_lib.Task, encoder: network.Network) -> base.Objective:
  if _ALGORITHM.value == 'supervised':
    return supervised.SupervisedObjective(
      encoder,
      projector.build_linear(encoder.output_dim, task.num_classes),
      byol.by_name('flip'),
    )
  if _ALGORITHM.value == 'fedavg_nt_xent':
    return contrastive.ContrastiveObjective(
      common.build_siamese(encoder, _NT_XENT_PROJECTOR), _TEMPERATURE.value
    )
  return statistics.StatisticsObjective(
    common.build_siamese(encoder, _CCO_PROJECTOR), _LOSS.value, _OFF_DIAGONAL.value
  )


def _build_algorithm(objective: Any, element_spec: Any) -> Any:
  """Builds what the round loop runs."""
  optimizer = optimizers.build_optimizer(
    optimizers.OptimizerConfig(
      _OPTIMIZER.value,
      _RATE.value,
      _SCHEDULE.value,
      common.ROUNDS.value,
      _WARMUP.value,
      _MOMENTUM.value,
      _WEIGHT_DECAY.value,
    )
  )
  seed = common.SEED.value
  if _ALGORITHM.value == 'dcco':
    return dcco.build_dcco(
      objective,
      element_spec,
      optimizer,
      dcco_client.DCCOConfig(
        _CLIENT_RATE.value, _LOCAL_STEPS.value, _STALE.value, seed=seed
      ),
    )
  if _ALGORITHM.value in _FEDERATED:
    return fedavg.build_fedavg(
      objective,
      element_spec,
      optimizer,
      fedavg.FedAvgConfig(
        local_training.LocalTraining(epochs=_LOCAL_STEPS.value),
        _CLIENT_RATE.value,
        seed=seed,
      ),
    )
  return centralized.Centralized(objective, optimizer, seed)


def _build_cohorts(
  task: task_lib.Task,
  data: client_data.ArrayClientData,
  partition: partition_lib.Partition,
) -> Callable[[int], list[tf.data.Dataset]]:
  """Returns the data of each round; a function of the round and the seed alone."""
  seed = common.SEED.value
  cohorts = sampling.Cohorts(data.client_ids, common.CLIENTS_PER_ROUND.value, seed)
  if _ALGORITHM.value in _FEDERATED:
    return lambda round: client_data.cohort(data, cohorts(round))
  pool = np.sort(np.concatenate(list(partition.values())))
  if _ALGORITHM.value == 'supervised':
    pool = labels.label_fraction(
      task.train.label, _SUPERVISED_LABELS.value, seed, groups=task.train.case
    )
  # As many examples a round as the federated algorithms see in the mean.
  mean_size = np.mean([len(positions) for positions in partition.values()])
  batches = sampling.Batches(
    pool, max(1, round(common.CLIENTS_PER_ROUND.value * mean_size)), seed
  )
  return lambda round: [data.create_tf_dataset_for_positions(batches(round))]


if __name__ == '__main__':
  common.run(main)
