"""Runs with labels at the server: the split of the data in two, and evaluation."""

import collections
from collections.abc import Callable, Mapping
import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from binaries.building import aggregation
from binaries.building import algorithms
from binaries.building import data as building_data
from binaries.building import encoders
from binaries.building import execution
from binaries.building import labels_at_server as building
from binaries.building import objectives
from binaries.config import run_config
from binaries.experiment import choosing_precision
from binaries.experiment import evaluating
from binaries.experiment import experiments
from binaries.experiment import messages
from binaries.experiment import quality
from tasks import labels_at_server
from tasks import task_types
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import suite
from tff_ssl.federated import processes
from tff_ssl.objectives import contextual
from tff_ssl.partition import describe
from tff_ssl.runs import loop
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import server_data
from tff_ssl.simulation import simulated_clients


def prepare(config: run_config.RunConfig) -> experiments.Experiment:
  """Loads the data and builds what is run.

  Args:
    config: The run, with its settled values, of a method whose server has labels.
  """
  algorithm: Any = algorithms.of(config)
  has_clients = config.method.has_clients
  task = building_data.load_task(config)
  experiments.check_labels(config, task)
  sides = split(config, task)
  print(sides.line(), flush=True)
  clients = sides.clients
  partition = building_data.partition(config, clients)
  report = describe.describe(partition, clients.train.label, task.num_classes)
  if has_clients:
    print(report.line(), flush=True)
    messages.print_cohort_note(config, len(partition))
  clients_per_round = building_data.cohort_size(config, len(partition))
  grouping = algorithm.group(config, clients_per_round)
  data = building_data.client_data_of(
    config, clients, partition, labelled=config.objective.labelled
  )
  if algorithm.numbered:
    data = data.numbered(contextual.CLIENT)
  element_spec, cohorts = _build_cohorts(config, data, grouping.groups)
  labelled = _labelled(sides.server.train)
  config = choosing_precision.choose_precision(
    config, task, labelled.element_spec, len(task.train)
  )
  encoder = encoders.build(config, task)
  sizes = messages.sizes_in_loss(config, report)
  problem = building.Problem(
    encoder,
    task.num_classes,
    labelled.element_spec,
    len(partition),
    grouping,
    objectives.supervised_objective(config, encoder, task.num_classes),
  )
  objective = objectives.build(config, encoder, task)
  if has_clients:
    messages.warn_of_batches(config, objective, sizes)
  plan = server_training.as_clients(config.labels)
  messages.warn_of_server_batches(plan, problem.supervised, len(sides.server.train))
  process = processes.build(
    algorithm.build(config, objective, problem),
    element_spec,
    aggregation.build(config, sizes),
  )
  evaluator = evaluating.Evaluator(config, sides.server, encoder)
  measure, every = _build_measure(problem, process, evaluator)
  return experiments.Experiment(
    config,
    task,
    report,
    encoder,
    objective,
    server_data.ServerDataRounds(experiments.in_parts(config, process, data), labelled),
    cohorts if has_clients else lambda _: None,
    evaluator,
    evaluate=measure,
    evaluate_every=every,
    quality=quality.build(config, clients, encoder, partition, evaluator.untrained),
  )


def _labelled(known: task_types.Examples) -> tf.data.Dataset:
  """Returns the server's examples, with their labels."""
  return server_data.dataset(
    collections.OrderedDict(
      **known.fields, example_id=known.example_id, label=known.label
    )
  )


def split(
  config: run_config.RunConfig, task: task_types.Task
) -> labels_at_server.Split:
  """Splits off the server's labelled examples.

  Args:
    config: The run, of a method whose server has labels.
    task: The task of the run.

  Raises:
    ValueError: If a side has no example, or there is no such hospital.
  """
  hospital = config.labels.hospital
  if hospital is None:
    return labels_at_server.by_share(task, config.labels.share, config.random_seed)
  places = building_data.hospitals(config)
  if hospital not in places:
    raise ValueError(
      f'hospital of --labels is {hospital!r}; the hospitals are '
      f'{", ".join(np.unique(places))}.'
    )
  return labels_at_server.at(task, places[task.train.example_id] == hospital)


def _build_cohorts(
  config: run_config.RunConfig, data: client_data.ArrayClientData, groups: int
) -> tuple[Any, Callable[[int], Any]]:
  """Returns the types of a client's example, and round -> the data of its clients."""
  seed, packs = config.random_seed, execution.num_packs(config)
  as_rows = execution.as_rows(config)
  size = building_data.cohort_size(config, len(data.ids))
  cohorts = cohort_sampling.Cohorts(data.ids, size, seed)
  if groups > 1:
    grouped = server_data.Grouped(data, cohorts, groups, seed, packs, as_rows)
    return grouped.element_spec, grouped
  clients = simulated_clients.Clients(data, num_packs=packs, as_rows=as_rows)
  return clients.element_spec, lambda round: clients.cohort(cohorts(round))


def _build_measure(
  problem: building.Problem,
  process: processes.Process,
  evaluator: evaluating.Evaluator,
) -> tuple[loop.EvaluateFn, int]:
  """Returns the evaluation: classifiers often, all methods rarely.

  Args:
    problem: What is trained.
    process: What trains it; its algorithm names the classifiers of teacher and student.
    evaluator: Evaluates by all methods.

  Returns:
    (state, round) -> named numbers of a state; and the rounds between two calls, 0:
    only at the end.
  """
  config, classifiers = evaluator.config, process.graph.algorithm.classifiers
  if classifiers is None:
    raise ValueError(
      'The algorithm has no classifiers; one with labels must have them.'
    )
  accuracy_every, evaluate_every = config.labels.accuracy_every, config.evaluation.every
  classify = feature_sets.build_encode(
    problem.supervised.logits, problem.encoder.batch_in_cache()
  )

  def measure(state: Any, round: int) -> Mapping[str, float]:
    numbers: dict[str, float] = collections.OrderedDict()
    if evaluator.skipped is not None:
      return numbers
    if loop.is_due(round, accuracy_every, config.rounds):
      for name, own in classifiers(state).items():
        found = suite.evaluate_classifier(
          functools.partial(classify, collections.OrderedDict(own)), evaluator.problem
        )
        for score in (
          method_names.SCORES if evaluator.balanced else method_names.SCORES[:1]
        ):
          for split in ('', suite.VALIDATION):
            if (known := f'{split}{suite.CLASSIFIER}/{score}') in found:
              numbers[f'{split}{name}/{score}'] = found[known]
    if loop.is_due(round, evaluate_every, config.rounds):
      weights = process.get_model_weights(state)
      # With the population statistics of batch norm.
      everything = collections.OrderedDict(
        {**weights.trainable, **weights.non_trainable}
      )
      numbers.update(evaluator.evaluate_model(everything))
    return numbers

  return measure, math.gcd(accuracy_every, evaluate_every)
