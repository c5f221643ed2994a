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

import dataclasses
from typing import Any

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import grouping as grouping_lib
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.federated import phases
from tff_ssl.objectives import base

# What the server trains in step 1, and averages with the clients' models in step 3.
_REPLICA = 'replica'


@dataclasses.dataclass(frozen=True)
class FedRGDConfig:
  """Hyperparameters of FedRGD.

  Attributes:
    clients: How clients train, and the seed of weights and views.
    server: How the replica trains.
    grouping: Groups of a round, and the replica's weight tau in each; one group and tau
      = 1 is an average over clients and server.
  """

  clients: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  server: server_training.ServerPlan = dataclasses.field(
    default_factory=server_training.ServerPlan
  )
  grouping: grouping_lib.Grouping = dataclasses.field(
    default_factory=lambda: grouping_lib.Grouping(groups=2, server_weight=1.0)
  )

  def __post_init__(self) -> None:
    if not self.grouping.server_weight:
      raise ValueError(
        'server_weight is 0; it must be above 0, or the labels reach no model.'
      )


def fedrgd(
  objective: base.Objective,
  server_objective: base.Objective,
  server_spec: Any,
  config: FedRGDConfig | None = None,
) -> phases.Algorithm:
  """Returns FedRGD; with several groups elements have an int32 `group`.

  Args:
    objective: What a client minimises, such as `fixmatch.FixMatchObjective`.
    server_objective: What the server minimises; encoder and head.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    config: Hyperparameters; the defaults when None.

  Returns:
    The algorithm, with the metrics `client_work` and `server_work`.

  Raises:
    ValueError: If an element of the server lacks what it needs.
  """
  config = config or FedRGDConfig()
  labelled = server_training.Labelled(server_objective, server_spec, config.server)
  both = server_training.OneModel(
    objective, labelled, server_objective, config.clients.seed
  )

  def initial():
    state = both.initial()
    return state.with_extra(**{_REPLICA: state.global_model_weights.trainable})

  def train_replica(state, examples):
    params = state.global_model_weights.trainable
    replica, optimizer, metrics = labelled.train(params, state, examples)
    state = state._replace(optimizer=optimizer).with_extra(**{_REPLICA: replica})
    return state, {phases.SERVER_WORK: metrics}

  train = both.training(
    fedavg.client_function(objective, config.clients),
    config.clients.rate,
    config.grouping,
    lambda state: state.extra[_REPLICA],
  )
  return phases.Algorithm(
    initial,
    [
      phases.AtServer(_REPLICA, server_spec, train_replica),
      train,
      *server_training.statistics_phases(server_objective, server_spec),
    ],
    config.grouping.client_numbers,
    objective=objective,
    classifiers=server_training.student_of(server_objective),
  )
