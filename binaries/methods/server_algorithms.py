"""The algorithms whose server has labels: how flags build each of them."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from absl import flags

from binaries.flags import common
from binaries.flags import methods
from binaries.flags import privacy
from binaries.flags import training
from binaries.methods import algorithms
from binaries.methods import objectives
from tff_ssl.aggregators import groupwise
from tff_ssl.algorithms.labels_at_server import fedmatch
from tff_ssl.algorithms.labels_at_server import fedrgd
from tff_ssl.algorithms.labels_at_server import fedsup
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.labels_at_server import labelled_only
from tff_ssl.algorithms.labels_at_server import server_finetuned
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import supervised
from tff_ssl.objectives import teacher_student
from tff_ssl.optimization import local
from tff_ssl.optimization import schedules


@dataclasses.dataclass(frozen=True)
class Problem:
  """What a method trains, and on what.

  Attributes:
    encoder: The network from images to features.
    num_classes: Number of classes of the labels.
    server_spec: `tf.TensorSpec`s of a labelled example at the server.
    population: Number of all clients.
    grouping: How the models of a round's clients are averaged.
  """

  encoder: network.Network
  num_classes: int
  server_spec: Any
  population: int
  grouping: grouping.Grouping

  @property
  def supervised(self) -> supervised.SupervisedObjective:
    """The objective that a side with labels minimises."""
    return objectives.labelled(self.encoder, self.num_classes)


def server_plan() -> server_training.ServerPlan:
  """Returns how the server trains: with Adam."""
  plan = local_training.LocalPlan(
    methods.SERVER_EPOCHS.value,
    methods.SERVER_BATCH.value,
    optimizer=local.LocalOptimizer('adam'),
  )
  return server_training.ServerPlan(plan, methods.SERVER_RATE.value)


def no_grouping(clients_per_round: int) -> grouping.Grouping:
  """Returns FedAvg's average, whatever the number of clients."""
  del clients_per_round
  return grouping.FEDAVG


def fedsup_grouping(clients_per_round: int) -> grouping.Grouping:
  """Returns how FedSup averages the models of a given number of clients.

  Raises:
    ValueError: If the server's weight is negative, or would do nothing.
  """
  if methods.AVERAGING.value == 'groupwise':
    return _groupwise(clients_per_round)
  if flags.FLAGS[methods.SERVER_WEIGHT.name].present:
    raise ValueError(
      '--server_weight is given with --averaging=fedavg; it is for groupwise only.'
    )
  return grouping.FEDAVG


def fedrgd_grouping(clients_per_round: int) -> grouping.Grouping:
  """Returns how FedRGD averages the models of a given number of clients."""
  if methods.AVERAGING.value == 'groupwise':
    return _groupwise(clients_per_round)
  # The server's labels reach the model only through the average.
  return grouping.Grouping(1, methods.SERVER_WEIGHT.value)


def _groupwise(clients_per_round: int) -> grouping.Grouping:
  groups = groupwise.num_groups(clients_per_round)
  return grouping.Grouping(groups, methods.SERVER_WEIGHT.value)


def _feature_weight() -> schedules.Schedule:
  """Returns lambda_s^(t/T)."""
  return schedules.Exponential(1.0, methods.FEATURE_WEIGHT.value, common.ROUNDS.value)


def _finetuned(objective: Any, problem: Problem) -> phases.Algorithm:
  config = server_finetuned.ServerFinetunedConfig(
    training.client_config(), server_plan()
  )
  return server_finetuned.server_finetuned(
    objective, problem.supervised, problem.server_spec, config
  )


def _fedsup(objective: Any, problem: Problem) -> phases.Algorithm:
  teacher = teacher_student.TeacherObjective(problem.supervised)
  if objective.consistency:
    head = projector.build_linear(
      objective.model.projector.output_dim, problem.num_classes
    )
    teacher = dataclasses.replace(
      teacher, projector=objective.model.projector, projection_head=head
    )
  config = fedsup.FedSupConfig(
    training.client_config(), server_plan(), problem.grouping, _feature_weight()
  )
  return fedsup.fedsup(objective, teacher, problem.server_spec, config)


def _fedrgd(objective: Any, problem: Problem) -> phases.Algorithm:
  config = fedrgd.FedRGDConfig(
    training.client_config(), server_plan(), problem.grouping
  )
  return fedrgd.fedrgd(objective, problem.supervised, problem.server_spec, config)


def _fedmatch(objective: Any, problem: Problem) -> phases.Algorithm:
  config = fedmatch.FedMatchConfig(
    problem.population,
    training.client_config(),
    server_plan(),
    methods.HELPERS.value,
    methods.HELPER_INTERVAL.value,
  )
  return fedmatch.fedmatch(
    objective,
    helper_consistency.LabelledObjective(problem.supervised),
    problem.server_spec,
    config,
  )


def _labelled_only(objective: Any, problem: Problem) -> phases.Algorithm:
  return labelled_only.labelled_only(
    objective, problem.server_spec, server_plan(), common.SEED.value
  )


def _check_server_data() -> None:
  if privacy.is_private():
    raise ValueError(
      f'aggregation is {privacy.AGGREGATION.value}; with labels at the server it must '
      'be plain or secure, because what clients learn of groups would not be covered.'
    )
  common.refuse_stray('server_hospital', 'task', ('ham10000',))
  labels = methods.SERVER_LABELS
  if methods.SERVER_HOSPITAL.value is not None and flags.FLAGS[labels.name].present:
    raise ValueError(
      '--server_hospital and --server_labels are both given; leave one of them out.'
    )
  if not 0 < labels.value <= 1:
    raise ValueError(f'server_labels is {labels.value}; it must be in (0, 1].')
  server_plan()


def _check() -> None:
  _check_server_data()
  training.client_config()


def _check_fedsup() -> None:
  _check()
  fedsup_grouping(2)
  _feature_weight()


def _check_fedrgd() -> None:
  _check()
  fedrgd_grouping(2)


@dataclasses.dataclass(frozen=True)
class ServerAlgorithm(algorithms.Algorithm):
  """An algorithm whose server has labels.

  Attributes:
    group: Number of clients in a round -> how their models are averaged.
    has_clients: Whether clients train too.
  """

  group: Callable[[int], grouping.Grouping] = no_grouping
  has_clients: bool = True


# The server takes the average unchanged, so it has no flags of a server optimizer.
_CLIENTS = (
  'partition',
  'clients_per_round',
  'participation',
  'packs',
  'parts',
  *training.OF_CLIENTS,
  'proximal_weight',
)
_TRAINING = (
  *algorithms.RUNTIME,
  *methods.OF_SERVER_DATA,
  *privacy.OF_SUMS,
  *_CLIENTS,
)

ALGORITHMS: Mapping[str, ServerAlgorithm] = {
  'server_finetuned': ServerAlgorithm(_finetuned, _TRAINING, check=_check),
  'fedsup': ServerAlgorithm(
    _fedsup,
    (*_TRAINING, 'averaging', 'server_weight'),
    check=_check_fedsup,
    group=fedsup_grouping,
  ),
  'fedrgd': ServerAlgorithm(
    _fedrgd,
    (*_TRAINING, 'averaging', 'server_weight'),
    check=_check_fedrgd,
    group=fedrgd_grouping,
  ),
  'fedmatch': ServerAlgorithm(
    _fedmatch,
    (*_TRAINING, 'helpers', 'helper_interval'),
    check=_check,
    numbered=True,
    rows_of_one_client=True,
  ),
  'labelled_only': ServerAlgorithm(
    _labelled_only,
    (*algorithms.RUNTIME, *methods.OF_SERVER_DATA),
    check=_check_server_data,
    has_clients=False,
  ),
}
