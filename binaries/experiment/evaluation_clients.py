"""Evaluation with clients: federated probes, and fairness over clients.

All apply the partition of the run: the linear probe with FedAvg and the one-round heads
apply it to the training examples, fairness to the test examples.
"""

import collections
from collections.abc import Mapping, Sequence
import contextlib
from typing import Any, NamedTuple

import numpy as np

from binaries.building import data
from binaries.building import execution
from binaries.config import checks
from binaries.config import evaluations
from binaries.config import run_config
from tasks import task_types
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import methods
from tff_ssl.evaluation import scores
from tff_ssl.partition import partitions
from tff_ssl.partition import spec
from tff_ssl.settings import learning
from tff_ssl.simulation import client_heads

_OF_CLIENTS = {method_names.FEDERATED_LINEAR, method_names.ONE_ROUND}


class WithClients(NamedTuple):
  """What an evaluation needs of clients; None: it is not asked for.

  Attributes:
    federated: Trains the federated linear probe.
    collect: Collects the sums of one-round heads.
    deal: Deals test examples to clients, for fairness.
  """

  federated: methods.Federated | None
  collect: methods.Collect | None
  deal: scores.Deal | None


def check(config: run_config.RunConfig, added: evaluations.Additions) -> None:
  """Checks what is asked for, without data.

  Raises:
    ValueError: If something does nothing, or the partition has no fairness.
  """
  is_federated = method_names.FEDERATED_LINEAR in config.evaluation.methods
  if added.federated != learning.FederatedLinear() and not is_federated:
    raise ValueError(
      '--federated is given, but the evaluation has no '
      f'{method_names.FEDERATED_LINEAR}; it must be one of its methods.'
    )
  if is_federated and _only_server_has_labels(config, added):
    raise ValueError(
      f'methods of --evaluation has {method_names.FEDERATED_LINEAR!r}, which clients '
      f'with labels train; in a run of {config.method.kind} only the server has labels.'
    )
  if added.fairness and checks.needs_features(config):
    raise ValueError(
      f'--fairness is given, but the run has --partition={config.partition}; clusters '
      'of the test examples would not be those of the training examples.'
    )


def _only_server_has_labels(
  config: run_config.RunConfig, added: evaluations.Additions
) -> bool:
  """Returns whether the clients of what is evaluated have no labels."""
  return config.uses('labels') and not added.transfer


def open_context(
  config: run_config.RunConfig,
) -> contextlib.AbstractContextManager[Any]:
  """Opens the context that executes TFF's computations, if a method needs it."""
  if _OF_CLIENTS.isdisjoint(config.evaluation.methods):
    return contextlib.nullcontext()
  return execution.open_context(config)


def build(
  config: run_config.RunConfig, added: evaluations.Additions, task: task_types.Task
) -> WithClients:
  """Builds what the methods of an evaluation need of clients.

  Args:
    config: The run; its partition deals the task's examples to clients.
    added: What is evaluated.
    task: The task that is evaluated.

  Raises:
    ValueError: If the partition does not fit the task.
  """
  federated = collect = None
  if task.why_unlabelled():
    return WithClients(None, None, None)
  if method_names.FEDERATED_LINEAR in config.evaluation.methods:
    federated = probe(config, task, _partition(config, task), added.federated)
  one_round = method_names.ONE_ROUND in config.evaluation.methods
  if one_round and not _only_server_has_labels(config, added):
    collect = client_heads.OneRoundHeads(
      _partition(config, task), task.num_classes, config.runtime.packs
    ).collect
  deal = _build_deal(config, task) if added.fairness else None
  return WithClients(federated, collect, deal)


def probe(
  config: run_config.RunConfig,
  task: task_types.Task,
  partition: partitions.Partition,
  given: learning.FederatedLinear,
) -> methods.Federated:
  """Returns what trains the linear probe with FedAvg.

  Args:
    config: The run.
    task: The task that is evaluated.
    partition: Client id -> positions of the classified examples or cases.
    given: How it trains.
  """
  cohort = data.cohort_size(config, len(partition))
  return client_heads.FederatedProbe(
    partition,
    task.num_classes,
    cohort,
    given,
    config.random_seed,
    config.runtime.packs,
  ).fit


def _build_deal(config: run_config.RunConfig, task: task_types.Task) -> scores.Deal:
  """Returns the function that deals a task's test examples to clients."""

  def deal(labels: np.ndarray, cases: np.ndarray) -> Mapping[str, np.ndarray]:
    text = data.partition_text(config, task)
    held_by, names = data.holders(config, task, task.test)
    # All images of a case are at one client.
    known, first = np.unique(task.test.case, return_index=True)
    holders = held_by[first[np.searchsorted(known, cases)]]
    try:
      return spec.build(text, labels, holders, config.random_seed, names=names)
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
        f'{" and ".join(sorted(_OF_CLIENTS))} classify cases, and need a '
        'partition that keeps them together, such as case.'
      )
    is_held[held] = True
    result[client_id] = held
  return result


def _partition(
  config: run_config.RunConfig, task: task_types.Task
) -> partitions.Partition:
  """Returns the partition of the run; a partition of cases if these are classified."""
  partition = data.partition(config, task)
  if task.case_level:
    return hold_cases(partition, task.train.case, task.case_names)
  return partition
