"""An exchange with the clients of a round as TFF computations, and the bytes it moves.

On devices, and by default, each CLIENTS-placed value is one client's data set. In a
simulation each may be a pack of many clients (`packing`), which is many times cheaper
if clients are small. A `Step` asks a `Cohort` for its data type and gives it the
function of one client; no algorithm knows which layout is used. The states of stateful
clients are separate values, in the order of the clients' data.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.aggregators import communication
from tff_ssl.federated import client_computations
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_states
from tff_ssl.federated import clients
from tff_ssl.federated import packing
from tff_ssl.federated import packs
from tff_ssl.federated import phases
from tff_ssl.federated import update_lengths
from tff_ssl.objectives import selection


class Cohort(Protocol):
  """The clients of a round.

  Attributes:
    data_type: Type of one CLIENTS-placed value of `next`'s last argument.
    read: data -> what `map` takes. It runs once a round, because reading is a twelfth
      of the work of a client with one image.
    aggregation: Combines the results of `map`.
  """

  data_type: tff.SequenceType
  read: tff.Computation
  aggregation: aggregations.Aggregation

  def map(
    self,
    function: client_functions.ClientFunction | client_functions.StatefulFunction,
    exchange_spec: client_functions.ExchangeSpec,
    shared_type: tff.Type,
    state_type: tff.StructType | None = None,
  ) -> tff.Computation:
    """Returns (shared, [states,] read data) -> what is sent, with `weight` and totals.

    Args:
      function: What one client computes.
      exchange_spec: How the values that it returns are combined.
      shared_type: Type of its first argument, which has a `round`, int32, from 0, if
        clients keep a state.
      state_type: Type of the state of one client (`client_states.state_type`); None:
        clients keep none. With it the result is `sent` and `states` after; the type of
        a value's `states` follows from the layout.
    """


def of_algorithm(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregations.Aggregation,
) -> Cohort:
  """Builds the layout of an algorithm's clients; see `build_cohort`.

  Args:
    algorithm: What is built.
    element_spec: Type of one example.
    aggregation: Applied to everything that leaves a client.

  Raises:
    ValueError: If the elements are not examples that the algorithm can read, or the
      aggregation does not fit.
  """
  clients.check_numbers(element_spec, algorithm.client_numbers)
  clients.check_fields(element_spec, algorithm.objective)
  if algorithm.keeps_table:
    clients.check_not_noised(aggregation)
  return build_cohort(
    element_spec, aggregation, algorithm.objective, algorithm.is_stateful
  )


def build_cohort(
  element_spec: Any,
  aggregation: aggregations.Aggregation,
  objective: Any = None,
  keeps_order: bool = False,
) -> Cohort:
  """Builds the layout that the type of the client data asks for.

  Args:
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets, with at
      least `example_id`; or the `packs.PackSpec` of them.
    aggregation: Applied to everything that leaves a client.
    objective: What clients minimise; `read` leaves out what its loss leaves out.
    keeps_order: Whether the clients of a pack must stay in their order, as those must
      that keep a state.

  Returns:
    The cohort.

  Raises:
    ValueError: If the elements have no scalar `example_id`, as when they are batched,
      or packs are asked for and the aggregation needs to see each client.
  """
  if isinstance(element_spec, packs.PackSpec):
    return packing.PackedClients(element_spec, aggregation, objective, keeps_order)
  return SeparateClients(element_spec, aggregation, objective)


class SeparateClients:
  """One value, one client: its data set of examples."""

  def __init__(
    self,
    element_spec: Any,
    aggregation: aggregations.Aggregation,
    objective: Any = None,
  ):
    """Builds what reads a client's data; see `build_cohort`."""
    clients.check_element(element_spec)
    self.data_type = tff.SequenceType(tff.types.tensorflow_to_type(element_spec))
    self.aggregation = aggregation

    @tff.tensorflow.computation(self.data_type)
    def read(dataset):
      examples = clients.in_range(clients.all_examples(dataset), objective)
      return selection.select_examples(objective, examples)

    self.read = read

  def map(self, function, exchange_spec, shared_type, state_type=None):
    """See `Cohort`."""

    def run(shared, state, examples):
      result, state = client_functions.run_client(
        function, exchange_spec, shared, state, examples
      )
      return client_functions.as_sent(result), state

    examples_type = self.read.type_signature.result
    return client_computations.as_computation(
      run, shared_type, state_type, examples_type
    )


class Step:
  """One exchange of an algorithm as TFF computations.

  Attributes:
    exchange: What is built.
    broadcast_types: Type of each value that this exchange broadcasts, by name.
    known_types: Type of each value that clients know in it, with those of earlier ones.
    sent_type: Type of what one value of clients sends.
    states_type: Type of the states of one value of clients; None if they keep none.
    client_state_type: Type of the state of one client, as above.
    aggregators: By name, the aggregation of each value that is combined.
    bytes_up: By name, what one client sends in this exchange.
  """

  def __init__(
    self,
    exchange: phases.Exchange,
    cohort: Cohort,
    server_type: tff.StructType,
    earlier: 'Mapping[str, Step]',
    is_last: bool,
    rebroadcasts: bool,
  ):
    """Builds the computations.

    Args:
      exchange: What is built.
      cohort: How clients are laid out.
      server_type: Type of a `phases.ServerState`.
      earlier: The exchanges of the round before this one.
      is_last: Whether it is the round's last, in which clients are counted.
      rebroadcasts: Whether earlier broadcasts are repeated; affects byte counts only.

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
    self.broadcast_types: Mapping[str, tff.Type] = collections.OrderedDict(
      tff.structure.iter_elements(self._share.type_signature.result)
    )
    self.known_types = self._types_known(earlier)
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
    for name in (update_lengths.LENGTHS, phases.COUNTS):
      if name in tff.structure.name_list(self.sent_type):
        self.aggregators[name] = through.counts.create(self.sent_type[name])
        self.bytes_up[name] = communication.num_bytes(self.sent_type[name])
    self._to_weights = {
      name: _build_to_weight(kind, self.sent_type)
      for name, kind in exchange.sent.items()
      if kind.weighed_by
    }
    sizes = sizes_of([*earlier.values(), self], rebroadcasts)
    self._receive = self._build_receive(sizes)

  def shared(self, current: tff.Value) -> tff.Value:
    """Returns the values that the exchange broadcasts, at the server."""
    return tff.federated_map(self._share, current)

  def broadcast(self, current: tff.Value, known: dict[str, tff.Value]) -> None:
    """Broadcasts the exchange's values, and adds them to what clients know."""
    shared = self.shared(current)
    for name in self.broadcast_types:
      known[name] = tff.federated_broadcast(shared[name])

  def on_clients(
    self,
    known: Mapping[str, tff.Value],
    states: tff.Value | None,
    examples: tff.Value,
  ) -> tuple[tff.Value, tff.Value | None]:
    """Runs the clients' function; returns what is sent, and the states afterwards."""
    shared = collections.OrderedDict(known)
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
      if name in self._to_weights:
        others = [sent[other] for other in kind.weighed_by]
        weight = tff.federated_map(
          self._to_weights[name], (weight, sent[phases.COUNTS], *others)
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

  def _types_known(self, earlier: 'Mapping[str, Step]') -> dict[str, tff.Type]:
    """Returns the types of all that clients know in this exchange."""
    known: dict[str, tff.Type] = {}
    for step in earlier.values():
      known.update(step.broadcast_types)
    if twice := known.keys() & self.broadcast_types.keys():
      raise ValueError(
        f'The exchange {self.exchange.name!r} sends clients {sorted(twice)}, which '
        'they know from an earlier one; it must use other names.'
      )
    return {**known, **self.broadcast_types}

  def _build_client(self, cohort: Cohort, is_last: bool) -> None:
    shared_type = tff.types.to_type(collections.OrderedDict(self.known_types))
    function, noised = self.exchange.client, cohort.aggregation.noised
    spec = client_functions.ExchangeSpec(
      self.exchange.sent, is_last, noised, measures=not noised
    )
    self.client_state_type = self.states_type = None
    if isinstance(function, client_functions.StatefulFunction):
      self.client_state_type = client_states.state_type(function.first, shared_type)
    self._client = cohort.map(function, spec, shared_type, self.client_state_type)
    signature = self._client.type_signature
    self.sent_type = signature.result
    if self.client_state_type is not None:
      self.states_type = signature.parameter[1]
      self.sent_type = signature.result['sent']

  def _build_receive(self, sizes: phases.Bytes) -> tff.Computation:
    exchange = self.exchange
    result_type = collections.OrderedDict(
      (name, process.next.type_signature.result.result.member)
      for name, process in self.aggregators.items()
    )

    @tff.tensorflow.computation(self._server_type, tff.types.to_type(result_type))
    def receive(before, results):
      aggregated = collections.OrderedDict(
        (name, exchange.sent.get(name, combine.TOTAL).aggregated(value))
        for name, value in results.items()
      )
      lengths = aggregated.pop(update_lengths.LENGTHS, None)
      state, metrics = exchange.receive(before, aggregated)
      groups = collections.OrderedDict(metrics)
      work = collections.OrderedDict(groups.get(phases.CLIENT_WORK, {}))
      if lengths is not None:
        work[update_lengths.OUTLYING] = update_lengths.outlying(lengths)
      if phases.COUNTS in aggregated:
        work = clients.with_counts(work, aggregated[phases.COUNTS])
        count = exchange.traffic or full_traffic
        work.update(count(before, aggregated, sizes))
      if work:
        groups[phases.CLIENT_WORK] = work
      return collections.OrderedDict(state=state, metrics=groups)

    return receive


def _build_to_weight(kind: combine.Kind, sent_type: tff.StructType) -> tff.Computation:
  """Builds the function that computes a client's weight for a kind."""
  names = ('weight', phases.COUNTS, *kind.weighed_by)

  @tff.tensorflow.computation(tff.types.to_type([sent_type[name] for name in names]))
  def to_weight(sent):
    weight, counts, *values = sent
    return kind.weigh(weight, clients.counting(counts), *values)

  return to_weight


def sizes_of(steps: 'Sequence[Step]', rebroadcasts: bool) -> phases.Bytes:
  """Returns the bytes of one client in the first exchanges of a round.

  Args:
    steps: The exchanges, in order.
    rebroadcasts: Whether each broadcasts again what earlier ones have broadcast.
  """
  down = {}
  for place, step in enumerate(steps):
    times = len(steps) - place if rebroadcasts else 1
    for name, value in step.broadcast_types.items():
      down[name] = times * communication.num_bytes(value)
  up = {
    f'{step.exchange.name}/{name}': size
    for step in steps
    for name, size in step.bytes_up.items()
  }
  return phases.Bytes(down, up)


def full_traffic(
  state: phases.ServerState, aggregated: Mapping[str, Any], client: phases.Bytes
) -> Mapping[str, Any]:
  """Returns the bytes of a cohort whose clients send and receive everything.

  Args:
    state: State of the server; not used.
    aggregated: With the counts of the clients.
    client: Bytes of one client.

  Returns:
    int64 `bytes_down` and `bytes_up`.
  """
  del state
  cohort = tf.cast(aggregated[phases.COUNTS]['clients'], tf.int64)
  return collections.OrderedDict(
    bytes_down=cohort * np.int64(sum(client.down.values())),
    bytes_up=cohort * np.int64(sum(client.up.values())),
  )
