"""An algorithm as one computation a phase, which deployment forms hold.

TFF's deployment forms (`MapReduceForm`, `DistributeAggregateForm`) hold one way to the
clients and one way back. They cannot hold DCCO's round, where what clients are told
second depends on what came back first. Here each exchange is a computation by itself,
with what passes between them in the server's state. Run one after another on the same
clients, with the same data, they are one round of the process.
"""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.federated import builder
from tff_ssl.federated import phases
from tff_ssl.federated import placed


class SinglePhases(NamedTuple):
  """The exchanges of a round, each a computation of one aggregation.

  Attributes:
    initialize: () -> state@SERVER.
    exchanges: By name, in order: (state@SERVER, data@CLIENTS) -> (state, metrics). The
      last one's metrics are those of the round; its bytes are those of all, each of
      which tells clients again what earlier ones have told.
    get_model_weights: state -> `tff.learning.models.ModelWeights`.
  """

  initialize: tff.Computation
  exchanges: Mapping[str, tff.Computation]
  get_model_weights: tff.Computation


def build_single_phases(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> SinglePhases:
  """Builds the computations of an algorithm with stateless clients.

  Args:
    algorithm: As `describe` of the algorithm's module returns it.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets; or the
      `packs.PackSpec` of them.
    aggregation: What everything that leaves a client goes through; plain when None.

  Returns:
    The computations.

  Raises:
    ValueError: If clients keep a state, or the server has data: the forms have no place
      for them. And as `builder.build_learning_process`.
  """
  check_stateless(algorithm, 'a computation for each phase')
  graph = builder.Graph(algorithm, element_spec, aggregation, tells_again=True)
  return SinglePhases(
    graph.initialize,
    collections.OrderedDict((name, _build(graph, name)) for name in graph.steps),
    graph.get_model_weights,
  )


def check_stateless(algorithm: phases.Algorithm, form: str) -> None:
  """Raises ValueError if a form has no place for what an algorithm has.

  Args:
    algorithm: Any.
    form: What is to be built, for the message.
  """
  at_server = len(algorithm.exchanges) < len(algorithm.phases)
  if algorithm.is_stateful or at_server:
    what = 'data at the server' if at_server else 'clients that keep a state'
    raise ValueError(
      f'The algorithm has {what}; as {form} it must have exchanges with stateless '
      'clients alone.'
    )


def _build(graph: builder.Graph, name: str) -> tff.Computation:
  names = list(graph.steps)
  step, is_last = graph.steps[name], name == names[-1]

  @tff.federated_computation(
    graph.state_type, tff.FederatedType(graph.cohort.data_type, tff.CLIENTS)
  )
  def run(state, data):
    current = graph.server_state(state)
    told: dict[str, tff.Value] = {}
    for earlier in names[: names.index(name) + 1]:
      graph.steps[earlier].tell(current, told)
    sent, _ = step.on_clients(told, None, graph.read(data))
    combined = step.combine(state.aggregators[name], sent)
    output = step.receive(current, combined.result)
    metrics: dict[str, Any] = {}
    placed.add_metrics(metrics, output, name, combined.measurements)
    after = graph.advanced(output['state']) if is_last else output['state']
    return (
      graph.process_state(after, state, {name: combined.state}),
      placed.zipped_metrics(metrics),
    )

  return run
