"""Rounds in parts of the cohort: partial sums, which are added up and then received.

For several machines: each computes the sums of its part of a round's clients. The sums
of all parts, in an order that the caller chooses, make the round. A lost part can be
computed again by itself: it needs only what was broadcast and the part's clients.

    parts = build_parts(processes.build(dcco.dcco(...), element_spec).graph)
    known = collections.OrderedDict()
    for exchange in parts.exchanges.values():
      known.update(exchange.broadcast(state))
      sums = [exchange.partial(known, data).sums for data in parts_of_the_cohort]
      state, metrics = exchange.receive(state, sums)

`execution.partial_rounds` runs whole rounds of any process in this way.
"""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import phase_graph
from tff_ssl.federated import phases
from tff_ssl.federated import round_metrics
from tff_ssl.federated import single


class Partial(NamedTuple):
  """The partial sums of a part of the cohort, and its clients' states.

  Attributes:
    sums: Over its clients, by name: of weight times each mean, of weights, of totals.
    client_states: After the exchange, on the clients; empty if they keep none.
  """

  sums: Any
  client_states: Any


class ExchangeParts(NamedTuple):
  """One exchange in parts.

  Attributes:
    broadcast: state@SERVER -> values@SERVER by name, which clients learn in this
      exchange.
    partial: (values@SERVER, [client states@CLIENTS,] data@CLIENTS) -> `Partial`. The
      values are those of this exchange and of all earlier ones of the round.
    receive: (state@SERVER, sums@CLIENTS) -> (state, metrics)@SERVER: takes the sums of
      one part or of several, each as the value of one client.
  """

  broadcast: tff.Computation
  partial: tff.Computation
  receive: tff.Computation


class Parts(NamedTuple):
  """The computations of an algorithm in parts.

  Attributes:
    initialize: () -> state@SERVER.
    phases: Phases of a round, by name, in order: for an exchange its parts, for
      training at the server (state@SERVER, its data@SERVER) -> (state, metrics)@SERVER.
    get_model_weights: state -> `tff.learning.models.ModelWeights`.
    client_state_type: Type of the state of one client; None if clients keep none.
    in_groups: Whether models are averaged in groups of clients. If so, all values of a
      part must be of one group, and sums of parts must not be added up: `receive` takes
      the sums of each part.
  """

  initialize: tff.Computation
  phases: Mapping[str, ExchangeParts | tff.Computation]
  get_model_weights: tff.Computation
  client_state_type: tff.StructType | None
  in_groups: bool

  @property
  def exchanges(self) -> Mapping[str, ExchangeParts]:
    """The exchanges of a round, by name, in order."""
    return collections.OrderedDict(
      (name, phase)
      for name, phase in self.phases.items()
      if isinstance(phase, ExchangeParts)
    )


def build_parts(graph: phase_graph.Graph) -> Parts:
  """Builds the computations in parts from the graph of a process.

  Args:
    graph: The process's; states and byte counts are those of the process. Noise is
      added once, when the sums are received.

  Returns:
    The computations. Their rounds are those of the process, up to the order of
    floating-point sums.

  Raises:
    ValueError: If the aggregation must act on each client, as secure sums do, because
      only sums arrive here.
  """
  aggregation = graph.aggregation
  of_packs = _packs_of(aggregation)
  # Parts are combined as packs of clients are.
  of_parts = of_packs.aggregation
  # Inside a pack each client has been clipped.
  packed = graph.cohort is not None and graph.cohort.aggregation is of_parts
  clip_norms = {} if packed else of_packs.clip_norms
  received = graph
  if not packed and aggregation.updates is not of_parts.updates:
    # Its values are parts; it needs only the types of clients.
    one_client = getattr(graph.element_spec, 'element_spec', graph.element_spec)
    received = phase_graph.Graph(
      graph.algorithm, one_client, of_parts, graph.rebroadcasts
    )
  return Parts(
    received.initialize,
    collections.OrderedDict(
      (
        phase.name,
        _build(graph, received, phase.name, clip_norms)
        if isinstance(phase, phases.Exchange)
        else _build_at_server(received, phase),
      )
      for phase in graph.algorithm.phases
    ),
    received.get_model_weights,
    graph.client_state_type,
    any(
      kind.in_groups
      for exchange in graph.algorithm.exchanges
      for kind in exchange.sent.values()
    ),
  )


def _build_at_server(
  graph: phase_graph.Graph, phase: phases.AtServer
) -> tff.Computation:
  """Returns the computation of a phase at the server."""
  train = graph.at_server[phase.name]
  data_type = tff.FederatedType(train.type_signature.parameter[1], tff.SERVER)
  is_last = phase is graph.algorithm.phases[-1]

  @tff.federated_computation(graph.state_type, data_type)
  def run(state, data):
    output = tff.federated_map(train, (graph.server_state(state), data))
    metrics: dict[str, Any] = {}
    round_metrics.add(metrics, output)
    after = graph.advanced(output['state']) if is_last else output['state']
    return graph.process_state(after, state, {}), round_metrics.zipped(metrics)

  return run


def _build(
  graph: phase_graph.Graph,
  received: phase_graph.Graph,
  name: str,
  clip_norms: Mapping[str, float],
) -> ExchangeParts:
  step = graph.steps[name]
  to_sums = _build_to_sums(step, clip_norms)
  known_type = tff.FederatedType(
    tff.types.to_type(collections.OrderedDict(step.known_types)), tff.SERVER
  )

  @tff.federated_computation(received.state_type)
  def broadcast(state):
    return step.shared(received.server_state(state))

  def partial_sums(values, states, data):
    known = {name: tff.federated_broadcast(values[name]) for name in step.known_types}
    sent, states = step.on_clients(known, states, graph.read(data))
    sums = tff.federated_sum(tff.federated_map(to_sums, sent))
    return Partial(sums, states)

  data_type = tff.FederatedType(graph.cohort.data_type, tff.CLIENTS)
  if step.states_type is None:

    @tff.federated_computation(known_type, data_type)
    def partial(values, data):
      nothing = tff.federated_value((), tff.SERVER)
      return partial_sums(values, None, data)._replace(client_states=nothing)
  else:
    states_type = tff.FederatedType(step.states_type, tff.CLIENTS)

    @tff.federated_computation(known_type, states_type, data_type)
    def partial(values, states, data):
      return partial_sums(values, states, data)

  return ExchangeParts(broadcast, partial, _build_receive(received, name, to_sums))


def _build_to_sums(step, clip_norms: Mapping[str, float]) -> tff.Computation:
  """Returns the computation of a payload's partial sums."""
  exchange_spec = client_functions.ExchangeSpec(step.exchange.sent, counted=True)

  @tff.tensorflow.computation(step.sent_type)
  def to_sums(sent):
    sums = collections.OrderedDict(sent)
    for name, kind in step.exchange.sent.items():
      if isinstance(kind, combine.Total):
        continue
      sums[name] = _times(sent['weight'], sent[name])
      norm = exchange_spec.clip_norm(name, clip_norms)
      if norm is not None:
        sums[name] = clients.clip(sums[name], norm)
    return sums

  return to_sums


def _build_receive(
  received: phase_graph.Graph, name: str, to_sums: tff.Computation
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


def _packs_of(aggregation: aggregations.Aggregation) -> aggregations.Packs:
  """Returns how packs, and so parts, are aggregated; refuses what cannot take sums."""
  if aggregation.packs is None:
    raise ValueError(
      'The aggregation has no `packs`, because it acts on each client; it must be '
      'one that accepts sums over clients.'
    )
  if aggregation.packs.unmasked:
    raise ValueError(
      'The aggregation masks what each client sends, but sums of parts have no '
      'masks; it must add its noise at the server, or add none.'
    )
  return aggregation.packs
