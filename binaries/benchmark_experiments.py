"""What the benchmark can measure: each algorithm beside its centralized counterpart.

A new algorithm joins by a builder and an entry in `EXPERIMENTS`.
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from binaries import benchmark_objectives
from binaries import benchmark_states
from binaries import benchmark_workloads
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import dcco
from tff_ssl.algorithms import dcco_client
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedema
from tff_ssl.algorithms import fedsup
from tff_ssl.algorithms import grouping
from tff_ssl.algorithms import local_plan
from tff_ssl.algorithms import optimizers
from tff_ssl.algorithms import per_ssfl
from tff_ssl.algorithms import server
from tff_ssl.augment import configs
from tff_ssl.encoders import projector
from tff_ssl.objectives import base
from tff_ssl.objectives import context
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import fedsup as fedsup_objectives
from tff_ssl.objectives import per_ssfl as per_ssfl_objectives
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised

# Small, so that the weights stay finite on noise; it costs the same as any other.
_SERVER_LEARNING_RATE = 1e-3
# Of a classifier that sees no label.
_CLASSES = 10


@dataclasses.dataclass(frozen=True)
class Problem:
  """What an experiment trains, and on what.

  Attributes:
    model: The dual encoder.
    clients: The clients, with who takes part in a round.
    local: Epochs and batch size, of the algorithms that have them.
    seed: Of the initial weights and the views, the same for both sides.
    objective: Of `benchmark_objectives.OBJECTIVES`, where an experiment takes any.
  """

  model: dual_encoder.Siamese
  clients: benchmark_workloads.Clients
  local: local_plan.LocalPlan
  seed: int
  objective: str = 'simclr'


class Experiment(NamedTuple):
  """The two sides of a comparison.

  Attributes:
    federated: Its `next` takes the clients' data sets.
    centralized: Its `next` takes one batch as one data set.
  """

  federated: Any
  centralized: centralized.Centralized


def build_dcco(problem: Problem) -> Experiment:
  """Builds DCCO, one step a round, and centralized CCO."""
  objective = statistics.StatisticsObjective(problem.model)
  federated = dcco.build_dcco(
    objective,
    problem.clients.simulation.element_spec,
    _server_optimizer(),
    dcco_client.DCCOConfig(seed=problem.seed),
  )
  return Experiment(federated, _centralized(objective, problem))


def build_fedavg(problem: Problem) -> Experiment:
  """Builds FedAvg with an objective within each client, and it centralized."""
  objective = benchmark_objectives.OBJECTIVES[problem.objective](problem.model)
  federated = fedavg.build_fedavg(
    objective,
    problem.clients.simulation.element_spec,
    _server_optimizer(),
    fedavg.FedAvgConfig(problem.local, seed=problem.seed),
  )
  return Experiment(federated, _centralized(objective, problem))


def build_fedema(problem: Problem) -> Experiment:
  """Builds FedEMA, and BYOL centralized.

  Both pass each view through the online networks, back, and through the target: the
  floor is 1. What FedEMA does beside that is by weight and not by image: it mixes,
  measures, sends and stores two networks of each client.
  """
  objective = benchmark_objectives.OBJECTIVES['byol'](problem.model)
  training = fedavg.FedAvgConfig(problem.local, seed=problem.seed)
  process = fedema.build_fedema(
    objective,
    problem.clients.simulation.element_spec,
    _server_optimizer(),
    fedema.FedEMAConfig(training),
  )
  rounds = benchmark_states.Remembering(process, problem.clients.simulation)
  return Experiment(rounds, _centralized(objective, problem))


def build_fedsup(problem: Problem) -> Experiment:
  """Builds FedSup without a label, and its students' training centralized.

  The server has no example, so that both sides do the clients' work: the student's and
  the teacher's passes. The counterpart's teacher stays the initial one.
  """
  objective = fedsup_objectives.FedSupObjective(
    problem.model, benchmark_objectives.predictor(problem.model)
  )
  labelled = supervised.SupervisedObjective(
    problem.model.encoder,
    projector.build_linear(problem.model.encoder.output_dim, _CLASSES),
    configs.NONE,
  )
  teacher = fedsup_objectives.TeacherObjective(
    labelled,
    problem.model.projector,
    projector.build_linear(problem.model.output_dims[0], _CLASSES),
  )
  element = problem.clients.data.element_type_structure
  server_spec = collections.OrderedDict(element, label=tf.TensorSpec([], tf.int32))
  process = fedsup.build_fedsup(
    objective,
    teacher,
    server_spec,
    problem.clients.simulation.element_spec,
    fedsup.FedSupConfig(
      fedavg.FedAvgConfig(problem.local, _SERVER_LEARNING_RATE, seed=problem.seed),
      grouping=grouping.FEDAVG,
    ),
  )
  params = server.initial_weights(objective, problem.seed).trainable
  given = context.given(
    objective,
    {fedsup_objectives.TEACHER: params, fedsup_objectives.FEATURE_WEIGHT: 1.0},
  )
  unlabelled = benchmark_states.Unlabelled(process, server_spec)
  return Experiment(unlabelled, _centralized(given, problem))


def build_per_ssfl(problem: Problem) -> Experiment:
  """Builds Per-SSFL with its clients' states on disk, and both losses centralized.

  Both sides compute the same: forward and backward of two models over the same views.
  The floor is 1; what comes on top is the clients' states, read, sent and written.
  """
  objective = benchmark_objectives.OBJECTIVES['simsiam'](problem.model)
  process = per_ssfl.build_per_ssfl(
    objective,
    problem.clients.simulation.element_spec,
    _server_optimizer(),
    per_ssfl.PerSSFLConfig(
      fedavg.FedAvgConfig(problem.local, _SERVER_LEARNING_RATE, seed=problem.seed)
    ),
  )
  both = per_ssfl_objectives.PerSSFLObjective(objective)
  federated = benchmark_states.Remembering(process, problem.clients.simulation)
  return Experiment(federated, _centralized(both, problem))


EXPERIMENTS: Mapping[str, Callable[[Problem], Experiment]] = collections.OrderedDict(
  dcco=build_dcco,
  fedavg=build_fedavg,
  fedsup=build_fedsup,
  fedema=build_fedema,
  per_ssfl=build_per_ssfl,
)
# The experiments whose clients train in epochs and batches (`Problem.local`).
WITH_LOCAL_TRAINING = ('fedavg', 'fedsup', 'fedema', 'per_ssfl')
# The experiments that take any objective.
WITH_OBJECTIVE = ('fedavg',)


def federated_cohort(problem: Problem, round: int) -> list[tf.data.Dataset]:
  """Returns what the federated side is given in a round, of clients that forget.

  Args:
    problem: The clients.
    round: Number of the round, which decides who takes part.
  """
  return problem.clients.simulation.cohort(problem.clients.cohorts(round))


def centralized_batches(problem: Problem, round: int) -> list[tf.data.Dataset]:
  """Returns the batches of the centralized steps that a round is compared with.

  They hold the examples of the round's clients, as often as the clients visit them:
  all at once, or in batches of the clients' size.

  Args:
    problem: The clients.
    round: Number of the round, which decides who takes part.
  """
  clients = problem.clients
  positions = np.concatenate([clients.partition[k] for k in clients.cohorts(round)])
  size = problem.local.batch_size or len(positions)
  starts = [*range(0, len(positions), size)] * problem.local.epochs
  return [
    clients.data.create_tf_dataset_for_positions(positions[start : start + size])
    for start in starts
  ]


def visited_examples(problem: Problem, round: int) -> int:
  """Returns how many examples the clients of a round train on, in all epochs."""
  clients = problem.clients
  held = sum(len(clients.partition[k]) for k in clients.cohorts(round))
  return held * problem.local.epochs


def _server_optimizer() -> Any:
  return optimizers.build_optimizer(
    optimizers.OptimizerConfig('sgd', _SERVER_LEARNING_RATE)
  )


def _centralized(
  objective: base.Objective | base.Stateful, problem: Problem
) -> centralized.Centralized:
  return centralized.Centralized(objective, _server_optimizer(), problem.seed)
