"""Learning without a server: nodes train, and average with their neighbours.

"Does Learning from Decentralized Non-IID Unlabeled Data Benefit from Self
Supervision?", Lirui Wang, Kaiqing Zhang, Yunzhu Li, Yonglong Tian, Russ Tedrake, ICLR
2023 (Dec-SSL), sections 6.1 and B.5: the fully decentralized case. The weights are
those of "A Scheme for Robust Distributed Sensor Fusion Based on Average Consensus",
Lin Xiao, Stephen Boyd, Sanjay Lall, IPSN 2005.

K nodes, one per client, form a connected graph. Each has its own model x_k; all models
are equal at first. A round:
  1. node k trains x_k on its examples, as a client of FedAvg does, to y_k;
  2. it sends y_k to its neighbours and sets x_k <- sum_j W_kj y_j, with the Metropolis
     weights of the graph (`algorithms.without_server.topology`).
W is doubly stochastic, so averaging leaves the mean of all models unchanged. On the
complete graph all weights are 1/K: FedAvg with clients that count equally.

This is a simulation, because TFF has a server. The server state holds all K models (the
mean, and each node's offset from it), and each round broadcasts all of them to all
clients. Node k picks its own by its number, and sends its update x_k - y_k in slot k of
a sum. The simulation stores and sends K models, so at most 100 nodes are allowed. A
deployment needs no server and no TFF: a device needs the addresses and the degrees of
its neighbours, a message with a model to and from each of them per round, and a common
clock or a time-out for neighbours that do not answer. Neighbours see each other's
models: no secure sum hides them, and an aggregation that adds noise is refused.
`bytes_up` is what all devices of such a deployment send: a model in each direction of
each edge. `bytes_down` is what they receive: the same messages.

Decisions, where the paper is silent:
  The paper's star is its setting with a server, which is `fedavg`. Here the hub of a
    star is a client like the others, and a model takes two rounds from leaf to leaf.
  The weights do not depend on how many examples a node has, because the paper's sources
    are of equal size.
  A run evaluates the mean of the nodes' models, each counted equally. No node has this
    mean; `consensus_distance` says how far the nodes' models are from it.
  All nodes take part in each round. A node that is absent, has no examples or computes
    something that is not finite does not train in that round: it averages the model
    that it had. If this holds for all nodes, the round changes nothing.
  With batch norm a node computes the population statistics of its examples after
    training, and averages them like weights.
  The state of an objective starts afresh each round, as in `fedavg`.
"""

import collections
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.without_server import topology as topology_lib
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.federated import update_lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import contextual

# Kept in the state and broadcast: each node's model minus the mean, [K, ...] by name.
# Sent by nodes: the model before minus after training, each in the node's own slot.
OFFSETS, STEPS = 'offsets', 'steps'
# The simulation broadcasts and sums this many models.
MOST_NODES = 100


def client_function(
  objective: base.Objective,
  topology: topology_lib.Topology,
  training: fedavg.Training,
) -> client_functions.ClientFunction:
  """Builds step 1: training a node's own model.

  Args:
    objective: What is minimised. Its state starts afresh each round.
    topology: The graph.
    training: How a node trains.

  Returns:
    A function of the values that FedAvg's takes, and of `OFFSETS`. It sends the
    objective's `metrics` and, as `STEPS`, the model (with the statistics of batch norm)
    before minus after training: [K, ...] by name, 0 except at the node's number.
  """
  client = fedavg.client_function(objective, training)

  def client_fn(shared, examples):
    place = contextual.place_of(examples, topology.nodes)
    # Not the number in the examples, which has not been checked.
    node = tf.argmax(place)
    mean = _model(shared['params'], shared.get('population', {}))
    own = collections.OrderedDict(
      (name, value + shared[OFFSETS][name][node]) for name, value in mean.items()
    )
    params = collections.OrderedDict((name, own[name]) for name in shared['params'])
    sent = client.client_fn(collections.OrderedDict(shared, params=params), examples)
    metrics = collapse.with_client_spread(sent[server.METRICS])
    steps = collections.OrderedDict(sent[server.UPDATE])
    for name, value in sent.get(server.STATISTICS, {}).items():
      steps[name] = own[name] - value
    sent_steps = contextual.in_row(steps, place)
    return collections.OrderedDict([(server.METRICS, metrics), (STEPS, sent_steps)])

  return client_functions.ClientFunction(client_fn, weigh=training.weigh)


def average(
  weights: tff.learning.models.ModelWeights,
  offsets: Mapping[str, Any],
  steps: Mapping[str, Any],
  mixing: np.ndarray,
) -> tuple[
  tff.learning.models.ModelWeights, collections.OrderedDict, collections.OrderedDict
]:
  """Averages the trained models of neighbours: step 2.

  Args:
    weights: The mean of the nodes' models before the round.
    offsets: Offsets of each node's model from this mean.
    steps: Each node's model before minus after training; 0 if it did not train.
    mixing: W.

  Returns:
    The mean after the round, the offsets, and the offsets before averaging.
  """
  means = _model(weights.trainable, weights.non_trainable)
  mixed, apart = collections.OrderedDict(), collections.OrderedDict()
  for name, mean in means.items():
    trained = offsets[name] - steps[name]
    moved = tf.reduce_mean(trained, axis=0)
    means[name] = mean + moved
    # Rows of W add up to 1, so the mean can be left out, which loses no digits.
    apart[name] = trained - moved
    mixed[name] = tf.tensordot(tf.constant(mixing, mean.dtype), apart[name], axes=1)
  return (
    tff.learning.models.ModelWeights(
      *(
        collections.OrderedDict((name, means[name]) for name in part)
        for part in (weights.trainable, weights.non_trainable)
      )
    ),
    mixed,
    apart,
  )


def consensus_distance(offsets: Mapping[str, Any], names: Any) -> tf.Tensor:
  """Returns the root mean square distance of the nodes' models from their mean.

  Args:
    offsets: Offsets of each node's model from the mean, [K, ...] by name.
    names: Names of the trained parameters; only these are measured.
  """
  squares = [
    tf.reduce_sum(tf.square(offsets[name])) / offsets[name].shape[0] for name in names
  ]
  return tf.sqrt(tf.add_n(squares))


def decentralized(
  objective: base.Objective,
  topology: topology_lib.Topology,
  training: fedavg.Training | None = None,
) -> phases.Algorithm:
  """Returns learning without a server; elements have an int32 `client`, in [0, K).

  Args:
    objective: What a node minimises.
    topology: The graph; its nodes are the clients by their numbers.
    training: How a node trains, and the seed; the defaults when None. Its `weighting`
      applies to the averages of metrics only, never to the models.

  Returns:
    An algorithm whose model weights are the mean of the nodes'. Its metrics are those
    of `fedavg.fedavg` under `client_work`. Under `finalizer` they are
    `consensus_distance` after the round (see there), the same distance before averaging
    as `distance_before_averaging`, the graph's `spectral_gap` and the number of its
    `edges`. `set_model_weights` moves all nodes: each stays as far from the mean as it
    was.

  Raises:
    ValueError: If there are too many nodes.
  """
  if topology.nodes > MOST_NODES:
    raise ValueError(
      f'The {topology.name} has {topology.nodes} nodes; there may be at most '
      f'{MOST_NODES}, because the simulation holds all their models in one place.'
    )
  training = training or fedavg.Training()
  broadcast = fedavg.broadcast(objective, training)

  def initial():
    weights = server.initial_weights(objective, training.seed)
    models = _model(weights.trainable, weights.non_trainable)
    offsets = collections.OrderedDict(
      (name, tf.zeros([topology.nodes, *value.shape], value.dtype))
      for name, value in models.items()
    )
    return server.initial_state(weights, training.seed, **{OFFSETS: offsets})

  def broadcast_models(state):
    return collections.OrderedDict(broadcast(state), **state.extra)

  def receive(state, aggregated):
    weights = state.global_model_weights
    means, mixed, apart = average(
      weights, state.extra[OFFSETS], aggregated[STEPS], topology.mixing
    )
    counts = aggregated[phases.COUNTS]['examples'] > 0
    means, mixed, apart = clients.choose(
      counts,
      (means, mixed, apart),
      (weights, state.extra[OFFSETS], state.extra[OFFSETS]),
    )
    names = list(weights.trainable)
    updates = [aggregated[STEPS][name] for name in names]
    lengths = update_lengths.histogram(clients.squares_of_rows(updates))
    work = server.report(aggregated[server.METRICS], objective.summarize)
    work[update_lengths.OUTLYING] = update_lengths.outlying(lengths)
    measured = collections.OrderedDict(
      consensus_distance=consensus_distance(mixed, names),
      distance_before_averaging=consensus_distance(apart, names),
      spectral_gap=tf.constant(topology.spectral_gap, tf.float32),
      edges=tf.constant(len(topology.edges), tf.int32),
    )
    after = state._replace(global_model_weights=means).with_extra(**{OFFSETS: mixed})
    return after, {phases.CLIENT_WORK: work, phases.FINALIZER: measured}

  def traffic(state, aggregated, sizes):
    del aggregated, sizes  # They are the simulation's.
    weights = state.global_model_weights
    message = sum(
      value.shape.num_elements() * value.dtype.size
      for value in _model(weights.trainable, weights.non_trainable).values()
    )
    total = tf.constant(2 * len(topology.edges) * message, tf.int64)
    return collections.OrderedDict(bytes_down=total, bytes_up=total)

  kinds = {
    server.METRICS: combine.METRICS,
    STEPS: combine.Sum(slots=topology.nodes),
  }
  train = phases.Exchange(
    'train',
    broadcast_models,
    client_function(objective, topology, training),
    kinds,
    receive,
    traffic,
  )
  return phases.Algorithm(
    initial,
    [train],
    client_numbers=[contextual.CLIENT],
    keeps_table=True,
    objective=objective,
  )


def _model(params: Mapping[str, Any], statistics: Mapping[str, Any]):
  """Returns parameters and population statistics, whose names differ, as one."""
  return collections.OrderedDict([*params.items(), *statistics.items()])
