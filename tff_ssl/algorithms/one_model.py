"""One model that the server trains with labels and clients train without: its parts.

What is done when, and with whose model the clients' are averaged, is for the algorithm
to say: `fedrgd`, `server_finetuned`.
"""

import collections
from collections.abc import Callable
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


class OneModel:
  """The two sides of a round, to be called inside a federated computation."""

  def __init__(
    self,
    objective: base.Objective | base.Stateful,
    server_objective: base.Objective,
    server_spec: Any,
    element_spec: Any,
    clients: fedavg.FedAvgConfig,
    plan: server_training.ServerPlan,
    grouping: grouping_lib.Grouping,
    aggregation: aggregation_lib.Aggregation | None = None,
  ):
    """Builds both sides.

    Args:
      objective: What a client minimises; its state, if any, is made anew each round.
      server_objective: What the server minimises: the same encoder, with a head.
      server_spec: `tf.TensorSpec`s of one labelled example of the server.
      element_spec: Of one example of the clients, or the `packs.PackSpec` of it; with
        several groups it has an int32 `group`.
      clients: How clients train, and the seed of weights and views.
      plan: How the server trains.
      grouping: How the clients' models are averaged, and with what weight of a model
        of the server's own.
      aggregation: What everything that leaves a client goes through; plain when None.

    Raises:
      ValueError: If an element lacks what it needs.
    """
    self._seed = clients.seed
    self._models, client_type = at_server.initial_models(
      objective, server_objective, clients.seed
    )
    params_type = self._models.type_signature.result.trainable
    self._labelled = server_training.Labelled(
      server_objective, server_spec, plan, params_type
    )
    self._work = grouped_clients.GroupedClients(
      objective, element_spec, client_type, clients, grouping, aggregation
    )
    names = tuple(tff.structure.name_list(client_type))
    has_own = grouping.server_weight > 0

    @tff.tensorflow.computation(params_type)
    def of_clients(params):
      return at_server.select(params, names)

    @tff.tensorflow.computation(
      params_type, client_type, params_type, np.float32, np.float32
    )
    def average(before, mean, others, share, examples):
      # What clients do not train is the server's.
      params = collections.OrderedDict(others)
      own = at_server.select(others, names) if has_own else {}
      params.update(
        grouping_lib.average(
          at_server.select(before, names), mean, own, share, examples
        )
      )
      return params

    self._of_clients, self._average = of_clients, average

  def train(self, state: Any, params: tff.Value, server_data: tff.Value) -> tff.Value:
    """Returns `params`, `optimizer` and `metrics` after the server's training."""
    return tff.federated_map(
      self._labelled.train,
      (params, state.optimizer, state.round_seed, state.round, server_data),
    )

  def send(
    self, state: Any, params: tff.Value, client_data: tff.Value
  ) -> grouped_clients.Sent:
    """Returns what arrives from clients that train these parameters."""
    return self._work.next(
      state.clients,
      tff.federated_map(self._of_clients, params),
      state.round_seed,
      state.round,
      client_data,
    )

  def average(
    self, before: tff.Value, sent: grouped_clients.Sent, others: tff.Value
  ) -> tff.Value:
    """Returns the average of the clients' models and the server's, if that counts.

    Args:
      before: What the clients started from; it stays where none contributes.
      sent: What they sent.
      others: The server's model; also what clients do not train.
    """
    return tff.federated_map(
      self._average, (before, sent.mean, others, sent.server_share, sent.examples)
    )

  def build(
    self,
    run: Callable[
      [Any, tff.Value, tff.Value], tuple[tff.Value, tff.Value, grouped_clients.Sent]
    ],
  ) -> at_server.Process:
    """Builds the process, with the metrics `client_work` and `server_work`.

    Args:
      run: (state, the server's data, the clients') -> the parameters after a round,
        what `train` returned, and what `send` did.
    """
    initialize = at_server.build_initialize(
      self._models, self._labelled, self._seed, self._work.initialize
    )
    state_type = initialize.type_signature.result
    _, next_seed = server.round_seeds(self._seed)

    @tff.federated_computation(
      state_type,
      tff.FederatedType(self._labelled.data_type, tff.SERVER),
      tff.FederatedType(self._work.cohort.data_type, tff.CLIENTS),
    )
    def next_fn(state, server_data, client_data):
      params, trained, sent = run(state, server_data, client_data)
      return at_server.output(
        state, params, trained, next_seed, sent.state, client_work=sent.metrics
      )

    return at_server.Process(
      initialize,
      next_fn,
      *at_server.model_and_classifier(state_type.member, self._labelled.names),
    )
