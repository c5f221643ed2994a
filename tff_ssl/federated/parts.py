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

`execution.partial_rounds` runs whole rounds of any process in this way. Parties that do
not trust whoever receives, such as sites, add the noise of a private round themselves:
`build_parts(graph, parties=3)`, with `aggregations.distributed`. Their sums are then
integers, to be added through a secure sum.
"""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.aggregators import skellam
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import phase_graph
from tff_ssl.federated import phases
from tff_ssl.federated import releases
from tff_ssl.federated import round_metrics
from tff_ssl.federated import single


class Partial(NamedTuple):
  """The partial sums of a part of the cohort, and its clients' states.

  Attributes:
    sums: Over its clients, by name: of weight times each mean, of weights, of totals.
      What has its share of noise is in quanta, int64 (`skellam.noised_quanta`).
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


def build_parts(graph: phase_graph.Graph, parties: int | None = None) -> Parts:
  """Builds the computations in parts from the graph of a process.

  Args:
    graph: The process's; states and byte counts are those of the process. Noise is
      added once, when the sums are received.
    parties: How many parts a round has, if each adds its share of the noise, so that
      who receives sees only noised totals; all must take part. Sums of parts must then
      be added up before they are received.

  Returns:
    The computations. Their rounds are those of the process, up to the order of
    floating-point sums, and noise.

  Raises:
    ValueError: If the aggregation must act on each client, as secure sums do, because
      only sums arrive here; or its noise cannot be added by parties.
  """
  aggregation = graph.aggregation
  of_packs = _packs_of(aggregation, parties)
  through = None if graph.cohort is None else graph.cohort.aggregation
  packed = through is of_packs.aggregation
  of_parts = _of_parts(of_packs, parties)
  received = graph
  if through is not of_parts and aggregation.updates is not of_parts.updates:
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
        _build(graph, received, phase.name, of_packs, packed, parties)
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
  of_packs: aggregations.Packs,
  packed: bool,
  parties: int | None,
) -> ExchangeParts:
  step = graph.steps[name]
  # Inside a pack each client has been clipped.
  to_sums = _build_to_sums(step, {} if packed else of_packs.clip_norms)
  noise = None
  if parties is not None:
    sums_type = to_sums.type_signature.result
    noise = _build_noise(
      graph.aggregation, of_packs.clip_norms, step, sums_type, parties
    )
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
    return Partial(sums if noise is None else tff.federated_map(noise, sums), states)

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

  receive = _build_receive(
    received, name, to_sums.type_signature.result, noise, of_packs.clip_norms
  )
  return ExchangeParts(broadcast, partial, receive)


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


def _build_noise(
  aggregation: aggregations.Aggregation,
  norms: Mapping[str, float],
  step: Any,
  sums_type: tff.StructType,
  parties: int,
) -> tff.Computation:
  """Returns the computation of a party's sums with its share of the noise."""

  @tff.tensorflow.computation(sums_type)
  def noised(sums):
    sums = collections.OrderedDict(sums)
    for name, kind in step.exchange.sent.items():
      if not releases.is_released(kind, aggregation):
        # Nothing of it leaves, not even in a total.
        sums[name] = tf.nest.map_structure(
          lambda x: tf.zeros_like(x, tf.int64), sums[name]
        )
      elif not isinstance(kind, combine.Total):
        multiplier, norm = (
          aggregation.multipliers[kind.clipped_as],
          norms[kind.clipped_as],
        )
        sums[name] = skellam.noised_quanta(sums[name], multiplier, norm, parties)
    return sums

  return noised


def _build_receive(
  received: phase_graph.Graph,
  name: str,
  sums_type: tff.StructType,
  noise: tff.Computation | None,
  norms: Mapping[str, float],
) -> tff.Computation:
  kinds = received.steps[name].exchange.sent
  specs = tff.types.structure_from_tensor_type_tree(_to_spec, sums_type)

  @tff.tensorflow.computation(
    sums_type if noise is None else noise.type_signature.result
  )
  def to_sent(sums):
    sent = collections.OrderedDict(sums)
    share = tf.math.divide_no_nan(1.0, sums['weight'])
    for field, kind in kinds.items():
      if isinstance(kind, combine.Total):
        continue
      if noise is not None:
        # What does not leave the clients has no norm, and is 0.
        clip = norms.get(kind.clipped_as or '', 0.0)
        sent[field] = skellam.from_quanta(sent[field], clip, specs[field])
      sent[field] = _times(share, sent[field])
    return sent

  @tff.federated_computation(
    received.state_type,
    tff.FederatedType(to_sent.type_signature.parameter, tff.CLIENTS),
  )
  def receive(state, sums):
    return single.receive(received, name, state, tff.federated_map(to_sent, sums))

  return receive


def _to_spec(tensor_type: tff.TensorType) -> tf.TensorSpec:
  return tf.TensorSpec(tensor_type.shape, tensor_type.dtype)


def _times(factor: tf.Tensor, value: Any) -> Any:
  return tf.nest.map_structure(lambda x: x * tf.cast(factor, x.dtype), value)


def _packs_of(
  aggregation: aggregations.Aggregation, parties: int | None
) -> aggregations.Packs:
  """Returns how packs, and so parts, are aggregated; refuses what cannot take sums."""
  if aggregation.packs is None:
    raise ValueError(
      'The aggregation has no `packs`, because it acts on each client; it must be '
      'one that accepts sums over clients.'
    )
  if aggregation.packs.unmasked and parties is None:
    raise ValueError(
      'The aggregation masks what each client sends, but sums of parts have no '
      'masks; it must add its noise at the server, or add none.'
    )
  return aggregation.packs


def _of_parts(
  of_packs: aggregations.Packs, parties: int | None
) -> aggregations.Aggregation:
  """Returns how parts are combined: as packs of clients are."""
  if parties is None:
    return of_packs.aggregation
  if of_packs.noised_before is None:
    raise ValueError(
      f'parties is {parties}; it must be None, because the aggregation is not '
      '`distributed`.'
    )
  return of_packs.noised_before
