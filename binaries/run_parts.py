"""What a run consists of, as `experiment` and what it is extended by see it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from binaries import common
from tasks import task as task_lib
from tff_ssl.encoders import network
from tff_ssl.evaluation import labels
from tff_ssl.partition import clients as partition_lib
from tff_ssl.runtime import client_data
from tff_ssl.runtime import run_folder
from tff_ssl.runtime import sampling


class Parts(NamedTuple):
  """What a run consists of."""

  task: task_lib.Task
  encoder: network.Network
  partition: partition_lib.Partition
  data: client_data.ArrayClientData
  objective: Any
  algorithm: Any


class Personal(Protocol):
  """Clients' own encoders in a run; `binaries.personal` has them."""

  def deal(self, labels: np.ndarray, cases: np.ndarray) -> Mapping[str, np.ndarray]:
    """Deals test examples to clients (`scores.Deal`)."""

  def during(
    self, folder: run_folder.RunFolder, weights: Any, round: int
  ) -> Mapping[str, float]:
    """Evaluates them while the run lasts; `weights` are the global model's."""

  def finish(
    self, folder: run_folder.RunFolder, weights: Any, name: str, rounds: int
  ) -> None:
    """Does what comes after the last round."""


def build_cohorts(
  task: task_lib.Task,
  data: client_data.ArrayClientData,
  partition: partition_lib.Partition,
  take: Callable[[Iterable[str]], Any] | None,
  label_share: float | None,
) -> Callable[[int], Any]:
  """Returns the data of each round; a function of the round and the seed alone.

  Args:
    task: What is trained on.
    data: What the clients hold.
    partition: Who they are.
    take: Client ids -> what the algorithm is given; None: batches drawn from all.
    label_share: Share of the labelled examples that batches are drawn from; None: all.
  """
  seed = common.SEED.value
  cohort_size = common.cohort_size(len(partition))
  cohorts = sampling.Cohorts(data.client_ids, cohort_size, seed)
  if take is not None:
    return lambda round: take(cohorts(round))
  pool = np.sort(np.concatenate(list(partition.values())))
  if label_share is not None:
    pool = labels.label_fraction(
      task.train.label, label_share, seed, groups=task.train.case
    )
  # As many examples a round as the federated algorithms see in the mean.
  mean_size = np.mean([len(positions) for positions in partition.values()])
  batches = sampling.Batches(pool, max(1, round(cohort_size * mean_size)), seed)
  return lambda round: [data.create_tf_dataset_for_positions(batches(round))]
