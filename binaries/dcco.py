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
from collections.abc import Mapping
import contextlib
from typing import Any, NamedTuple

from absl import flags

from binaries import common
from binaries import dcco_setup
from binaries import evaluation
from tasks import task as task_lib
from tff_ssl.encoders import network
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import clients as partition_lib
from tff_ssl.partition import describe
from tff_ssl.runtime import client_data
from tff_ssl.runtime import context
from tff_ssl.runtime import files
from tff_ssl.runtime import loop
from tff_ssl.runtime import run_folder

_BASELINES = flags.DEFINE_bool(
  'baselines', False, 'Evaluate the random encoder and supervised training too.'
)

# Flags that may change when a run is resumed: they do not change its numbers.
_MAY_DIFFER = ('data_dir', 'download', 'run_dir', 'worker_address', 'checkpoint_every')


class _Trained(NamedTuple):
  """Parameters of the encoder before and after, and the evaluation if it was made.

  A run that was complete before this start has none.
  """

  initial: network.Params
  final: network.Params
  evaluation: Mapping[str, float] | None


def main() -> None:
  """Runs an experiment, or goes on with it."""
  dcco_setup.check_flags()
  task = common.load_task()
  partition = common.build_partition(task)
  report = describe.describe(partition, task.train.label, task.num_classes)
  print(report.line(), flush=True)
  encoder = common.build_encoder(task)
  objective = dcco_setup.build_objective(task, encoder)
  evaluator = evaluation.Evaluator(task, encoder)
  with run_folder.RunFolder(
    common.RUN_DIR.value, common.flag_values(), task.fingerprint(), _MAY_DIFFER
  ) as folder:
    report.write_csv(folder.path / 'partition.csv')
    with _execution(folder) as execution:
      trained = _train(task, partition, objective, evaluator, folder, execution)
    name = dcco_setup.ALGORITHM.value
    evaluation.save_encoder(folder, task, encoder, trained.final, name)
    results: collections.OrderedDict[str, Mapping[str, float]]
    results = collections.OrderedDict()
    if _BASELINES.value:
      results['random encoder'] = evaluator.evaluate(trained.initial)
    results[name] = trained.evaluation or evaluator.evaluate(trained.final)
    if _BASELINES.value:
      results['supervised from scratch'] = evaluator.supervised(trained.initial)
      files.write_json(folder.path / 'baselines.json', results)
  print(evaluation.table(results))
  print(f'Run folder: {common.RUN_DIR.value}')


def _train(
  task: task_lib.Task,
  partition: partition_lib.Partition,
  objective: base.Objective,
  evaluator: evaluation.Evaluator,
  folder: run_folder.RunFolder,
  execution: context.Context | None,
) -> _Trained:
  """Runs the rounds."""
  labelled = dcco_setup.ALGORITHM.value == 'supervised'
  data = client_data.ArrayClientData(
    task.train.image,
    task.train.example_id,
    partition,
    label=task.train.label if labelled else None,
  )
  algorithm = dcco_setup.build_algorithm(objective, data.element_type_structure)

  def encoder_params(state: Any) -> network.Params:
    weights = algorithm.get_model_weights(state).trainable
    return network.select(weights, dual_encoder.ENCODER)

  evaluations = {}

  def evaluate(state: Any, round: int) -> Mapping[str, float]:
    evaluations[round] = evaluator.evaluate(encoder_params(state))
    return evaluations[round]

  state = loop.run(
    algorithm,
    dcco_setup.build_cohorts(task, data, partition),
    folder,
    common.ROUNDS.value,
    evaluate,
    common.EVALUATE_EVERY.value,
    common.CHECKPOINT_EVERY.value,
    execution=execution,
  )
  return _Trained(
    encoder_params(algorithm.initialize()),
    encoder_params(state),
    evaluations.get(common.ROUNDS.value),
  )


def _execution(
  folder: run_folder.RunFolder,
) -> contextlib.AbstractContextManager[context.Context | None]:
  """Returns the worker's context; centralized training has none."""
  if dcco_setup.ALGORITHM.value not in dcco_setup.FEDERATED:
    return contextlib.nullcontext()
  return context.local(
    worker_address=common.WORKER_ADDRESS.value, log_path=folder.worker_log
  )


if __name__ == '__main__':
  common.run(main)
