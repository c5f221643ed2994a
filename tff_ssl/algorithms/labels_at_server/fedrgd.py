"""FedRGD: group-wise averaging with a replica of the server in each group.

Zhengming Zhang, Zhewei Yao, Yaoqing Yang, Yujun Yan, Joseph E. Gonzalez, Michael W.
Mahoney. Improving Semi-supervised Federated Learning by Reducing the Gradient Diversity
of Models. IEEE Big Data 2021.

A round:
  1. the server broadcasts the model, and trains a replica of it on its labels;
  2. client k trains the model with the consistency loss (`fixmatch`: the class of a
     weak view as the label of a strong one);
  3. the server averages the clients' models in groups, with its replica in each.

Deviations: the paper sends each group's mean back to a group, and takes the mean over
groups only at the end. Here all clients start from the mean over groups, as in FedSup's
(Gill, 2023) comparison. Group norm is the paper's own advice; batch norm is possible
(see `server_training`).
"""

from typing import Any

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import grouping as grouping_lib
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.settings import learning

# What the server trains in step 1, and averages with the clients' models in step 3.
_REPLICA = 'replica'


_GROUPS = grouping_lib.Grouping(groups=2, server_weight=1.0)


def fedrgd(
  objective: base.Objective,
  server_objective: base.Objective,
  server_spec: Any,
  training: fedavg.Training | None = None,
  at_server: learning.ServerLabels | None = None,
  grouping: grouping_lib.Grouping = _GROUPS,
) -> phases.Algorithm:
  """Returns FedRGD; with several groups elements have an int32 `group`.

  Args:
    objective: What a client minimises, such as `fixmatch.FixMatchObjective`.
    server_objective: What the server minimises; encoder and head.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    training: How clients train, and the seed of weights and views; the defaults when
      None.
    at_server: How the replica trains; the defaults when None.
    grouping: Groups of a round, and the replica's weight tau in each; one group and tau
      = 1 is an average over clients and server.

  Returns:
    The algorithm, with the metrics `client_work` and `server_work`.

  Raises:
    ValueError: If an element of the server lacks what it needs, or the replica has no
      weight.
  """
  if not grouping.server_weight:
    raise ValueError(
      'server_weight is 0; it must be above 0, or the labels reach no model.'
    )
  training = training or fedavg.Training()
  at_server = at_server or learning.ServerLabels()
  labelled = server_training.Labelled(server_objective, server_spec, at_server)
  both = server_training.OneModel(objective, labelled, server_objective, training.seed)

  def initial():
    state = both.initial()
    return state.with_extra(**{_REPLICA: state.global_model_weights.trainable})

  def train_replica(state, examples):
    params = state.global_model_weights.trainable
    replica, optimizer, metrics = labelled.train(params, state, examples)
    state = state._replace(optimizer=optimizer).with_extra(**{_REPLICA: replica})
    return state, {phases.SERVER_WORK: metrics}

  train = both.training(
    fedavg.client_function(objective, training),
    training.rate,
    grouping,
    lambda state: state.extra[_REPLICA],
  )
  return phases.Algorithm(
    initial,
    [
      phases.AtServer(_REPLICA, server_spec, train_replica),
      train,
      *server_training.statistics_phases(server_objective, server_spec),
    ],
    grouping.client_numbers,
    objective=objective,
    classifiers=server_training.student_of(server_objective),
  )
