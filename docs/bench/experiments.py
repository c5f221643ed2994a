"""The benchmark's experiments: each algorithm, and what its counterpart minimises.

To add an algorithm, add a row to `METHODS`. Rates are small,
so that weights stay finite on noise; any rate costs the same.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any, NamedTuple

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

  @property
  def training(self) -> fedavg.Training:
    """How clients train: at the server's learning rate."""
    return fedavg.Training(
      dataclasses.replace(self.local, learning_rate=_LEARNING_RATE), seed=self.seed
    )


class Experiment(NamedTuple):
  """An algorithm and its centralized counterpart.

  Attributes:
    algorithm: The algorithm.
    objective: What a centralized step minimises. Rounds of clients with states are not
      compared with steps, but with the same rounds in memory.
  """

  algorithm: phases.Algorithm
  objective: Any


class Method(NamedTuple):
  """An algorithm as it is measured.

  Attributes:
    build: (objective, server's optimizer, other arguments) -> the algorithm.
    configure: Returns the other arguments.
    objective: A name in `OBJECTIVES`; none: any.
  """

  build: Callable[..., phases.Algorithm]
  configure: Callable[[Problem], Sequence[Any]]
  objective: str | None = None


def server_optimizer() -> Any:
  """Returns the optimizer that applies an update, on both sides."""
  return optimizers.build_optimizer(learning.SgdServer(_LEARNING_RATE))


def _predictor(model: dual_encoder.Siamese) -> network.Network:
  """Builds a predictor as wide as the projection."""
  return predictor_lib.build_predictor(model.output_dims[0], model.output_dims[0])


OBJECTIVES: Mapping[str, Callable[[dual_encoder.Siamese], Any]] = (
  collections.OrderedDict(
    simclr=simclr.SimclrObjective,
    simsiam=lambda model: simsiam.SimSiamObjective(model, _predictor(model)),
    byol=lambda model: byol.ByolObjective(model, _predictor(model)),
    cco=statistics.StatisticsObjective,
  )
)


def _fedsup(problem: Problem) -> Experiment:
  """Describes FedSup without the server's training, for which there is no label.

  Both sides do the clients' work: the student's and the teacher's passes. The
  counterpart keeps the initial teacher.
  """
  model = problem.model
  student = teacher_student.FedSupObjective(model, _predictor(model))
  labelled = supervised.SupervisedObjective(
    model.encoder,
    projector.build_linear(model.encoder.output_dim, _CLASSES),
    configs.NONE,
  )
  teacher = teacher_student.TeacherObjective(
    labelled, model.projector, projector.build_linear(model.output_dims[0], _CLASSES)
  )
  element = problem.clients.data.element_type_structure
  algorithm = fedsup.fedsup(
    student,
    teacher,
    collections.OrderedDict(element, label=tf.TensorSpec([], tf.int32)),
    problem.training,
    grouping=grouping.FEDAVG,
  )
  values = {
    teacher_student.TEACHER: algorithm.initial().global_model_weights.trainable,
    teacher_student.FEATURE_WEIGHT: 1.0,
  }
  return Experiment(
    dataclasses.replace(algorithm, phases=algorithm.exchanges),
    student.bind_context(values),
  )


# One epoch of FeatARC takes 13/6 of SimCLR's own passes (two views, each forward and
# backward: 6 forward passes). The additional 7 are: the unaugmented image forward and
# backward, and forward through the cluster's model (4); and forward through the local
# and both clusters' models to choose a cluster (3).
METHODS: Mapping[str, Method] = collections.OrderedDict(
  dcco=Method(dcco.dcco, lambda own: [None, None, own.seed], 'cco'),
  fedavg=Method(
    fedavg.fedavg,
    lambda own: [
      fedavg.Training(dataclasses.replace(own.local, learning_rate=1.0), own.seed)
    ],
  ),
  fedema=Method(fedema.fedema, lambda own: [personal.FedEMA(), own.training], 'byol'),
  per_ssfl=Method(
    per_ssfl.per_ssfl, lambda own: [personal.Per(), own.training], 'simsiam'
  ),
  featarc=Method(
    featarc.featarc, lambda own: [personal.Featarc(), own.training], 'simclr'
  ),
)
_FEDSUP = 'fedsup'
# Not an algorithm: the centralized step in bfloat16, and in float32.
PRECISION = 'precision'
NAMES = (*METHODS, _FEDSUP, PRECISION)
# The experiments that take any objective.
WITH_OBJECTIVE = ('fedavg', PRECISION)


def build(problem: Problem, name: str) -> Experiment:
  """Describes an experiment, by its name."""
  if name == _FEDSUP:
    return _fedsup(problem)
  method = METHODS[name]
  objective = OBJECTIVES[method.objective or problem.objective](problem.model)
  arguments = method.configure(problem)
  return Experiment(method.build(objective, server_optimizer(), *arguments), objective)
