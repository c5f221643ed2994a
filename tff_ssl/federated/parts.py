"""An algorithm in parts of the cohort: partial sums, which are merged, then received.

For several hosts: each computes the sums of its part of a round's clients; the sums of
all parts, in an order of the caller's choice, make the round. A part that was lost is
computed again by itself: it depends on the server's state and the part's clients alone.

    parts = build_parts(describe(...), element_spec)
    for exchange in parts.exchanges.values():
      sums = [exchange.partial(state, data).sums for data in parts_of_the_cohort]
      state, metrics = exchange.receive(state, sums)
"""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import combine
from tff_ssl.federated import builder
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.federated import single


class Partial(NamedTuple):
  """The partial sums of a part of the cohort, and its clients' states.

  Attributes:
    sums: Over its clients, by name: of weight times each mean, of weights, of totals.
    client_states: After it, on the clients; empty where they keep none.
  """

  sums: Any
  client_states: Any


class ExchangeParts(NamedTuple):
  """One exchange in parts.

  Attributes:
    partial: (state@SERVER, [client states@CLIENTS,] data@CLIENTS) -> `Partial`.
    merge: (sums, sums) -> sums, unplaced.
    receive: (state@SERVER, sums@CLIENTS) -> (state, metrics)@SERVER: of one part or of
      several, each as the value of one client.
  """

  partial: tff.Computation
  merge: tff.Computation
  receive: tff.Computation


class Parts(NamedTuple):
  """The computations of an algorithm in parts.

  Attributes:
    initialize: () -> state@SERVER.
    exchanges: Of a round, by name, in order.
    get_model_weights: state -> `tff.learning.models.ModelWeights`.
    client_state_type: Of the state of one client; None where clients keep none.
  """

  initialize: tff.Computation
  exchanges: Mapping[str, ExchangeParts]
  get_model_weights: tff.Computation
  client_state_type: tff.StructType | None


def build_parts(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> Parts:
  """Builds the computations of an algorithm whose server has no data.

  Args:
    algorithm: As `describe` of the algorithm's module returns it.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets; or the
      `packs.PackSpec` of them.
    aggregation: What everything that leaves a client goes through; plain when None.
      Noise is added once, when the sums are received.

  Returns:
    The computations. Their rounds are those of the process, up to the order of
    floating-point sums.

  Raises:
    ValueError: If the server has data, or the aggregation acts on each client where
      only sums arrive, as secure sums do. And as `builder.build_learning_process`.
  """
  if len(algorithm.exchanges) < len(algorithm.phases):
    raise ValueError(
      'The algorithm has data at the server; in parts it must have exchanges alone.'
    )
  aggregation = aggregation or aggregation_lib.plain()
  if aggregation.packs is None:
    raise ValueError(
      'The aggregation has no `packs`, for it acts on each client; it must be one that '
      'can be given sums over clients.'
    )
  # What combines packs of clients combines parts.
  of_parts = aggregation.packs.aggregation
  graph = builder.Graph(algorithm, element_spec, aggregation, tells_again=True)
  # Its values are parts; of clients it needs the types alone.
  one_client = getattr(element_spec, 'element_spec', element_spec)
  received = builder.Graph(algorithm, one_client, of_parts, tells_again=True)
  # In packs each client is clipped inside.
  packed = graph.cohort.aggregation is of_parts
  clip_norms = {} if packed else aggregation.packs.clip_norms
  return Parts(
    received.initialize,
    collections.OrderedDict(
      (name, _build(graph, received, name, clip_norms)) for name in graph.steps
    ),
    received.get_model_weights,
    graph.client_state_type,
  )


def _build(
  graph: builder.Graph,
  received: builder.Graph,
  name: str,
  clip_norms: Mapping[str, float],
) -> ExchangeParts:
  step = graph.steps[name]
  to_sums = _build_to_sums(step, clip_norms)

  def partial_sums(state, states, data):
    told = single.tell(graph, name, state)
    sent, states = step.on_clients(told, states, graph.read(data))
    sums = tff.federated_sum(tff.federated_map(to_sums, sent))
    return Partial(sums, states)

  data_type = tff.FederatedType(graph.cohort.data_type, tff.CLIENTS)
  if step.states_type is None:

    @tff.federated_computation(received.state_type, data_type)
    def partial(state, data):
      nothing = tff.federated_value((), tff.SERVER)
      return partial_sums(state, None, data)._replace(client_states=nothing)
  else:
    states_type = tff.FederatedType(step.states_type, tff.CLIENTS)

    @tff.federated_computation(received.state_type, states_type, data_type)
    def partial(state, states, data):
      return partial_sums(state, states, data)

  sums_type = to_sums.type_signature.result

  @tff.tensorflow.computation(sums_type, sums_type)
  def merge(a, b):
    return tf.nest.map_structure(tf.add, a, b)

  return ExchangeParts(partial, merge, _build_receive(received, name, to_sums))


def _build_to_sums(step, clip_norms: Mapping[str, float]) -> tff.Computation:
  """Returns the computation of a payload's partial sums."""
  protocol = client_functions.Protocol(step.exchange.sent, counted=True)

  @tff.tensorflow.computation(step.sent_type)
  def to_sums(sent):
    sums = collections.OrderedDict(sent)
    for name, kind in step.exchange.sent.items():
      if isinstance(kind, combine.Total):
        continue
      sums[name] = _times(sent['weight'], sent[name])
      norm = protocol.clip_norm(name, clip_norms)
      if norm is not None:
        flat, _ = tf.clip_by_global_norm(tf.nest.flatten(sums[name]), norm)
        sums[name] = tf.nest.pack_sequence_as(sums[name], flat)
    return sums

  return to_sums


def _build_receive(
  received: builder.Graph, name: str, to_sums: tff.Computation
) -> tff.Computation:
  kinds = received.steps[name].exchange.sent

  @tff.tensorflow.computation(to_sums.type_signature.result)
  def to_sent(sums):
    sent = collections.OrderedDict(sums)
    share = tf.math.divide_no_nan(1.0, sums['weight'])
    for field, kind in kinds.items():
      if not isinstance(kind, combine.Total):
        sent[field] = _times(share, sums[field])
    return sent

  @tff.federated_computation(
    received.state_type,
    tff.FederatedType(to_sums.type_signature.result, tff.CLIENTS),
  )
  def receive(state, sums):
    return single.receive(received, name, state, tff.federated_map(to_sent, sums))

  return receive


def _times(factor: tf.Tensor, value: Any) -> Any:
  return tf.nest.map_structure(lambda x: x * tf.cast(factor, x.dtype), value)
