"""An algorithm as one computation a phase, which converts to deployment forms.

TFF's deployment forms (`MapReduceForm`, `DistributeAggregateForm`) hold one message to
the clients and one back. They cannot hold DCCO's round, in which the second broadcast
depends on what came back from the first. Here each exchange is a computation by itself,
and the server's state carries what passes between exchanges. Run one after another on
the same clients, with the same data, the computations are one round of the process.
"""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.federated import phase_graph
from tff_ssl.federated import phases
from tff_ssl.federated import round_metrics


class SinglePhases(NamedTuple):
  """The exchanges of a round, each a computation of one aggregation.

  Attributes:
    initialize: () -> state@SERVER.
    exchanges: By name, in order: (state@SERVER, data@CLIENTS) -> (state, metrics). The
      last one's metrics are those of the round. Its bytes are those of all exchanges,
      each of which broadcasts again what earlier ones have broadcast.
    get_model_weights: state -> `tff.learning.models.ModelWeights`.
  """

  initialize: tff.Computation
  exchanges: Mapping[str, tff.Computation]
  get_model_weights: tff.Computation


def build_single_phases(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregations.Aggregation | None = None,
) -> SinglePhases:
  """Builds the computations of an algorithm with stateless clients.

  Args:
    algorithm: As a function of `algorithms` returns it.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets; or the
      `packs.PackSpec` of them.
    aggregation: Applied to everything that leaves a client; plain when None.

  Returns:
    The computations.

  Raises:
    ValueError: If clients keep a state, or the server has data: the forms have no place
      for them. Also as in `processes.build`.
  """
  _check_stateless(algorithm)
  graph = phase_graph.Graph(algorithm, element_spec, aggregation, rebroadcasts=True)
  return SinglePhases(
    graph.initialize,
    collections.OrderedDict((name, _build(graph, name)) for name in graph.steps),
    graph.get_model_weights,
  )


def _check_stateless(algorithm: phases.Algorithm) -> None:
  at_server = len(algorithm.exchanges) < len(algorithm.phases)
  if algorithm.is_stateful or at_server:
    what = 'data at the server' if at_server else 'clients that keep a state'
    raise ValueError(
      f'The algorithm has {what}; to be one computation for each phase, it must have '
      'only exchanges with stateless clients.'
    )


def _build(graph: phase_graph.Graph, name: str) -> tff.Computation:
  step = graph.steps[name]

  @tff.federated_computation(
    graph.state_type, tff.FederatedType(graph.cohort.data_type, tff.CLIENTS)
  )
  def run(state, data):
    known = broadcast(graph, name, state)
    sent, _ = step.on_clients(known, None, graph.read(data))
    return receive(graph, name, state, sent)

  return run


def broadcast(
  graph: phase_graph.Graph, name: str, state: tff.Value
) -> dict[str, tff.Value]:
  """Broadcasts all that an exchange by itself needs, inside a computation.

  Args:
    graph: Graph of the algorithm.
    name: Name of the exchange; the values of earlier ones are broadcast too.
    state: `phase_graph.ProcessState` at the server.

  Returns:
    What the clients know, by name.
  """
  current = graph.server_state(state)
  known: dict[str, tff.Value] = {}
  for step in graph.steps.values():
    step.broadcast(current, known)
    if step.exchange.name == name:
      break
  return known


def receive(
  graph: phase_graph.Graph, name: str, state: tff.Value, sent: tff.Value
) -> tuple[tff.Value, tff.Value]:
  """Ends an exchange by itself, inside a computation.

  Args:
    graph: Graph of the algorithm.
    name: Name of the exchange; after the last one the next round begins.
    state: `phase_graph.ProcessState` at the server.
    sent: On the clients.

  Returns:
    The state after, and metrics by group, both at the server.
  """
  step, is_last = graph.steps[name], name == graph.algorithm.phases[-1].name
  combined = step.combine(state.aggregators[name], sent)
  output = step.receive(graph.server_state(state), combined.result)
  metrics: dict[str, Any] = {}
  round_metrics.add(metrics, output, name, combined.measurements)
  after = graph.advanced(output['state']) if is_last else output['state']
  return (
    graph.process_state(after, state, {name: combined.state}),
    round_metrics.zipped(metrics),
  )
