"""FedRGD: group-wise averaging with a replica of the server in each group.

Zhengming Zhang, Zhewei Yao, Yaoqing Yang, Yujun Yan, Joseph E. Gonzalez, Michael W.
Mahoney. Improving Semi-supervised Federated Learning by Reducing the Gradient Diversity
of Models. IEEE Big Data 2021.

A round:
  1. the server broadcasts the model, and trains a replica of it on its labels;
  2. client k trains the model with the consistency loss (`fixmatch`: the class of a
     weak view as the label of a strong one);
  3. the server averages the clients' models in groups, with its replica in each.

Deviations: where the paper sends each group's mean back to a group and takes the mean
over groups at last, all clients start from it here, as in FedSup's (Gill, 2023)
comparison. Networks have group norm, which is the paper's own advice.
"""

import collections
import dataclasses
from typing import Any

import numpy as np
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import at_server
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import grouped_clients
from tff_ssl.algorithms import grouping as grouping_lib
from tff_ssl.algorithms import server
from tff_ssl.algorithms import server_training
from tff_ssl.objectives import base


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


def build_fedrgd(
  objective: base.Objective | base.Stateful,
  server_objective: base.Objective,
  server_spec: Any,
  element_spec: Any,
  config: FedRGDConfig | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> at_server.Process:
  """Builds FedRGD.

  Args:
    objective: What a client minimises, as `fixmatch.FixMatchObjective`.
    server_objective: What the server minimises; encoder and head.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    element_spec: Of one example of the clients, or the `packs.PackSpec` of it; with
      several groups it has an int32 `group`.
    config: Hyperparameters; the defaults when None.
    aggregation: What everything that leaves a client goes through; plain when None.

  Returns:
    The process, with the metrics `client_work` and `server_work`.

  Raises:
    ValueError: If an element lacks what it needs.
  """
  config = config or FedRGDConfig()
  initial_weights, client_type = at_server.initial_models(
    objective, server_objective, config.clients.seed
  )
  weights_type = initial_weights.type_signature.result
  labelled = server_training.Labelled(
    server_objective, server_spec, config.server, weights_type.trainable
  )
  work = grouped_clients.GroupedClients(
    objective, element_spec, client_type, config.clients, config.grouping, aggregation
  )
  initialize = at_server.build_initialize(
    initial_weights, labelled, config.clients.seed, work.initialize
  )
  state_type = initialize.type_signature.result
  _, next_seed = server.round_seeds(config.clients.seed)
  names = tuple(tff.structure.name_list(client_type))

  @tff.tensorflow.computation(weights_type.trainable)
  def of_clients(params):
    return at_server.select(params, names)

  @tff.tensorflow.computation(
    weights_type, client_type, weights_type.trainable, np.float32, np.float32
  )
  def average(weights, mean, replica, share, examples):
    # What clients do not train is the replica's own.
    params = collections.OrderedDict(replica)
    params.update(
      grouping_lib.average(
        at_server.select(weights.trainable, names),
        mean,
        at_server.select(replica, names),
        share,
        examples,
      )
    )
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
      labelled.train, (weights.trainable, state.optimizer, seed, round, server_data)
    )
    params = tff.federated_map(of_clients, weights.trainable)
    sent = work.next(state.clients, params, seed, round, client_data)
    averaged = tff.federated_map(
      average, (weights, sent.mean, trained['params'], sent.server_share, sent.examples)
    )
    return tff.learning.templates.LearningProcessOutput(
      tff.federated_zip(
        at_server.State(
          averaged,
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

  return at_server.Process(
    initialize,
    next_fn,
    *at_server.model_and_classifier(state_type.member, labelled.names),
  )
