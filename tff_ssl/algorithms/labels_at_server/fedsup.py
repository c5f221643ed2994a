"""FedSup: a teacher with labels at the server, students on unlabelled clients.

Kwangyeon Gill. FedSup: Teacher-Student Architecture for Federated Learning with
Unlabeled Clients. Master's thesis, Seoul National University, 2023, Algorithm 2.

A round:
  1. the server continues to train the teacher on its labelled examples;
  2. it broadcasts student and teacher;
  3. client k trains the student on its examples; the teacher stays as it is;
  4. the server averages the students in groups, with the teacher in each.

Deviations and decisions:
  The server's weight in a group is that of the group's average client (`groupwise`).
    The predictor, which the teacher does not have, is averaged over clients alone.
  The thesis does not say how long the server trains in a round: one epoch by default.
    The state of its optimizer carries over from round to round, as its training does.
  lambda_s^(t/T) counts rounds from 0: the first has weight 1.
  With batch norm student and teacher normalise by the batch of a client, as BYOL's
    target does: by unaugmented images and by each view separately. Both are tested with
    the statistics of the server's images (`server_training`).
  Without a loss clients have nothing to train. The student then only follows the
    teacher, whose encoder and head are those of training with the labels alone.
"""

import collections
from typing import Any

import tensorflow as tf

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import grouping as grouping_lib
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.encoders import parameter_names
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import supervised
from tff_ssl.objectives import teacher_student
from tff_ssl.optimization import schedules
from tff_ssl.settings import learning

# What the server keeps of the teacher: its parameters, and with batch norm its
# population statistics.
TEACHER = 'teacher'
TEACHER_STATISTICS = 'teacher_statistics'


_GROUPS = grouping_lib.Grouping(groups=2, server_weight=1.0)
_CONSTANT = schedules.Constant(1.0)


def client_function(
  student: teacher_student.FedSupObjective,
  training: fedavg.Training,
  groups: int,
) -> client_functions.ClientFunction:
  """Builds step 3: training the student in the context of the teacher."""

  def client_fn(shared, examples):
    bound = student.bind_context(shared['context'])
    return fedavg.client_function(bound, training).client_fn(shared, examples)

  train = client_functions.ClientFunction(client_fn, weigh=training.weigh)
  return grouping_lib.client_function(train, groups)


def fedsup(
  student: teacher_student.FedSupObjective,
  teacher: teacher_student.TeacherObjective,
  server_spec: Any,
  training: fedavg.Training | None = None,
  at_server: learning.ServerLabels | None = None,
  grouping: grouping_lib.Grouping = _GROUPS,
  feature_weight: schedules.Schedule = _CONSTANT,
) -> phases.Algorithm:
  """Returns FedSup; with several groups elements have an int32 `group`.

  Args:
    student: What a client minimises.
    teacher: What the server minimises; with the student's encoder and, where there is
      a consistency loss, projector.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    training: How clients train, and the seed of weights and views; the defaults when
      None.
    at_server: How the teacher trains; the defaults when None.
    grouping: Groups of a round, and the teacher's weight tau in each; one group and
      tau = 0: FedAvg.
    feature_weight: The weight of the feature maps' distance by round, from 0:
      lambda_s^(t/T) is `schedules.Exponential(1.0, lambda_s, T)`, with lambda_s = 1e-4.

  Returns:
    The algorithm. Its metrics are `server_work` (loss and accuracy of the teacher's
    training) and `client_work` (loss and its parts, gradient diversity, counts, bytes).

  Raises:
    ValueError: If an element lacks what it needs, or the teacher lacks a network.
  """
  training = training or fedavg.Training()
  at_server = at_server or learning.ServerLabels()
  if student.settings.consistency and teacher.projector is None:
    raise ValueError('The teacher has no projector; the consistency loss needs one.')
  labelled = server_training.Labelled(teacher, server_spec, at_server)
  tau, seed = grouping.server_weight, training.seed
  has_statistics = batch_norm_statistics.mixes_examples(teacher)

  def initial():
    weights = server.initial_weights(student, seed)
    own = server.initial_weights(teacher, seed).trainable
    # Averages of the two mean something only if they begin with the same weights.
    own.update((name, w) for name, w in weights.trainable.items() if name in own)
    optimizer = labelled.initial_optimizer(own)
    kept = {TEACHER: own}
    if has_statistics:
      kept[TEACHER_STATISTICS] = batch_norm_statistics.initial(teacher)
    return server.initial_state(weights, seed, optimizer, **kept)

  def teach(state, examples):
    params, optimizer, metrics = labelled.train(state.extra[TEACHER], state, examples)
    state = state._replace(optimizer=optimizer).with_extra(**{TEACHER: params})
    if has_statistics:
      before = state.extra[TEACHER_STATISTICS]
      measured = server_training.statistics(teacher, params, examples, before)
      state = state.with_extra(**{TEACHER_STATISTICS: measured})
    return state, {phases.SERVER_WORK: metrics}

  def broadcast(state):
    context = collections.OrderedDict(
      [
        (
          teacher_student.TEACHER,
          parameter_names.of_networks(state.extra[TEACHER], student.teacher_prefixes),
        ),
        (
          teacher_student.FEATURE_WEIGHT,
          tf.cast(feature_weight(state.round), tf.float32),
        ),
      ]
    )
    return phases.model(state, rate=training.rate(state.round), context=context)

  def receive(state, aggregated):
    own = state.extra[TEACHER]
    common = parameter_names.of_networks(own, student.shared_prefixes) if tau else {}
    params = grouping_lib.average(
      state.global_model_weights.trainable, aggregated, common
    )
    return (
      server.with_params(state, params),
      {phases.CLIENT_WORK: grouping_lib.report(aggregated, student.summarize)},
    )

  def classifiers(state):
    own = parameter_names.of_networks(
      state.extra[TEACHER], (dual_encoder.ENCODER, supervised.HEAD)
    )
    own.update(state.extra.get(TEACHER_STATISTICS, {}))
    weights = state.global_model_weights
    followed = collections.OrderedDict(own)
    followed.update(
      parameter_names.of_networks(weights.trainable, (dual_encoder.ENCODER,))
    )
    followed.update(weights.non_trainable)
    return collections.OrderedDict(student=followed, teacher=own)

  train = phases.Exchange(
    'train',
    broadcast,
    client_function(student, training, grouping.groups),
    grouping.sent_kinds,
    receive,
  )
  return phases.Algorithm(
    initial,
    [
      phases.AtServer('teach', server_spec, teach),
      train,
      *server_training.statistics_phases(teacher, server_spec),
    ],
    grouping.client_numbers,
    objective=student,
    classifiers=classifiers,
  )
