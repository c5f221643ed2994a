"""What `binaries.fedsup` runs: data that are split in two, method and evaluation."""

import collections
from collections.abc import Mapping
import functools
import math
from typing import Any

import numpy as np

from binaries import common
from binaries import evaluation
from binaries import experiment
from binaries import fedsup_flags
from binaries import fedsup_methods
from binaries import partition_flags
from tasks import ham10000
from tasks import labels_at_server
from tasks import task as task_lib
from tff_ssl.encoders import network
from tff_ssl.evaluation import features
from tff_ssl.evaluation import suite
from tff_ssl.federated import processes
from tff_ssl.objectives import context
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import clients as partition_lib
from tff_ssl.partition import describe
from tff_ssl.runtime import sampling
from tff_ssl.runtime import server_data
from tff_ssl.runtime import simulation

_SCORES = ('accuracy', 'balanced_accuracy')


def prepare() -> experiment.Prepared:
  """Loads the data and builds what the flags say is run."""
  method = fedsup_flags.METHOD.value
  task = common.load_task()
  split = _split(task)
  print(split.line(), flush=True)
  partition = common.build_partition(split.clients)
  labels = split.clients.train.label
  report = describe.describe(partition, labels, task.num_classes)
  if method != 'labelled_only':
    print(report.line(), flush=True)
  clients_per_round = common.cohort_size(len(partition))
  cohorts = _build_cohorts(split.clients, partition, clients_per_round)
  rounds = server_data.Rounds(
    collections.OrderedDict(
      image=split.server.train.image,
      example_id=split.server.train.example_id,
      label=split.server.train.label,
    ),
    None if method == 'labelled_only' else cohorts,
  )
  encoder = common.build_encoder(task)
  problem = fedsup_methods.Problem(
    encoder,
    task.num_classes,
    rounds.element_spec,
    cohorts.element_spec,
    len(partition),
    clients_per_round,
  )
  objective, process = fedsup_methods.build(problem)
  evaluator = evaluation.Evaluator(split.server, encoder)
  measure = _Measure(split.server, problem, process, evaluator)
  return experiment.Prepared(
    method,
    task,
    report,
    encoder,
    objective,
    processes.Paired(process),
    rounds,
    evaluator,
    evaluate=measure,
    evaluate_every=measure.every,
  )


def _split(task: task_lib.Task) -> labels_at_server.Split:
  """Gives the server its labels."""
  hospital = fedsup_flags.SERVER_HOSPITAL.value
  if hospital is None:
    return labels_at_server.by_share(
      task, fedsup_flags.SERVER_LABELS.value, common.SEED.value
    )
  places = ham10000.hospitals(common.DATA_DIR.value)
  if hospital not in places:
    raise ValueError(
      f'server_hospital is {hospital!r}; the hospitals are '
      f'{", ".join(np.unique(places))}.'
    )
  return labels_at_server.at(task, places[task.train.example_id] == hospital)


def _build_cohorts(
  task: task_lib.Task, partition: partition_lib.Partition, clients_per_round: int
) -> Any:
  """Returns the clients' data of each round, which has an `element_spec`."""
  method, seed = fedsup_flags.METHOD.value, common.SEED.value
  data = partition_flags.build_client_data(
    task, partition, labelled=method == 'supervised'
  )
  cohorts = sampling.Cohorts(data.client_ids, clients_per_round, seed)
  groups = fedsup_flags.averaging(clients_per_round).groups
  if groups > 1:
    return server_data.Grouped(data, cohorts, groups, seed, common.PACKS.value)
  if method == 'fedmatch':
    data = data.numbered(context.CLIENT)
  return _Cohorts(simulation.Clients(data, num_packs=common.PACKS.value), cohorts)


class _Cohorts:
  """The data of each round, where clients are in no group."""

  def __init__(self, clients: simulation.Clients, cohorts: sampling.Cohorts):
    self._clients = clients
    self._cohorts = cohorts
    self.element_spec = clients.element_spec

  def __call__(self, round: int) -> Any:
    return self._clients.cohort(self._cohorts(round))


class _Measure:
  """The evaluation: classifiers of teacher and student often, all methods seldom.

  Attributes:
    every: Rounds between calls; 0: at the end alone.
  """

  def __init__(
    self,
    task: task_lib.Task,
    problem: fedsup_methods.Problem,
    process: processes.ServerDataProcess,
    evaluator: evaluation.Evaluator,
  ):
    self._task = task
    self._process = process
    self._evaluator = evaluator
    self._classify = features.build_encode(problem.supervised.logits)
    self.every = math.gcd(
      fedsup_flags.ACCURACY_EVERY.value, common.EVALUATE_EVERY.value
    )

  def __call__(self, state: Any, round: int) -> Mapping[str, float]:
    """Returns named numbers of a state, in the TFF context that is open."""
    numbers: dict[str, float] = collections.OrderedDict()
    if _is_due(round, fedsup_flags.ACCURACY_EVERY.value):
      classifiers = self._process.get_classifier_weights(state)
      for name, own in classifiers.items():
        found = suite.evaluate_classifier(
          functools.partial(self._classify, collections.OrderedDict(own)),
          self._task.test,
          num_classes=self._task.num_classes,
          case_level=self._task.case_level,
        )
        for score in _SCORES if self._evaluator.balanced else _SCORES[:1]:
          numbers[f'{name}/{score}'] = found[f'{suite.CLASSIFIER}/{score}']
    if _is_due(round, common.EVALUATE_EVERY.value):
      weights = self._process.get_model_weights(state).trainable
      params: network.Params = network.select(weights, dual_encoder.ENCODER)
      numbers.update(self._evaluator.evaluate(params))
    return numbers


def _is_due(round: int, every: int) -> bool:
  return round == common.ROUNDS.value or (every > 0 and round % every == 0)
