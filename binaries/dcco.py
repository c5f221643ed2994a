r"""Pretrains an encoder with DCCO, or with one of the baselines that it compares with.

  python -m binaries.dcco --task=digits --run_dir=runs/digits
  python -m binaries.dcco --task=cifar10 --data_dir=~/tensorflow_datasets \
      --partition=dirichlet:alpha=0,examples=4 --clients_per_round=128 --rounds=1000 \
      --run_dir=runs/cifar10

The algorithms: `dcco`; `fedavg_cco` and `fedavg_nt_xent` (FedAvg with the loss within
each client); `centralized_cco` (batches of as many examples as a round has, drawn from
all); `supervised` (centralized, from scratch, on a share of the labels).
"""

import contextlib
from typing import Any

from binaries import common
from binaries import dcco_setup
from binaries import evaluation
from binaries import partition_flags
from binaries import results
from tff_ssl.encoders import network
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import describe
from tff_ssl.runtime import context
from tff_ssl.runtime import loop
from tff_ssl.runtime import run_folder
from tff_ssl.runtime import simulation

_MAY_DIFFER = (*common.MAY_DIFFER, *evaluation.MAY_DIFFER)


def main() -> None:
  """Runs an experiment, or goes on with it."""
  # All that the flags can have wrong comes to light before the run folder is made.
  dcco_setup.check_flags(_MAY_DIFFER)
  task = common.load_task()
  partition = common.build_partition(task)
  report = describe.describe(partition, task.train.label, task.num_classes)
  print(report.line(), flush=True)
  name = dcco_setup.ALGORITHM.value
  data = partition_flags.build_client_data(
    task, partition, labelled=name == 'supervised'
  )
  clients = simulation.Clients(data, num_packs=common.PACKS.value)
  cohort_fn = dcco_setup.build_cohorts(task, data, clients, partition)
  encoder = common.build_encoder(task)
  evaluator = evaluation.Evaluator(task, encoder)
  algorithm = dcco_setup.build_algorithm(
    dcco_setup.build_objective(task, encoder), clients.element_spec
  )

  def encoder_params(state: Any) -> network.Params:
    weights = algorithm.get_model_weights(state).trainable
    return network.select(weights, dual_encoder.ENCODER)

  path, rounds = common.RUN_DIR.value, common.ROUNDS.value
  with run_folder.RunFolder(
    path, common.flag_values(), task.fingerprint(), _MAY_DIFFER
  ) as folder:
    report.write_csv(folder.path / 'partition.csv')
    done = max(folder.checkpoints.rounds(), default=0)
    if 0 < done < rounds:
      print(f'{path}: going on after round {done} of {rounds}', flush=True)
    with _open_context(folder) as execution:
      state = loop.run(
        algorithm,
        cohort_fn,
        folder,
        rounds,
        lambda state, _: evaluator.evaluate(encoder_params(state)),
        common.EVALUATE_EVERY.value,
        common.CHECKPOINT_EVERY.value,
        execution=execution,
      )
      params = encoder_params(state)
    results.save_encoder(folder, task, encoder, params, name, rounds)
    known = results.read(path, rounds)
    evaluation.report(evaluator, path, rounds, name, params, known)
  print(f'Run folder: {path}')


def _open_context(
  folder: run_folder.RunFolder,
) -> contextlib.AbstractContextManager[context.Context | None]:
  """Opens what executes TFF's computations; centralized training has none."""
  if dcco_setup.ALGORITHM.value not in dcco_setup.FEDERATED:
    return contextlib.nullcontext()
  return context.local(
    worker_address=common.WORKER_ADDRESS.value, log_path=folder.worker_log
  )


if __name__ == '__main__':
  common.run(main)
