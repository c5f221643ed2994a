"""Methods whose server has labels."""

from collections.abc import Callable
import dataclasses
from typing import Any

from binaries.building import algorithms
from binaries.building import training
from binaries.config import run_config
from tff_ssl.aggregators import groupwise
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import fedmatch
from tff_ssl.algorithms.labels_at_server import fedrgd
from tff_ssl.algorithms.labels_at_server import fedsup
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.labels_at_server import labelled_only
from tff_ssl.algorithms.labels_at_server import server_finetuned
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.federated import phases
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import supervised
from tff_ssl.objectives import teacher_student
from tff_ssl.optimization import schedules
from tff_ssl.settings import learning
from tff_ssl.settings import methods


@dataclasses.dataclass(frozen=True)
class Problem:
  """What a method trains, and on what.

  Attributes:
    encoder: The network from images to features.
    num_classes: Number of classes of the labels.
    server_spec: `tf.TensorSpec`s of a labelled example at the server.
    population: Number of all clients.
    grouping: How the models of a round's clients are averaged.
    supervised: The objective that a side with labels minimises.
  """

  encoder: network.Network
  num_classes: int
  server_spec: Any
  population: int
  grouping: grouping.Grouping
  supervised: supervised.SupervisedObjective


def _no_grouping(
  config: run_config.RunConfig, clients_per_round: int
) -> grouping.Grouping:
  """Returns FedAvg's average, whatever the number of clients."""
  del config, clients_per_round
  return grouping.FEDAVG


def _grouping(
  config: run_config.RunConfig, clients_per_round: int
) -> grouping.Grouping:
  """Returns how a method averages a given number of clients and the server."""
  method = config.method
  groups = groupwise.num_groups(clients_per_round) if method.grouped else 1
  return grouping.Grouping(groups, method.server_weight)


def _feature_weight(config: run_config.RunConfig) -> schedules.Schedule:
  """Returns lambda_s^(t/T)."""
  return schedules.Exponential(1.0, config.objective.feature_weight, config.rounds)


def _both(
  config: run_config.RunConfig,
) -> tuple[fedavg.Training, learning.ServerLabels]:
  """Returns how clients train, and how the server does."""
  return training.of_clients(config), config.labels


def _finetuned(
  config: run_config.RunConfig, objective: Any, problem: Problem
) -> phases.Algorithm:
  return server_finetuned.server_finetuned(
    objective, problem.supervised, problem.server_spec, *_both(config)
  )


def _fedsup(
  config: run_config.RunConfig, objective: Any, problem: Problem
) -> phases.Algorithm:
  teacher = teacher_student.TeacherObjective(problem.supervised)
  if config.objective.consistency:
    head = projector.build_linear(
      objective.model.projector.output_dim, problem.num_classes
    )
    teacher = dataclasses.replace(
      teacher, projector=objective.model.projector, projection_head=head
    )
  return fedsup.fedsup(
    objective,
    teacher,
    problem.server_spec,
    *_both(config),
    problem.grouping,
    _feature_weight(config),
  )


def _fedrgd(
  config: run_config.RunConfig, objective: Any, problem: Problem
) -> phases.Algorithm:
  return fedrgd.fedrgd(
    objective,
    problem.supervised,
    problem.server_spec,
    *_both(config),
    problem.grouping,
  )


def _fedmatch(
  config: run_config.RunConfig, objective: Any, problem: Problem
) -> phases.Algorithm:
  clients, at_server = _both(config)
  return fedmatch.fedmatch(
    objective,
    helper_consistency.LabelledObjective(problem.supervised),
    problem.server_spec,
    config.method,
    clients,
    problem.population,
    at_server,
  )


def _labelled_only(
  config: run_config.RunConfig, objective: Any, problem: Problem
) -> phases.Algorithm:
  return labelled_only.labelled_only(
    objective, problem.server_spec, config.labels, config.random_seed
  )


def _check_server(config: run_config.RunConfig) -> None:
  if config.is_private:
    raise ValueError(
      f'aggregation is {config.aggregation.kind}; with labels at the server it must be '
      'plain or secure, because what clients learn of groups would not be covered.'
    )
  labels = config.labels
  if labels.hospital is not None and config.task != 'ham10000':
    raise ValueError(
      f'hospital of --labels is given with --task={config.task}; it is for ham10000 '
      'only.'
    )
  if labels.hospital is not None and labels.share != type(labels)().share:
    raise ValueError(
      'hospital and share of --labels are both given; leave one of them out.'
    )


def _check(config: run_config.RunConfig) -> None:
  _check_server(config)
  training.of_clients(config)


def _check_fedsup(config: run_config.RunConfig) -> None:
  _check(config)
  _feature_weight(config)


@dataclasses.dataclass(frozen=True)
class ServerAlgorithm(algorithms.Algorithm):
  """An algorithm whose server has labels.

  Attributes:
    group: (run, number of clients in a round) -> how their models are averaged.
  """

  group: Callable[[run_config.RunConfig, int], grouping.Grouping] = _no_grouping


_ALGORITHMS = {
  methods.ServerFinetuned: ServerAlgorithm(_finetuned, _check),
  methods.Fedsup: ServerAlgorithm(_fedsup, _check_fedsup, group=_grouping),
  methods.Fedrgd: ServerAlgorithm(_fedrgd, _check, group=_grouping),
  methods.Fedmatch: ServerAlgorithm(
    _fedmatch, _check, numbered=True, rows_of_one_client=algorithms.always
  ),
  methods.LabelledOnly: ServerAlgorithm(_labelled_only, _check_server),
}
algorithms.register(_ALGORITHMS)
