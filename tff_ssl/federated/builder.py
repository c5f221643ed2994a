"""Builds TFF computations from the phases of any algorithm.

`build_learning_process` makes a process whose `next` runs a whole round. It is built
from a `Graph`. Each exchange of the graph is a `Step`; their types follow from one
another. Processes with client states or data at the server are in `processes`, one
computation per phase in `single`, parts for hosts in `parts`.
"""

import collections
from collections.abc import Mapping
from typing import Any

import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.aggregators import communication
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import cohorts
from tff_ssl.federated import grouping
from tff_ssl.federated import phases
from tff_ssl.federated import placed
from tff_ssl.federated import releases
from tff_ssl.federated import server
from tff_ssl.federated import traffic


def build_learning_process(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregations.Aggregation | None = None,
) -> tff.learning.templates.LearningProcess:
  """Builds an algorithm with stateless clients.

  Args:
    algorithm: Its phases, all of them exchanges.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets; or the
      `packs.PackSpec` of them.
    aggregation: Applied to everything that leaves a client; plain when None.

  Returns:
    The process. Its metrics are in groups, `client_work` with counts and bytes.

  Raises:
    ValueError: If the elements are not single examples with an `example_id` and the
      numbers that the algorithm asks for, or the aggregation does not fit it.
  """
  graph = Graph(algorithm, element_spec, aggregation)

  @tff.federated_computation(
    graph.state_type, tff.FederatedType(graph.cohort.data_type, tff.CLIENTS)
  )
  def next_fn(state, data):
    done = graph.run(state, data)
    return tff.learning.templates.LearningProcessOutput(done.state, done.metrics)

  return placed.Process(graph, next_fn)


class Graph:
  """The computations of an algorithm's phases, and their types.

  Attributes:
    algorithm: What is built, as given; so are `element_spec`, `tells_again` and, once
      settled (`releases.settled`), `aggregation`.
    cohort: How clients are laid out; None if there are none.
    at_server: The phases at the server, by name: (state, data) -> `state`, `metrics`.
    steps: The exchanges of a round, by name, in order.
    initialize: () -> `placed.ProcessState` at the server.
    state_type: Its type.
    weights_type: Of the model weights in it.
    get_model_weights: State, unplaced -> model weights.
  """

  def __init__(
    self,
    algorithm: phases.Algorithm,
    element_spec: Any,
    aggregation: aggregations.Aggregation | None,
    tells_again: bool = False,
  ):
    """Builds all computations.

    Args:
      algorithm: See `build_learning_process`, also for the two that follow.
      element_spec: Of the clients.
      aggregation: Of what leaves them.
      tells_again: Whether each exchange is a computation by itself, which broadcasts
        again what earlier ones have broadcast; for the count of bytes.

    Raises:
      ValueError: See `build_learning_process`.
    """
    self.algorithm, self.element_spec = algorithm, element_spec
    self.aggregation = aggregation = releases.settled(aggregation, algorithm)
    self.tells_again = tells_again
    self.cohort: Any = None
    if algorithm.exchanges:
      self.cohort = cohorts.of_algorithm(algorithm, element_spec, aggregation)
    initial = tff.tensorflow.computation(algorithm.initial)
    self._server_type = initial.type_signature.result
    self.weights_type = self._server_type.global_model_weights
    self._advance = tff.tensorflow.computation(
      server.next_number_and_seed, self._server_type.round, self._server_type.round_seed
    )
    self.at_server: dict[str, tff.Computation] = {}
    self.steps: dict[str, Step] = {}
    for phase in algorithm.phases:
      if isinstance(phase, phases.AtServer):
        self.at_server[phase.name] = self._build_at_server(phase)
      else:
        is_last = phase is algorithm.exchanges[-1]
        self.steps[phase.name] = Step(
          phase, self.cohort, self._server_type, self.steps, is_last, tells_again
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
    data: tff.Value | None,
    states: tff.Value | None = None,
    server_data: tff.Value | None = None,
  ) -> placed.Done:
    """Runs all phases of a round, inside a federated computation.

    Args:
      state: `placed.ProcessState` at the server.
      data: On the clients.
      states: Of the clients, if they keep some.
      server_data: At the server, if it has some.
    """
    examples = None if data is None else self.read(data)
    current = self.server_state(state)
    told: dict[str, tff.Value] = {}
    metrics: dict[str, Any] = {}
    aggregators: dict[str, tff.Value] = {}
    for phase in self.algorithm.phases:
      if isinstance(phase, phases.AtServer):
        output = tff.federated_map(self.at_server[phase.name], (current, server_data))
        placed.add_metrics(metrics, output)
      else:
        step = self.steps[phase.name]
        step.tell(current, told)
        sent, states = step.on_clients(told, states, examples)
        combined = step.combine(state.aggregators[phase.name], sent)
        aggregators[phase.name] = combined.state
        output = step.receive(current, combined.result)
        placed.add_metrics(metrics, output, phase.name, combined.measurements)
      current = output['state']
    return placed.Done(
      self.process_state(self.advanced(current), state, aggregators),
      placed.zipped_metrics(metrics),
      states,
    )

  def read(self, data: tff.Value) -> tff.Value:
    """Returns the examples of each value of clients."""
    return tff.federated_map(self.cohort.read, data)

  def server_state(self, state: tff.Value) -> tff.Value:
    """Returns the `phases.ServerState` of a process's state."""
    return tff.federated_zip(placed.server_state(state))

  def advanced(self, current: tff.Value) -> tff.Value:
    """Returns the state with the number and the seed of the next round."""
    number, seed = tff.federated_map(self._advance, (current.round, current.round_seed))
    return placed.server_state(current)._replace(round=number, round_seed=seed)

  def process_state(
    self, current: tff.Value, before: tff.Value, aggregators: Mapping[str, tff.Value]
  ) -> tff.Value:
    """Returns the process's state; aggregators that are not given are unchanged."""
    new = collections.OrderedDict(
      (name, aggregators.get(name, before.aggregators[name])) for name in self.steps
    )
    return placed.process_state(current, new)

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
      return placed.process_state(tff.federated_eval(initial, tff.SERVER), aggregators)

    self.initialize = initialize
    self.state_type = initialize.type_signature.result

    # Without TensorFlow, which would name each tensor of the state.
    @tff.federated_computation(self.state_type.member)
    def get_model_weights(state):
      return state.global_model_weights

    self.get_model_weights = get_model_weights


class Step:
  """One exchange of an algorithm as TFF computations.

  Attributes:
    exchange: What is built.
    told_types: Type of each value that this exchange broadcasts, by name.
    sent_type: Of what one value of clients sends.
    states_type: Of the states of one value of clients; None if they keep none.
    client_state_type: Of the state of one client, as above.
    aggregators: By name, the aggregation of each value that is combined.
    bytes_up: By name, what one client sends in this exchange.
  """

  def __init__(
    self,
    exchange: phases.Exchange,
    cohort: cohorts.Cohort,
    server_type: tff.StructType,
    earlier: 'Mapping[str, Step]',
    is_last: bool,
    tells_again: bool,
  ):
    """Builds the computations.

    Args:
      exchange: What is built.
      cohort: How clients are laid out.
      server_type: Of a `phases.ServerState`.
      earlier: The exchanges of the round before this one.
      is_last: Whether it is the round's last, in which clients are counted.
      tells_again: Whether what earlier exchanges have broadcast is broadcast again; for
        the count of bytes.

    Raises:
      ValueError: If it broadcasts what an earlier one has broadcast, or sends other
        names than it combines.
    """
    self.exchange = exchange
    self._server_type = server_type
    # A function of one argument, whatever others `broadcast` has.
    self._share = tff.tensorflow.computation(
      lambda state: exchange.broadcast(state), server_type
    )
    self.told_types: Mapping[str, tff.Type] = collections.OrderedDict(
      tff.structure.iter_elements(self._share.type_signature.result)
    )
    self._told = self._all_told(earlier)
    self._build_client(cohort, is_last)
    through = cohort.aggregation
    self.aggregators: Mapping[str, Any] = collections.OrderedDict(
      (name, kind.create(through, self.sent_type[name]))
      for name, kind in exchange.sent.items()
      if not isinstance(kind, combine.Local)
    )
    self.bytes_up: dict[str, int] = {
      name: kind.num_bytes(self.sent_type[name])
      for name, kind in [*exchange.sent.items(), ('weight', combine.UPDATE)]
    }
    if is_last:
      counts_type = self.sent_type[phases.COUNTS]
      self.aggregators[phases.COUNTS] = through.counts.create(counts_type)
      self.bytes_up[phases.COUNTS] = communication.num_bytes(counts_type)
    self._to_group_weight = grouping.build_to_weight(exchange.sent, self.sent_type)
    sizes = traffic.sizes([*earlier.values(), self], tells_again)
    self._receive = self._build_receive(sizes)

  def tell(self, current: tff.Value, told: dict[str, tff.Value]) -> None:
    """Broadcasts the exchange's values, and adds them to what clients know."""
    shared = tff.federated_map(self._share, current)
    for name in self.told_types:
      told[name] = tff.federated_broadcast(shared[name])

  def on_clients(
    self,
    told: Mapping[str, tff.Value],
    states: tff.Value | None,
    examples: tff.Value,
  ) -> tuple[tff.Value, tff.Value | None]:
    """Runs the clients' function; returns what is sent, and the states afterwards."""
    shared = collections.OrderedDict(told)
    if self.states_type is None:
      return tff.federated_map(self._client, (shared, examples)), states
    output = tff.federated_map(self._client, (shared, states, examples))
    return output['sent'], output['states']

  def combine(
    self, state: tff.Value, sent: tff.Value
  ) -> tff.templates.MeasuredProcessOutput:
    """Combines what the clients send, each value by its kind."""
    outputs: dict[str, tff.templates.MeasuredProcessOutput] = {}
    for name, process in self.aggregators.items():
      kind = self.exchange.sent.get(name, combine.TOTAL)
      if isinstance(kind, combine.Total):
        outputs[name] = process.next(state[name], sent[name])
        continue
      weight = sent['weight']
      if isinstance(kind, combine.GroupMean):
        weight = tff.federated_map(
          self._to_group_weight, (weight, sent[phases.COUNTS], sent[kind.by])
        )
      outputs[name] = process.next(state[name], sent[name], weight)

    def zipped(field):
      return tff.federated_zip(
        collections.OrderedDict(
          (name, getattr(output, field)) for name, output in outputs.items()
        )
      )

    return tff.templates.MeasuredProcessOutput(
      zipped('state'), zipped('result'), zipped('measurements')
    )

  def receive(self, current: tff.Value, results: tff.Value) -> tff.Value:
    """Returns `state` and `metrics` after the exchange, from what was combined."""
    return tff.federated_map(self._receive, (current, results))

  def _all_told(self, earlier: 'Mapping[str, Step]') -> dict[str, tff.Type]:
    """Returns the types of all that clients know in this exchange."""
    told: dict[str, tff.Type] = {}
    for step in earlier.values():
      told.update(step.told_types)
    if twice := told.keys() & self.told_types.keys():
      raise ValueError(
        f'The exchange {self.exchange.name!r} sends clients {sorted(twice)}, which '
        'they know from an earlier one; it must use other names.'
      )
    return {**told, **self.told_types}

  def _build_client(self, cohort: cohorts.Cohort, is_last: bool) -> None:
    shared_type = tff.types.to_type(collections.OrderedDict(self._told))
    function, noised = self.exchange.client, cohort.aggregation.noised
    protocol = client_functions.Protocol(self.exchange.sent, is_last, noised)
    self.client_state_type = self.states_type = None
    if isinstance(function, client_functions.ClientFunction):
      self._client = cohort.map(function, protocol, shared_type)
      self.sent_type = self._client.type_signature.result
      return
    self.client_state_type = client_functions.state_type(function, shared_type)
    self._client = cohort.map_with_states(
      function, protocol, shared_type, self.client_state_type
    )
    self.states_type = self._client.type_signature.parameter[1]
    self.sent_type = self._client.type_signature.result['sent']

  def _build_receive(self, sizes: phases.Bytes) -> tff.Computation:
    exchange = self.exchange
    result_type = collections.OrderedDict(
      (name, process.next.type_signature.result.result.member)
      for name, process in self.aggregators.items()
    )

    @tff.tensorflow.computation(self._server_type, tff.types.to_type(result_type))
    def receive(before, results):
      arrived = collections.OrderedDict(
        (name, exchange.sent.get(name, combine.TOTAL).arrived(value))
        for name, value in results.items()
      )
      state, metrics = exchange.receive(before, arrived)
      groups = collections.OrderedDict(metrics)
      if phases.COUNTS in arrived:
        work = groups.get(phases.CLIENT_WORK, {})
        work = clients.with_counts(work, arrived[phases.COUNTS])
        count = exchange.traffic or traffic.all_of_it
        work.update(count(before, arrived, sizes))
        groups[phases.CLIENT_WORK] = work
      return collections.OrderedDict(state=state, metrics=groups)

    return receive
