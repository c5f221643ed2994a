"""Runs with labels at the server: the split of the data in two, and evaluation."""

import collections
from collections.abc import Mapping
import functools
import math
from typing import Any

import numpy as np

from binaries.experiment import evaluating
from binaries.experiment import running
from binaries.experiment import telling
from binaries.flags import common
from binaries.flags import dealing
from binaries.flags import hosts
from binaries.flags import methods
from binaries.flags import own_data
from binaries.flags import privacy
from binaries.methods import choice
from binaries.methods import server_algorithms
from tasks import ham10000
from tasks import labels_at_server
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import suite
from tff_ssl.federated import processes
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import describe
from tff_ssl.runs import loop
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import server_data
from tff_ssl.simulation import simulated_clients

_SCORES = ('accuracy', 'balanced_accuracy')


def run() -> None:
  """Runs the method that the flags name, or resumes it."""
  # All errors in the flags come to light before the run folder is made.
  chosen = choice.read('fedsup')
  running.check_flags(chosen)
  running.execute(prepare(chosen))


def prepare(chosen: choice.Choice) -> running.Prepared:
  """Loads the data and builds what is run.

  Args:
    chosen: The method; its algorithm is one of `server_algorithms`.
  """
  algorithm = server_algorithms.ALGORITHMS[chosen.method.algorithm]
  task = common.load_task()
  split = _split(task)
  print(split.line(), flush=True)
  partition = common.build_partition(split.clients)
  labels = split.clients.train.label
  report = describe.describe(partition, labels, task.num_classes)
  if algorithm.has_clients:
    print(report.line(), flush=True)
    telling.tell_of_whole_cohorts(len(partition))
  clients_per_round = common.cohort_size(len(partition))
  grouping = algorithm.group(clients_per_round)
  data = dealing.build_client_data(
    split.clients, partition, labelled=chosen.objective.labelled
  )
  if algorithm.numbered:
    data = data.numbered(contextual.CLIENT)
  cohorts = _build_cohorts(data, clients_per_round, grouping.groups)
  labelled = server_data.dataset(
    collections.OrderedDict(
      **split.server.train.fields,
      example_id=split.server.train.example_id,
      label=split.server.train.label,
    )
  )
  encoder = common.build_encoder(task)
  sizes = telling.sizes_in_loss(chosen, report)
  problem = server_algorithms.Problem(
    encoder,
    task.num_classes,
    labelled.element_spec,
    len(partition),
    grouping,
  )
  objective = chosen.objective.of_task(encoder, task)
  if algorithm.has_clients:
    telling.warn_of_batches(chosen, objective, sizes)
  telling.warn_of_server_batches(
    server_algorithms.server_plan().local, problem.supervised, len(split.server.train)
  )
  process = processes.build(
    algorithm.build(objective, problem), cohorts.element_spec, privacy.build(sizes)
  )
  evaluator = evaluating.Evaluator(split.server, encoder)
  measure = _Measure(split.server, problem, process, evaluator)
  return running.Prepared(
    chosen,
    task,
    report,
    encoder,
    objective,
    server_data.ServerDataRounds(running.in_parts(process), labelled),
    cohorts if algorithm.has_clients else lambda _: None,
    evaluator,
    evaluate=measure,
    evaluate_every=measure.every,
  )


def _split(task: task_types.Task) -> labels_at_server.Split:
  """Splits off the server's labelled examples."""
  hospital = methods.SERVER_HOSPITAL.value
  if hospital is None:
    return labels_at_server.by_share(
      task, methods.SERVER_LABELS.value, common.SEED.value
    )
  follow_links = bool(own_data.FOLLOW_LINKS.value)
  places = ham10000.hospitals(common.DATA_DIR.value, follow_links)
  if hospital not in places:
    raise ValueError(
      f'server_hospital is {hospital!r}; the hospitals are '
      f'{", ".join(np.unique(places))}.'
    )
  return labels_at_server.at(task, places[task.train.example_id] == hospital)


def _build_cohorts(
  data: client_data.ArrayClientData, clients_per_round: int, groups: int
) -> Any:
  """Returns the clients' data of each round, which has an `element_spec`."""
  seed = common.SEED.value
  cohorts = cohort_sampling.Cohorts(data.ids, clients_per_round, seed)
  if groups > 1:
    return server_data.Grouped(data, cohorts, groups, seed, hosts.num_packs())
  return _Cohorts(simulated_clients.Clients(data, num_packs=hosts.num_packs()), cohorts)


class _Cohorts:
  """The data of each round, if clients are in no group."""

  def __init__(
    self, clients: simulated_clients.Clients, cohorts: cohort_sampling.Cohorts
  ):
    self._clients = clients
    self._cohorts = cohorts
    self.element_spec = clients.element_spec

  def __call__(self, round: int) -> Any:
    return self._clients.cohort(self._cohorts(round))


class _Measure:
  """The evaluation: teacher's and student's classifiers often, all methods rarely.

  Attributes:
    every: Rounds between calls; 0: only at the end.
  """

  def __init__(
    self,
    task: task_types.Task,
    problem: server_algorithms.Problem,
    process: processes.Process,
    evaluator: evaluating.Evaluator,
  ):
    self._task = task
    algorithm = process.graph.algorithm
    if algorithm.classifiers is None:
      raise ValueError(
        'The algorithm has no classifiers; one with labels must have them.'
      )
    self._classifiers = algorithm.classifiers
    self._get_model_weights = process.get_model_weights
    self._evaluator = evaluator
    self._classify = feature_sets.build_encode(
      problem.supervised.logits, problem.encoder.batch_in_cache()
    )
    self.every = math.gcd(methods.ACCURACY_EVERY.value, common.EVALUATE_EVERY.value)

  def __call__(self, state: Any, round: int) -> Mapping[str, float]:
    """Returns named numbers of a state; runs in the open TFF context."""
    numbers: dict[str, float] = collections.OrderedDict()
    rounds = common.ROUNDS.value
    if loop.is_due(round, methods.ACCURACY_EVERY.value, rounds):
      for name, own in self._classifiers(state).items():
        found = suite.evaluate_classifier(
          functools.partial(self._classify, collections.OrderedDict(own)),
          self._task.test,
          num_classes=self._task.num_classes,
          case_level=self._task.case_level,
          field=self._task.field,
          validation=self._evaluator.validation,
        )
        for score in _SCORES if self._evaluator.balanced else _SCORES[:1]:
          for split in ('', suite.VALIDATION):
            if (known := f'{split}{suite.CLASSIFIER}/{score}') in found:
              numbers[f'{split}{name}/{score}'] = found[known]
    if loop.is_due(round, common.EVALUATE_EVERY.value, rounds):
      weights = self._get_model_weights(state)
      # With the population statistics of batch norm.
      everything = {**weights.trainable, **weights.non_trainable}
      params: network.Params = network.select(everything, dual_encoder.ENCODER)
      numbers.update(self._evaluator.evaluate(params))
    return numbers
