"""What the tests of algorithms with labels at the server share."""

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.augment import byol
from tff_ssl.augment import weak_strong
from tff_ssl.encoders import network
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.federated import local_training
from tff_ssl.objectives import base
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import supervised
from tff_ssl.objectives import teacher_student
from tff_ssl.settings import learning
from tff_ssl.settings import objectives

SIZES = (1, 2, 3, 4, 2)
CLIENTS = harness.split(SIZES)
GROUPS = (0, 1, 0, 1, 0)
CLIENT_CONFIG = fedavg.Training(
  learning.SgdClients(learning_rate=0.05, epochs=2, batch_size=2), seed=harness.SEED
)
SERVER_PLAN = learning.ServerLabels(batch_size=4, learning_rate=0.01)
PLANS = CLIENT_CONFIG, SERVER_PLAN
VIEWS = weak_strong.WeakStrongConfig()


def labelled(
  encoder: network.Network | None = None,
) -> supervised.SupervisedObjective:
  encoder = encoder or harness.encoder()
  head = projector.build_linear(encoder.output_dim, tiny.NUM_CLASSES)
  return supervised.SupervisedObjective(encoder, head, byol.by_name('none'))


def student(**options) -> teacher_student.FedSupObjective:
  return teacher_student.FedSupObjective(
    harness.model('mild'),
    predictor.build_predictor(harness.DIMENSION, 8),
    objectives.Fedsup(**options),
  )


def teacher(consistency: bool = True) -> teacher_student.TeacherObjective:
  if not consistency:
    return teacher_student.TeacherObjective(labelled())
  return teacher_student.TeacherObjective(
    labelled(),
    harness.model().projector,
    projector.build_linear(harness.DIMENSION, tiny.NUM_CLASSES),
  )


def pseudo_labels(
  encoder: network.Network | None = None,
) -> fixmatch.FixMatchObjective:
  own = labelled(encoder)
  return fixmatch.FixMatchObjective(
    own.encoder, own.head, VIEWS, objectives.Fixmatch(0.0)
  )


def sides(
  objective: base.Objective | None = None,
) -> tuple[Any, Any, Any, fedavg.Training, learning.ServerLabels]:
  """Returns what clients and server minimise, the server's examples, and both plans."""
  return objective or pseudo_labels(), labelled(), harness.ELEMENT, *PLANS


def unlabelled(
  encoder: network.Network | None = None,
) -> helper_consistency.UnlabelledObjective:
  own = labelled(encoder)
  return helper_consistency.UnlabelledObjective(
    own.encoder,
    own.head,
    VIEWS,
    objectives.Fedmatch(0.0),
    l2_weight=0.1,
    agreement_weight=1.0,
  )


def spec(*fields: str):
  """Returns the type of examples with some int32 fields more."""
  element = collections.OrderedDict(harness.ELEMENT)
  element.update((field, tf.TensorSpec([], tf.int32)) for field in fields)
  return element


def examples(field: str | None = None, numbers: Sequence[int] = GROUPS):
  """Returns all examples, with a number of the client that holds each."""
  arrays = harness.arrays()
  if field is not None:
    arrays[field] = np.zeros(len(arrays['label']), np.int32)
    for positions, number in zip(CLIENTS, numbers, strict=True):
      arrays[field][positions] = number
  return arrays


def train_at_server(objective, params, seed, optimizer):
  """Returns the weights after the server's training on `harness.server_data`."""
  return local_training.train(
    objective,
    server_training.as_clients(SERVER_PLAN),
    params,
    server_examples(),
    seed,
    SERVER_PLAN.learning_rate,
    optimizer=optimizer,
  ).params


def server_examples() -> collections.OrderedDict[str, tf.Tensor]:
  """Returns what `harness.server_data` holds as one batch."""
  return harness.tensors(harness.take(harness.arrays(20), range(12, 18)))


def as_params(params) -> collections.OrderedDict[str, tf.Tensor]:
  return collections.OrderedDict((n, tf.constant(v)) for n, v in params.items())


def moved(before, after):
  """Returns after - before of all tensors that both have, as one vector."""
  return np.concatenate(
    [
      np.ravel(np.asarray(after[n], np.float64) - before[n])
      for n in after
      if n in before
    ]
  )
