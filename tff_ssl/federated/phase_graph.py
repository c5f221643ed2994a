"""The phases of any algorithm as TFF computations, and the state of a process.

Each exchange of a `Graph` is a `steps.Step`; their types follow from one another.
`processes` makes whole rounds of a graph, `single` one computation per phase, `parts`
what several machines compute.
"""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.federated import clients
from tff_ssl.federated import noise
from tff_ssl.federated import phases
from tff_ssl.federated import round_metrics
from tff_ssl.federated import server
from tff_ssl.federated import steps


class ProcessState(NamedTuple):
  """State of a process between rounds: `phases.ServerState` and aggregators' states."""

  global_model_weights: Any
  optimizer: Any
  extra: Any
  round: Any
  round_seed: Any
  aggregators: Any


class RoundResult(NamedTuple):
  """The results of a round.

  Attributes:
    state: `ProcessState` at the server.
    metrics: By group, at the server.
    client_states: On the clients; None if they keep none.
  """

  state: tff.Value
  metrics: tff.Value
  client_states: tff.Value | None


class Graph:
  """The computations of an algorithm's phases, and their types.

  Attributes:
    algorithm: What is built, as given but for what `noise.divide` changes; so are
      `aggregation`, `element_spec` and `rebroadcasts`.
    cohort: How clients are laid out; None if there are none.
    at_server: The phases at the server, by name: (state, data) -> `state`, `metrics`.
    steps: The exchanges of a round, by name, in order.
    initialize: () -> `ProcessState` at the server.
    state_type: Its type.
    weights_type: Type of the model weights in it.
    get_model_weights: State, unplaced -> model weights.
  """

  def __init__(
    self,
    algorithm: phases.Algorithm,
    element_spec: Any,
    aggregation: aggregations.Aggregation | None,
    rebroadcasts: bool = False,
  ):
    """Builds all computations.

    Args:
      algorithm: See `processes.build`, also for the two that follow.
      element_spec: Type of the clients' examples.
      aggregation: Aggregation of what leaves them.
      rebroadcasts: Each exchange is a computation of its own and repeats earlier
        broadcasts; affects byte counts only.

    Raises:
      ValueError: See `processes.build`.
    """
    algorithm, settled = noise.divide(algorithm, element_spec, aggregation)
    self.algorithm, self.element_spec = algorithm, element_spec
    self.aggregation = settled
    self.rebroadcasts = rebroadcasts
    self.cohort: Any = None
    if algorithm.exchanges:
      self.cohort = steps.of_algorithm(algorithm, element_spec, settled)
    initial = tff.tensorflow.computation(algorithm.initial)
    self._server_type = initial.type_signature.result
    self.weights_type = self._server_type.global_model_weights
    self._advance = tff.tensorflow.computation(
      server.next_number_and_seed, self._server_type.round, self._server_type.round_seed
    )
    self.at_server: dict[str, tff.Computation] = {}
    self.steps: dict[str, steps.Step] = {}
    for phase in algorithm.phases:
      if isinstance(phase, phases.AtServer):
        self.at_server[phase.name] = self._build_at_server(phase)
      else:
        is_last = phase is algorithm.exchanges[-1]
        self.steps[phase.name] = steps.Step(
          phase, self.cohort, self._server_type, self.steps, is_last, rebroadcasts
        )
    self._build_state(initial)

  @property
  def client_state_type(self) -> tff.StructType | None:
    """The type of the state of one client; None if clients keep none."""
    types = (step.client_state_type for step in self.steps.values())
    return next((one for one in types if one is not None), None)

  @property
  def states_type(self) -> tff.StructType | None:
    """The type of the states of one value of clients."""
    types = (step.states_type for step in self.steps.values())
    return next((value for value in types if value is not None), None)

  def run(
    self,
    state: tff.Value,
    server_data: tff.Value | None = None,
    states: tff.Value | None = None,
    data: tff.Value | None = None,
  ) -> RoundResult:
    """Runs all phases of a round, inside a federated computation.

    Args:
      state: `ProcessState` at the server.
      server_data: At the server, if it has some.
      states: Those of the clients, if they keep some.
      data: On the clients, if there are some.
    """
    examples = None if data is None else self.read(data)
    current = self.server_state(state)
    known: dict[str, tff.Value] = {}
    metrics: dict[str, Any] = {}
    aggregators: dict[str, tff.Value] = {}
    for phase in self.algorithm.phases:
      if isinstance(phase, phases.AtServer):
        output = tff.federated_map(self.at_server[phase.name], (current, server_data))
        round_metrics.add(metrics, output)
      else:
        step = self.steps[phase.name]
        step.broadcast(current, known)
        sent, states = step.on_clients(known, states, examples)
        combined = step.combine(state.aggregators[phase.name], sent)
        aggregators[phase.name] = combined.state
        output = step.receive(current, combined.result)
        round_metrics.add(metrics, output, phase.name, combined.measurements)
      current = output['state']
    return RoundResult(
      self.process_state(self.advanced(current), state, aggregators),
      round_metrics.zipped(metrics),
      states,
    )

  def read(self, data: tff.Value) -> tff.Value:
    """Returns the examples of each value of clients."""
    return tff.federated_map(self.cohort.read, data)

  def server_state(self, state: tff.Value) -> tff.Value:
    """Returns the `phases.ServerState` of a process's state."""
    return tff.federated_zip(server_state(state))

  def advanced(self, current: tff.Value) -> tff.Value:
    """Returns the state with the number and the seed of the next round."""
    number, seed = tff.federated_map(self._advance, (current.round, current.round_seed))
    return server_state(current)._replace(round=number, round_seed=seed)

  def process_state(
    self, current: tff.Value, before: tff.Value, aggregators: Mapping[str, tff.Value]
  ) -> tff.Value:
    """Returns the process's state; aggregators that are not given are unchanged."""
    new = collections.OrderedDict(
      (name, aggregators.get(name, before.aggregators[name])) for name in self.steps
    )
    return process_state(current, new)

  def _build_at_server(self, phase: phases.AtServer) -> tff.Computation:
    clients.check_element(phase.element_spec)
    data_type = tff.SequenceType(tff.types.tensorflow_to_type(phase.element_spec))

    @tff.tensorflow.computation(self._server_type, data_type)
    def train(state, dataset):
      state, metrics = phase.train(state, clients.all_examples(dataset))
      return collections.OrderedDict(state=state, metrics=metrics)

    return train

  def _build_state(self, initial: tff.Computation) -> None:
    @tff.federated_computation
    def initialize():
      aggregators = collections.OrderedDict(
        (
          name,
          collections.OrderedDict(
            (sent, process.initialize()) for sent, process in step.aggregators.items()
          ),
        )
        for name, step in self.steps.items()
      )
      return process_state(tff.federated_eval(initial, tff.SERVER), aggregators)

    self.initialize = initialize
    self.state_type = initialize.type_signature.result

    # Without TensorFlow, which would name each tensor of the state.
    @tff.federated_computation(self.state_type.member)
    def get_model_weights(state):
      return state.global_model_weights

    self.get_model_weights = get_model_weights


def server_state(state: Any) -> phases.ServerState:
  """Returns the algorithm's part of a process's state."""
  return phases.ServerState(*(getattr(state, f) for f in phases.ServerState._fields))


def process_state(current: tff.Value, aggregators: Mapping[str, Any]) -> tff.Value:
  """Returns a process's state from the algorithm's part and the aggregators' states."""
  return tff.federated_zip(
    ProcessState(
      **server_state(current)._asdict(),
      aggregators=round_metrics.zip_nested(aggregators),
    )
  )
