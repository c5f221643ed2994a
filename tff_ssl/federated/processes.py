"""Processes of clients that keep a state, and of a server that has data.

TFF's own `LearningProcess` (`builder`) has no place for either.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any, NamedTuple

import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.federated import builder
from tff_ssl.federated import phases
from tff_ssl.federated import placed

# `ClientState.kept`, as arrays -> numbers by name, None for a missing number.
Describe = Callable[[Any], Mapping[str, float | None]]
# (model weights, what each of some clients keeps) -> model weights.
Evaluated = Callable[[Any, Sequence[Any]], Any]


class StatefulOutput(NamedTuple):
  """The result of a round of a `StatefulProcess`.

  Attributes:
    state: The server's.
    client_states: Of the clients of the round, after it, in any order.
    metrics: Numbers by name.
  """

  state: Any
  client_states: Any
  metrics: Any


@dataclasses.dataclass(frozen=True)
class StatefulProcess:
  """An algorithm whose clients keep a state between their participations.

  `next` takes and returns a state for each client. A state holds the client's index,
  because TFF may return clients in another order. States stay on the devices: they are
  not communicated.

  Attributes:
    initialize: () -> server state, at the server.
    next: (server state, client states, client data) -> `StatefulOutput`. Each value of
      the client states is a `client_functions.ClientState`; in packs each is stacked
      (`packs.stack`), in the order of the pack's clients.
    get_model_weights: Server state -> `tff.learning.models.ModelWeights`.
    client_state_type: Of the state of one client; `client_functions.blank_state` makes
      from it the state of a client that has not taken part.
    evaluated: (model weights, what each of some clients keeps) -> the model weights
      that a simulation evaluates; None: the server's own.
    describe: Numbers that a simulation records of each client of a round, read from
      its state after the round; None: none. Elsewhere they stay on the device.
    graph: What it was built from, for `parts`; None: not known.
  """

  initialize: tff.Computation
  next: tff.Computation
  get_model_weights: tff.Computation
  client_state_type: tff.StructType
  evaluated: Evaluated | None = None
  describe: Describe | None = None
  graph: builder.Graph | None = None

  def __post_init__(self):
    signature = self.next.type_signature
    given, returned = signature.parameter, signature.result
    for name, before, after in (
      ('server state', self.initialize.type_signature.result, given[0]),
      ('server state', given[0], returned.state),
      ('client states', given[1], returned.client_states),
    ):
      if not before.is_equivalent_to(after):
        raise ValueError(
          f'The type of the {name} of `next` is {after} after {before}; it must stay '
          'the same.'
        )


class ServerDataProcess(NamedTuple):
  """An algorithm whose server has labelled data of its own.

  Attributes:
    initialize: () -> state@SERVER.
    next: (state@SERVER, labelled data@SERVER, data@CLIENTS) -> a
      `tff.learning.templates.LearningProcessOutput` of state and metrics@SERVER; the
      last argument is missing if there are no clients. The two sources of data never
      meet.
    get_model_weights: state -> `tff.learning.models.ModelWeights`: the model that is
      the round's result; for FedSup, the student.
    get_classifier_weights: state -> parameters by name: those of an encoder and a head
      that classify together, by the name of the model ('student', 'teacher').
    graph: What it was built from, for `parts`; None: not known.
  """

  initialize: tff.Computation
  next: tff.Computation
  get_model_weights: tff.Computation
  get_classifier_weights: tff.Computation
  graph: builder.Graph | None = None


class Paired:
  """A `ServerDataProcess` whose `next` takes both sides' data as one argument.

  algorithm = processes.Paired(fedsup.build_fedsup(...))
  state = algorithm.next(state, (labelled, [client_1, client_2])).state
  """

  def __init__(self, process: ServerDataProcess):
    """Wraps a process."""
    self._process = process
    self.get_model_weights = process.get_model_weights
    self.get_classifier_weights = process.get_classifier_weights

  def initialize(self) -> Any:
    """Returns the initial state."""
    return self._process.initialize()

  def next(self, state: Any, data: tuple[Any, ...]) -> Any:
    """Runs one round.

    Args:
      state: The state before.
      data: The server's data set and the list of the clients'; only the first if there
        are no clients.
    """
    return self._process.next(state, *data)


def build_stateful_process(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregations.Aggregation | None = None,
  describe: Describe | None = None,
  evaluated: Evaluated | None = None,
) -> StatefulProcess:
  """Builds an algorithm whose clients keep a state.

  Args:
    algorithm: See `builder.build_learning_process`, also for the two that follow.
    element_spec: Of one example.
    aggregation: Applied to everything that leaves a client; plain when None.
    describe: See `StatefulProcess`, also for `evaluated`.
    evaluated: Of a simulation.
  """
  graph = builder.Graph(algorithm, element_spec, aggregation)

  @tff.federated_computation(
    graph.state_type,
    tff.FederatedType(graph.states_type, tff.CLIENTS),
    tff.FederatedType(graph.cohort.data_type, tff.CLIENTS),
  )
  def next_fn(state, states, data):
    done = graph.run(state, data, states=states)
    return StatefulOutput(done.state, done.client_states, done.metrics)

  return StatefulProcess(
    graph.initialize,
    next_fn,
    graph.get_model_weights,
    graph.client_state_type,
    evaluated,
    describe,
    graph,
  )


def build_server_data_process(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregations.Aggregation | None,
  get_classifiers: Callable[[phases.ServerState], Mapping[str, Any]],
) -> ServerDataProcess:
  """Builds an algorithm whose server has data.

  Args:
    algorithm: See `builder.build_learning_process`, also for the two that follow. At
      least one of its phases is a `phases.AtServer`, and all of these train on the same
      data. There may be no exchange.
    element_spec: Of one example of the clients; None if there are no clients.
    aggregation: Applied to everything that leaves a client; plain when None.
    get_classifiers: State -> parameters of an encoder and a head that classify
      together, by the name of the model.
  """
  graph = builder.Graph(algorithm, element_spec, aggregation)
  at_server = next(p for p in algorithm.phases if isinstance(p, phases.AtServer))
  server_data = tff.FederatedType(
    tff.SequenceType(tff.types.tensorflow_to_type(at_server.element_spec)), tff.SERVER
  )
  if algorithm.exchanges:

    @tff.federated_computation(
      graph.state_type,
      server_data,
      tff.FederatedType(graph.cohort.data_type, tff.CLIENTS),
    )
    def next_fn(state, labelled, data):
      done = graph.run(state, data, server_data=labelled)
      return tff.learning.templates.LearningProcessOutput(done.state, done.metrics)
  else:

    @tff.federated_computation(graph.state_type, server_data)
    def next_fn(state, labelled):
      done = graph.run(state, None, server_data=labelled)
      return tff.learning.templates.LearningProcessOutput(done.state, done.metrics)

  @tff.tensorflow.computation(graph.state_type.member)
  def get_classifier_weights(state):
    return get_classifiers(placed.server_state(state))

  return ServerDataProcess(
    graph.initialize,
    next_fn,
    graph.get_model_weights,
    get_classifier_weights,
    graph,
  )
