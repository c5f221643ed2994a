"""Evaluation with clients: federated probes, and fairness over clients.

All apply the partition of the run: the linear probe with FedAvg and the one-round heads
apply it to the training examples, fairness to the test examples.
"""

import collections
from collections.abc import Mapping, Sequence
import contextlib
from typing import Any

from absl import flags
import numpy as np

from binaries.flags import common
from binaries.flags import dealing
from binaries.flags import evaluation
from binaries.flags import hosts
from tasks import task_types
from tff_ssl.algorithms import federated_linear
from tff_ssl.evaluation import scores
from tff_ssl.evaluation import suite
from tff_ssl.partition import partitions
from tff_ssl.partition import spec
from tff_ssl.simulation import client_heads

_DEFAULTS = federated_linear.FederatedLinearConfig()
FAIRNESS = flags.DEFINE_bool(
  'fairness',
  False,
  'Show mean, deviation and worst decile of the accuracies over clients, with the '
  "run's partition applied to the test examples.",
)
_ROUNDS = flags.DEFINE_integer(
  'federated_rounds', _DEFAULTS.rounds, 'Rounds of the method federated_linear.'
)
_EPOCHS = flags.DEFINE_integer(
  'federated_epochs', _DEFAULTS.epochs, 'Its epochs per client in a round.'
)
_BATCH_SIZE = flags.DEFINE_integer(
  'federated_batch_size', _DEFAULTS.batch_size, 'Its examples per gradient step.'
)
_RATE = flags.DEFINE_float(
  'federated_learning_rate', _DEFAULTS.learning_rate, 'Its rate in the first round.'
)
NAMES = (
  'fairness',
  'federated_rounds',
  'federated_epochs',
  'federated_batch_size',
  'federated_learning_rate',
)


def check() -> None:
  """Checks the flags, without data.

  Raises:
    ValueError: If one is out of range, or does nothing.
  """
  _config()
  for flag in (_ROUNDS, _EPOCHS, _BATCH_SIZE, _RATE):
    if flags.FLAGS[flag.name].present and not _is_federated():
      raise ValueError(
        f'--{flag.name} is given, but --evaluation_methods has no '
        f'{suite.FEDERATED_LINEAR}.'
      )
  partition = dealing.PARTITION.value
  if FAIRNESS.value and dealing.needs_features():
    raise ValueError(
      f'--fairness is given, but the run has --partition={partition}; clusters of the '
      'test examples would not be those of the training examples.'
    )


def open_context() -> contextlib.AbstractContextManager[Any]:
  """Opens the context that executes TFF's computations, if a method needs it."""
  if not _is_federated() and not _is_one_round():
    return contextlib.nullcontext()
  return hosts.open_context()


def build_federated(task: task_types.Task) -> suite.Federated | None:
  """Builds the training of the federated linear probe, if it is among the methods.

  Args:
    task: The run's partition deals its training examples to clients.

  Raises:
    ValueError: If the partition does not fit the task.
  """
  if not _is_federated():
    return None
  partition = _partition(task)
  size = common.cohort_size(len(partition))
  probe = client_heads.FederatedProbe(
    partition, task.num_classes, size, _config(), common.PACKS.value
  )
  return probe.fit


def build_collect(task: task_types.Task) -> suite.Collect | None:
  """Builds the collection of sums for one-round heads, if these are among the methods.

  Args and Raises are those of `build_federated`.
  """
  if not _is_one_round():
    return None
  return client_heads.OneRoundHeads(
    _partition(task), task.num_classes, common.PACKS.value
  ).collect


def build_deal(task: task_types.Task) -> scores.Deal | None:
  """Returns the function that deals test examples to clients, if --fairness is given.

  Args:
    task: The task whose test examples are dealt.
  """
  if not FAIRNESS.value:
    return None

  def deal(labels: np.ndarray, cases: np.ndarray) -> Mapping[str, np.ndarray]:
    text = dealing.text(task)
    held_by, names = dealing.holders(task, task.test)
    # All images of a case are at one client.
    known, first = np.unique(task.test.case, return_index=True)
    holders = held_by[first[np.searchsorted(known, cases)]]
    try:
      return spec.build(text, labels, holders, common.SEED.value, names=names)
    except ValueError as error:
      raise ValueError(
        f'--fairness applies the partition {text} to the test examples of {task.name}, '
        f'which it does not fit: {error}'
      ) from error

  return deal


def hold_cases(
  partition: partitions.Partition, cases: np.ndarray, names: Sequence[str] = ()
) -> partitions.Partition:
  """Turns a partition of images into one of cases.

  Args:
    partition: Client id -> positions of images.
    cases: int [N], the case of each image.
    names: Names of the cases, for the error message, if they have any.

  Returns:
    Client id -> positions in the list of cases, which is sorted by id.

  Raises:
    ValueError: If images of one case are at two clients.
  """
  ids, index = np.unique(cases, return_inverse=True)
  is_held = np.zeros([len(ids)], bool)
  result: collections.OrderedDict[str, np.ndarray] = collections.OrderedDict()
  for client_id, positions in partition.items():
    held = np.unique(index[positions])
    if np.any(is_held[held]):
      torn = ids[held[is_held[held]][0]]
      raise ValueError(
        f'Case {names[torn] if names else torn} has images at two clients; the methods '
        f'{suite.FEDERATED_LINEAR} and {suite.ONE_ROUND} classify cases, and need a '
        'partition that keeps them together, such as case.'
      )
    is_held[held] = True
    result[client_id] = held
  return result


def _partition(task: task_types.Task) -> partitions.Partition:
  """Returns the partition of the run; a partition of cases if these are classified."""
  partition = common.build_partition(task)
  if task.case_level:
    return hold_cases(partition, task.train.case, task.case_names)
  return partition


def _is_one_round() -> bool:
  return suite.ONE_ROUND in evaluation.METHODS.value


def _is_federated() -> bool:
  return suite.FEDERATED_LINEAR in evaluation.METHODS.value


def _config() -> federated_linear.FederatedLinearConfig:
  return federated_linear.FederatedLinearConfig(
    _ROUNDS.value,
    _EPOCHS.value,
    _BATCH_SIZE.value,
    _RATE.value,
    seed=common.SEED.value,
  )
