"""The benchmark's experiments: each algorithm, and what its counterpart minimises.

To add an algorithm, add a row to `METHODS`. Rates are small,
so that weights stay finite on noise; any rate costs the same.
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

import tensorflow as tf

from docs.bench import workloads
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.featarc import featarc
from tff_ssl.algorithms.labels_at_server import fedsup
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.augment import configs
from tff_ssl.encoders import network
from tff_ssl.encoders import predictor as predictor_lib
from tff_ssl.encoders import projector
from tff_ssl.federated import optimizers
from tff_ssl.federated import phases
from tff_ssl.objectives import byol
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import teacher_student
from tff_ssl.settings import learning
from tff_ssl.settings import personal

_LEARNING_RATE = 1e-3
# Classes of a classifier that sees no label.
_CLASSES = 10


@dataclasses.dataclass(frozen=True)
class Problem:
  """What an experiment trains, and on what.

  Attributes:
    model: The dual encoder.
    clients: The clients, with the cohort of each round.
    local: Epochs and batch size, for the algorithms that have them.
    seed: Seed of the initial weights and the views, the same for both sides.
    objective: A name in `OBJECTIVES`, for experiments that take any.
  """

  model: dual_encoder.Siamese
  clients: workloads.Clients
  local: learning.AnyClients
  seed: int
  objective: str = 'simclr'

  def training(self, rate: float = _LEARNING_RATE) -> fedavg.Training:
    """Returns how clients train, at a rate."""
    return fedavg.Training(
      dataclasses.replace(self.local, learning_rate=rate), self.seed
    )


def server_optimizer() -> Any:
  """Returns the optimizer that applies an update, on both sides."""
  return optimizers.build_optimizer(learning.SgdServer(_LEARNING_RATE))


def _predictor(model: dual_encoder.Siamese) -> network.Network:
  """Builds a predictor as wide as the projection."""
  return predictor_lib.build_predictor(model.output_dims[0], model.output_dims[0])


OBJECTIVES: Mapping[str, Callable[[dual_encoder.Siamese], Any]] = {
  'simclr': simclr.SimclrObjective,
  'simsiam': lambda model: simsiam.SimSiamObjective(model, _predictor(model)),
  'byol': lambda model: byol.ByolObjective(model, _predictor(model)),
  'cco': statistics.StatisticsObjective,
}
# The objective, '' for any, and (objective, server's optimizer, problem) -> the
# algorithm. One epoch of FeatARC takes 13/6 of SimCLR's own passes (two views, each
# forward and backward: 6 forward passes). The additional 7 are: the unaugmented image
# forward and backward, and forward through the cluster's model (4); and forward through
# the local and both clusters' models to choose a cluster (3).
METHODS: Mapping[str, tuple[str, Callable[..., phases.Algorithm]]] = {
  'dcco': (
    'cco',
    lambda loss, server, own: dcco.dcco(loss, server, None, None, own.seed),
  ),
  'fedavg': (
    '',
    lambda loss, server, own: fedavg.fedavg(loss, server, own.training(1.0)),
  ),
  'fedema': (
    'byol',
    lambda loss, server, own: fedema.fedema(
      loss, server, personal.FedEMA(), own.training()
    ),
  ),
  'per_ssfl': (
    'simsiam',
    lambda loss, server, own: per_ssfl.per_ssfl(
      loss, server, personal.Per(), own.training()
    ),
  ),
  'featarc': (
    'simclr',
    lambda loss, server, own: featarc.featarc(
      loss, server, personal.Featarc(), own.training()
    ),
  ),
}
_FEDSUP = 'fedsup'
# Not an algorithm: the centralized step in bfloat16, and in float32.
PRECISION = 'precision'
NAMES = (*METHODS, _FEDSUP, PRECISION)
# The experiments that take any objective.
WITH_OBJECTIVE = ('fedavg', PRECISION)


def build(problem: Problem, name: str) -> tuple[phases.Algorithm, Any]:
  """Builds an experiment's algorithm, and what a centralized step minimises.

  Args:
    problem: What is trained.
    name: One of `NAMES`, but not `PRECISION`.
  """
  if name == _FEDSUP:
    return _fedsup(problem)
  kind, method = METHODS[name]
  objective = OBJECTIVES[kind or problem.objective](problem.model)
  return method(objective, server_optimizer(), own=problem), objective


def _fedsup(problem: Problem) -> tuple[phases.Algorithm, Any]:
  """Builds FedSup without the server's training, for which there is no label.

  Both sides do the clients' work: the student's and the teacher's passes. The
  counterpart keeps the initial teacher.
  """
  model = problem.model
  width, dim = model.encoder.output_dim, model.output_dims[0]
  spec = problem.clients.data.element_type_structure
  student = teacher_student.FedSupObjective(model, _predictor(model))
  head = projector.build_linear(width, _CLASSES)
  labelled = supervised.SupervisedObjective(model.encoder, head, configs.NONE)
  teacher = teacher_student.TeacherObjective(
    labelled, model.projector, projector.build_linear(dim, _CLASSES)
  )
  algorithm = fedsup.fedsup(
    student,
    teacher,
    collections.OrderedDict(spec, label=tf.TensorSpec([], tf.int32)),
    problem.training(),
    grouping=grouping.FEDAVG,
  )
  values = {
    teacher_student.TEACHER: algorithm.initial().global_model_weights.trainable,
    teacher_student.FEATURE_WEIGHT: 1.0,
  }
  clients_alone = dataclasses.replace(algorithm, phases=algorithm.exchanges)
  return clients_alone, student.bind_context(values)
