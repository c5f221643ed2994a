"""The benchmark's experiments: each algorithm and its centralized counterpart.

To add an algorithm, write a builder and add an entry to `EXPERIMENTS`.
"""

import collections
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from binaries.benchmarking import in_memory
from binaries.benchmarking import objectives
from binaries.benchmarking import problems
from binaries.benchmarking import states
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.divergence_aware import framework
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.algorithms.featarc import featarc
from tff_ssl.algorithms.labels_at_server import fedsup
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.augment import configs
from tff_ssl.encoders import projector
from tff_ssl.federated import processes
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import teacher_student

# Classes of a classifier that sees no label.
_CLASSES = 10


def build_dcco(problem: problems.Problem) -> problems.Experiment:
  """Builds DCCO with one step per round, and centralized CCO."""
  objective = statistics.StatisticsObjective(problem.model)
  federated = processes.build(
    dcco.dcco(
      objective, problems.server_optimizer(), dcco.DCCOConfig(seed=problem.seed)
    ),
    problem.clients.simulation.element_spec,
  )
  return problems.Experiment(federated, problems.centralized(objective, problem))


def build_fedavg(problem: problems.Problem) -> problems.Experiment:
  """Builds FedAvg with an objective in each client, and the objective centralized."""
  objective = objectives.OBJECTIVES[problem.objective](problem.model)
  federated = processes.build(
    fedavg.fedavg(
      objective,
      problems.server_optimizer(),
      fedavg.FedAvgConfig(problem.local, seed=problem.seed),
    ),
    problem.clients.simulation.element_spec,
  )
  return problems.Experiment(federated, problems.centralized(objective, problem))


def build_fedema(problem: problems.Problem) -> problems.Experiment:
  """Builds FedEMA with its clients' states on disk, and the same rounds in memory.

  Both compute the same, client by client, from each client's own weights. The overhead
  is reading, sending and writing the states.
  """
  objective = objectives.OBJECTIVES['byol'](problem.model)
  config = fedema.FedEMAConfig(problems.training(problem))
  process = processes.build(
    fedema.fedema(objective, problems.server_optimizer(), config),
    problem.clients.simulation.element_spec,
  )
  networks = online_networks.Networks(objective, config.sharing)
  function = framework.client_function(
    networks, config.training, fedema.online_update_of(config)
  )

  def init() -> base.Params:
    return networks.shared(server.initial_weights(objective, problem.seed).trainable)

  return problems.with_states(problem, process, function, init)


def build_featarc(problem: problems.Problem) -> problems.Experiment:
  """Builds FeatARC over SimCLR with two clusters, and the same rounds in memory.

  Both sides choose clusters by the same passes, and train with the same alignment. One
  epoch takes 13/6 of SimCLR's own passes (two views, each forward and backward: 6
  forward passes). The additional 7 are: the unaugmented image forward and backward, and
  forward through the cluster's model (4); and forward through the local and both
  clusters' models to choose a cluster (3).
  """
  objective = objectives.OBJECTIVES['simclr'](problem.model)
  config = featarc.FeatARCConfig(training=problems.training(problem))
  process = processes.build(
    featarc.featarc(objective, problems.server_optimizer(), config),
    problem.clients.simulation.element_spec,
  )

  def init() -> base.Params:
    params = server.initial_weights(objective, problem.seed).trainable
    return tf.nest.map_structure(lambda x: tf.stack([x] * config.clusters), params)

  function = featarc.client_function(objective, config)
  return problems.with_states(problem, process, function, init, in_memory.Clusters)


def build_fedsup(problem: problems.Problem) -> problems.Experiment:
  """Builds FedSup without a label, and its students' training centralized.

  The server has no examples, so both sides do the clients' work: the student's and the
  teacher's passes. The counterpart keeps the initial teacher.
  """
  objective = teacher_student.FedSupObjective(
    problem.model, objectives.predictor(problem.model)
  )
  labelled = supervised.SupervisedObjective(
    problem.model.encoder,
    projector.build_linear(problem.model.encoder.output_dim, _CLASSES),
    configs.NONE,
  )
  teacher = teacher_student.TeacherObjective(
    labelled,
    problem.model.projector,
    projector.build_linear(problem.model.output_dims[0], _CLASSES),
  )
  element = problem.clients.data.element_type_structure
  server_spec = collections.OrderedDict(element, label=tf.TensorSpec([], tf.int32))
  process = processes.build(
    fedsup.fedsup(
      objective,
      teacher,
      server_spec,
      fedsup.FedSupConfig(problems.training(problem), grouping=grouping.FEDAVG),
    ),
    problem.clients.simulation.element_spec,
  )
  params = server.initial_weights(objective, problem.seed).trainable
  bound = objective.bind_context(
    {teacher_student.TEACHER: params, teacher_student.FEATURE_WEIGHT: 1.0}
  )
  unlabelled = states.Unlabelled(process, server_spec)
  return problems.Experiment(unlabelled, problems.centralized(bound, problem))


def build_per_ssfl(problem: problems.Problem) -> problems.Experiment:
  """Builds Per-SSFL with its clients' states on disk, and the same rounds in memory.

  Both sides compute the same, as with FedEMA.
  """
  objective = objectives.OBJECTIVES['simsiam'](problem.model)
  config = per_ssfl.PerSSFLConfig(problems.training(problem))
  process = processes.build(
    per_ssfl.per_ssfl(objective, problems.server_optimizer(), config),
    problem.clients.simulation.element_spec,
  )
  function = per_ssfl.client_function(objective, config)

  def init() -> base.Params:
    return server.initial_weights(objective, problem.seed).trainable

  return problems.with_states(problem, process, function, init)


EXPERIMENTS: Mapping[str, Callable[[problems.Problem], problems.Experiment]] = (
  collections.OrderedDict(
    dcco=build_dcco,
    fedavg=build_fedavg,
    fedsup=build_fedsup,
    fedema=build_fedema,
    per_ssfl=build_per_ssfl,
    featarc=build_featarc,
  )
)
# The experiments whose clients train in epochs and batches (`Problem.local`).
WITH_LOCAL_TRAINING = ('fedavg', 'fedsup', 'fedema', 'per_ssfl', 'featarc')
# The experiments that take any objective.
WITH_OBJECTIVE = ('fedavg',)


def federated_cohort(problem: problems.Problem, round: int) -> list[tf.data.Dataset]:
  """Returns the data of a federated round with stateless clients.

  Args:
    problem: The clients.
    round: Number of the round, which decides the cohort.
  """
  return problem.clients.simulation.cohort(problem.clients.cohorts(round))


def centralized_batches(problem: problems.Problem, round: int) -> list[tf.data.Dataset]:
  """Returns the batches of the centralized steps that a round is compared with.

  They hold the examples of the round's clients as often as the clients visit them: all
  at once, or in batches of the clients' size. If a client leaves out its last batch,
  they leave out as many of its examples: always the same ones, while the client leaves
  out different ones in each epoch.

  Args:
    problem: The clients.
    round: Number of the round, which decides the cohort.
  """
  clients = problem.clients
  visited = _visited(problem, round)
  positions = np.concatenate([clients.partition[k][:n] for k, n in visited.items()])
  size = problem.local.batch_size or len(positions)
  starts = [*range(0, len(positions), size)] * problem.local.epochs
  return [
    clients.data.create_tf_dataset_for_positions(positions[start : start + size])
    for start in starts
  ]


def visited_examples(problem: problems.Problem, round: int) -> int:
  """Returns how many examples the clients of a round train on, in all epochs."""
  return sum(_visited(problem, round).values()) * problem.local.epochs


def held_examples(problem: problems.Problem, round: int) -> int:
  """Returns how many examples the clients of a round hold."""
  clients = problem.clients
  return sum(len(clients.partition[k]) for k in clients.cohorts(round))


def _visited(problem: problems.Problem, round: int) -> dict[str, int]:
  """Returns how many examples each client of a round trains on in an epoch."""
  clients = problem.clients
  batch_norm = any(net.mixes_examples for net in problem.model.networks.values())
  return {
    k: sum(problem.local.batch_sizes(len(clients.partition[k]), batch_norm))
    for k in clients.cohorts(round)
  }
