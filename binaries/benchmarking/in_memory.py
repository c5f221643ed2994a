"""The counterpart of stateful clients: the same rounds in plain TensorFlow."""

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms.featarc import cluster_models
from tff_ssl.algorithms.featarc import featarc
from tff_ssl.encoders import network
from tff_ssl.federated import client_functions
from tff_ssl.federated import processes
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.simulation import client_data


class State(NamedTuple):
  """State between rounds.

  Attributes:
    params: Parameters of the global model.
    optimizer: The server optimizer's state.
    round_seed: int32 [2], the seed of the next round.
    round: Number of the next round, from 0.
    clients: States of the last round's clients, by id.
  """

  params: base.Params
  optimizer: Any
  round_seed: tf.Tensor
  round: int
  clients: Mapping[str, client_functions.ClientState]


class Output(NamedTuple):
  """The result of a round."""

  state: State
  metrics: Mapping[str, tf.Tensor]


class InMemory:
  """Runs clients one after another, without TFF, packs or a disk.

  Each client has its own weights, so the examples of several clients cannot go through
  one network together. What remains is the bare arithmetic of a round on one machine.

  The states of one round are kept for the next one only. With a large population the
  states of all rounds would fill most of the process's memory, which is to be measured
  for the federated side. A client that comes back later starts again, at the same cost.
  """

  # The name under which clients receive the global model.
  _told = 'params'

  def __init__(
    self,
    function: client_functions.StatefulFunction,
    init: Callable[[], base.Params],
    process: processes.Process,
    optimizer: tff.learning.optimizers.Optimizer,
    rate: float,
    data: client_data.ArrayClientData,
    seed: int,
  ):
    """Computes nothing yet.

    Args:
      function: The function of one client, with the inputs of
        `stateful_averaging.compose`.
      init: () -> the global model's initial parameters.
      process: The process that is compared; it says what a client keeps.
      optimizer: Applies the mean update.
      rate: Learning rate of the clients' optimizer.
      data: The data of all clients.
      seed: Seed of the rounds.
    """
    self._function, self._init = function, init
    self._exchange_spec = client_functions.ExchangeSpec(self._kinds(), counted=True)
    self._blank = client_functions.blank_state(process.graph.client_state_type)
    self._optimizer, self._rate = optimizer, tf.constant(rate)
    self._data, self._seed = data, seed

  def initialize(self) -> State:
    """Returns the state before the first round."""
    params = self._init()
    specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), params)
    optimizer = self._optimizer.initialize(specs)
    return State(params, optimizer, server.initial_round_seed(self._seed), 0, {})

  def next(self, state: State, client_ids: Iterable[str]) -> Output:
    """Runs one round.

    Args:
      state: From `initialize` or the previous round.
      client_ids: The clients of the round.
    """
    shared = collections.OrderedDict(
      [
        (self._told, state.params),
        ('seed', state.round_seed),
        ('rate', self._rate),
        ('round', tf.constant(state.round)),
      ]
    )
    total, after = None, {}
    for name in sorted(client_ids):
      index = np.int32(self._data.ids.index(name))
      own = state.clients.get(name, self._blank._replace(client=index))
      examples = self._data.examples(self._data.positions(name))
      tensors = tf.nest.map_structure(tf.convert_to_tensor, (own, examples))
      total, after[name] = self._visit(shared, *tensors, total)
    params, optimizer, metrics = self._apply(state.params, state.optimizer, total)
    seed = server.next_round_seed(state.round_seed)
    return Output(State(params, optimizer, seed, state.round + 1, after), metrics)

  def get_model_weights(self, state: State) -> tff.learning.models.ModelWeights:
    """Returns the global model's weights."""
    return tff.learning.models.ModelWeights(state.params, [])

  @tf.function(reduce_retracing=True, autograph=False)
  def _visit(
    self,
    shared: Any,
    own: Any,
    examples: base.Examples,
    total: client_functions.Sums | None,
  ) -> tuple[client_functions.Sums, client_functions.ClientState]:
    """Returns the sums with one client's added, and the client's new state."""
    result, after = client_functions.run_client(
      self._function, self._exchange_spec, shared, own, examples
    )
    sums = client_functions.sums_of_client(result)
    if total is not None:
      sums = tf.nest.map_structure(tf.add, total, sums)
    return sums, after

  @tf.function(autograph=False)
  def _apply(
    self, params: base.Params, optimizer: Any, total: client_functions.Sums
  ) -> tuple[base.Params, Any, base.Metrics]:
    """Applies the mean update as a gradient."""
    means = tf.nest.map_structure(
      lambda x: tf.math.divide_no_nan(x, tf.cast(total.weight, x.dtype)), total.means
    )
    update = self._mean(means[server.UPDATE], total)
    optimizer, params = self._optimizer.next(optimizer, params, update)
    return params, optimizer, means[server.METRICS]

  def _kinds(self) -> dict[str, combine.Kind]:
    """Returns how the clients' payloads are combined."""
    return server.sent_kinds()

  def _mean(self, update: base.Params, total: client_functions.Sums) -> base.Params:
    """Returns the mean update, given the mean over all clients."""
    del total
    return update


class Clusters(InMemory):
  """Runs FeatARC's rounds in memory: `params` are its cluster models, [C, ...] each.

  The optimizer acts on the stacked models. This equals acting on each model if the
  optimizer treats every number by itself and has no state, like SGD.
  """

  _told = cluster_models.CLUSTERS

  def get_model_weights(self, state: State) -> tff.learning.models.ModelWeights:
    """Returns the cluster models, under the names that the process gives them."""
    stacked = network.with_prefix(state.params, cluster_models.CLUSTERS)
    return tff.learning.models.ModelWeights([], stacked)

  def _kinds(self) -> dict[str, combine.Kind]:
    return {**server.sent_kinds(), featarc.CHOICE: combine.TOTAL}

  def _mean(self, update: base.Params, total: client_functions.Sums) -> base.Params:
    # The mean over a cluster's clients; 0 for a cluster without clients.
    weights = tf.cast(total.totals[featarc.CHOICE][cluster_models.WEIGHT], tf.float32)
    scales = tf.math.divide_no_nan(total.weight, weights)
    return tf.nest.map_structure(
      lambda x: x * tf.reshape(scales, [-1, *[1] * (x.shape.rank - 1)]), update
    )
