"""FedSup: a teacher with labels at the server, students on unlabelled clients.

Kwangyeon Gill. FedSup: Teacher-Student Architecture for Federated Learning with
Unlabeled Clients. Master's thesis, Seoul National University, 2023, Algorithm 2.

A round:
  1. the server trains the teacher on its labelled examples, from where it was;
  2. it broadcasts student and teacher;
  3. client k trains the student on its examples; the teacher stays as it is;
  4. the server averages the students in groups, with the teacher in each.

Deviations and decisions:
  The server's weight in a group is that of its average client (`groupwise`). What the
    teacher does not have, the predictor, is averaged over clients alone.
  How long the server trains in a round is open in the thesis: one epoch by default. The
    state of its optimizer lives on, as its training does.
  lambda_s^(t/T) counts rounds from 0: the first has weight 1.
  Without a loss clients have nothing to train; the student then only follows the
    teacher, whose encoder and head are those of training with the labels alone.
"""

import collections
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import at_server
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import grouped_clients
from tff_ssl.algorithms import grouping as grouping_lib
from tff_ssl.algorithms import server
from tff_ssl.algorithms import server_training
from tff_ssl.encoders import network
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import fedsup
from tff_ssl.objectives import supervised
from tff_ssl.optimization import schedules


@dataclasses.dataclass(frozen=True)
class FedSupConfig:
  """Hyperparameters of FedSup.

  Attributes:
    clients: How clients train, and the seed of weights and views; in the thesis 5
      epochs, batches of 128, rate 1e-3.
    server: How the teacher trains.
    grouping: Groups of a round, and the teacher's weight tau in each; one group and
      tau = 0: FedAvg.
    feature_weight: The weight of the feature maps' distance by round, from 0:
      lambda_s^(t/T) is `schedules.Exponential(1.0, lambda_s, T)`, with lambda_s = 1e-4.
  """

  clients: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  server: server_training.ServerPlan = dataclasses.field(
    default_factory=server_training.ServerPlan
  )
  grouping: grouping_lib.Grouping = dataclasses.field(
    default_factory=lambda: grouping_lib.Grouping(groups=2, server_weight=1.0)
  )
  feature_weight: schedules.Schedule = dataclasses.field(
    default_factory=lambda: schedules.Constant(1.0)
  )


class FedSupState(NamedTuple):
  """State between rounds.

  Attributes:
    global_model_weights: `tff.learning.models.ModelWeights` of the student.
    teacher: The teacher's parameters.
    optimizer: The state of the teacher's optimizer.
    round: int32, the number of the next round, from 0.
    round_seed: int32 [2], of the next round.
    clients: Of the aggregators.
  """

  global_model_weights: Any
  teacher: Any
  optimizer: Any
  round: Any
  round_seed: Any
  clients: Any


def build_fedsup(
  student: fedsup.FedSupObjective,
  teacher: fedsup.TeacherObjective,
  server_spec: Any,
  element_spec: Any,
  config: FedSupConfig | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> at_server.Process:
  """Builds FedSup.

  Args:
    student: What a client minimises.
    teacher: What the server minimises; with the student's encoder and, where there is
      a consistency loss, projector.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    element_spec: Of one example of the clients, or the `packs.PackSpec` of it; with
      several groups it has an int32 `group`.
    config: Hyperparameters; the defaults when None.
    aggregation: What everything that leaves a client goes through; plain when None.

  Returns:
    The process. Metrics are `server_work` (loss and accuracy of the teacher's training)
    and `client_work` (loss and its parts, gradient diversity, counts, bytes).

  Raises:
    ValueError: If an element lacks what it needs, or the teacher lacks a network.
  """
  config = config or FedSupConfig()
  if student.consistency and teacher.projector is None:
    raise ValueError('The teacher has no projector; the consistency loss needs one.')

  @tff.tensorflow.computation
  def initial_models():
    weights = server.initial_weights(student, config.clients.seed)
    own = server.initial_weights(teacher, config.clients.seed).trainable
    # Averages of the two mean something only if they begin alike.
    own.update((name, w) for name, w in weights.trainable.items() if name in own)
    return weights, own

  weights_type, teacher_type = initial_models.type_signature.result
  labelled = server_training.Labelled(teacher, server_spec, config.server, teacher_type)

  @tff.tensorflow.computation(teacher_type, np.int32)
  def to_context(params, round):
    return collections.OrderedDict(
      [
        (fedsup.TEACHER, _select(params, student.teacher_prefixes)),
        (fedsup.FEATURE_WEIGHT, tf.cast(config.feature_weight(round), tf.float32)),
      ]
    )

  work = grouped_clients.GroupedClients(
    student,
    element_spec,
    weights_type.trainable,
    config.clients,
    config.grouping,
    aggregation,
    to_context.type_signature.result,
  )
  initial_seed, next_seed = server.round_seeds(config.clients.seed)

  @tff.federated_computation
  def initialize():
    models = tff.federated_eval(initial_models, tff.SERVER)
    return tff.federated_zip(
      FedSupState(
        models[0],
        models[1],
        tff.federated_map(labelled.initial_optimizer, models[1]),
        server.first_round(),
        tff.federated_eval(initial_seed, tff.SERVER),
        work.initialize(),
      )
    )

  state_type = initialize.type_signature.result
  tau = config.grouping.server_weight

  @tff.tensorflow.computation(
    weights_type, weights_type.trainable, teacher_type, np.float32, np.float32
  )
  def average(weights, mean, own, share, examples):
    common = _select(own, student.shared_prefixes) if tau else {}
    params = grouping_lib.average(weights.trainable, mean, common, share, examples)
    return at_server.as_weights(params)

  @tff.federated_computation(
    state_type,
    tff.FederatedType(labelled.data_type, tff.SERVER),
    tff.FederatedType(work.cohort.data_type, tff.CLIENTS),
  )
  def next_fn(state, server_data, client_data):
    seed, round = state.round_seed, state.round
    weights = state.global_model_weights
    trained = tff.federated_map(
      labelled.train, (state.teacher, state.optimizer, seed, round, server_data)
    )
    context = tff.federated_map(to_context, (trained['params'], round))
    sent = work.next(
      state.clients, weights.trainable, seed, round, client_data, context
    )
    averaged = tff.federated_map(
      average, (weights, sent.mean, trained['params'], sent.server_share, sent.examples)
    )
    return tff.learning.templates.LearningProcessOutput(
      tff.federated_zip(
        FedSupState(
          averaged,
          trained['params'],
          trained['optimizer'],
          server.next_round(round),
          next_seed(seed),
          sent.state,
        )
      ),
      tff.federated_zip(
        collections.OrderedDict(
          client_work=sent.metrics, server_work=trained['metrics']
        )
      ),
    )

  @tff.tensorflow.computation(state_type.member)
  def get_model_weights(state):
    return state.global_model_weights

  @tff.tensorflow.computation(state_type.member)
  def get_classifier_weights(state):
    own = _select(state.teacher, (dual_encoder.ENCODER, supervised.HEAD))
    followed = collections.OrderedDict(own)
    followed.update(
      _select(state.global_model_weights.trainable, (dual_encoder.ENCODER,))
    )
    return collections.OrderedDict(student=followed, teacher=own)

  return at_server.Process(
    initialize, next_fn, get_model_weights, get_classifier_weights
  )


def _select(params, prefixes):
  """Returns the parameters of some networks, under their full names."""
  return collections.OrderedDict(
    (name, value)
    for prefix in prefixes
    for name, value in network.with_prefix(
      network.select(params, prefix), prefix
    ).items()
  )
