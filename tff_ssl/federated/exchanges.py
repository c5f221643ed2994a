"""One exchange of an algorithm as computations (`phases.Exchange`).

Types follow by chaining `share` -> client -> aggregation -> `receive`. `Step` has the
computations, and the methods that call them inside a federated computation.
"""

import collections
from collections.abc import Mapping

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.aggregators import communication
from tff_ssl.federated import client_functions
from tff_ssl.federated import cohorts
from tff_ssl.federated import grouping
from tff_ssl.federated import phases


class Step:
  """One exchange of an algorithm as TFF computations.

  Attributes:
    exchange: Which.
    told_types: Type of each value that this exchange tells, by name.
    sent_type: Of what one value of clients sends.
    states_type: Of the states of one value of clients; None where they keep none.
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
      tells_again: Whether clients are told again what earlier exchanges have told them;
        for the count of bytes.

    Raises:
      ValueError: If it tells what an earlier one has told, or sends other names than it
        combines.
    """
    self.exchange = exchange
    self._server_type = server_type
    # A function of one argument, whatever others `share` has.
    self._share = tff.tensorflow.computation(
      lambda state: exchange.share(state), server_type
    )
    self.told_types = collections.OrderedDict(
      tff.structure.iter_elements(self._share.type_signature.result)
    )
    self._told = self._all_told(earlier)
    self._build_client(cohort, client_functions.Protocol(exchange.sent, is_last))
    through = cohort.aggregation
    self.aggregators = collections.OrderedDict(
      (name, kind.create(through, self.sent_type[name]))
      for name, kind in exchange.sent.items()
      if not isinstance(kind, combine.Local)
    )
    self.bytes_up = {
      name: kind.num_bytes(self.sent_type[name])
      for name, kind in [*exchange.sent.items(), ('weight', combine.UPDATE)]
    }
    if is_last:
      counts_type = self.sent_type[phases.COUNTS]
      self.aggregators[phases.COUNTS] = through.counts.create(counts_type)
      self.bytes_up[phases.COUNTS] = communication.num_bytes(counts_type)
    self._to_group_weight = grouping.build_to_weight(exchange.sent, self.sent_type)
    self._receive = self._build_receive(self._bytes(earlier, tells_again))

  def tell(self, current: tff.Value, told: dict[str, tff.Value]) -> None:
    """Broadcasts what the exchange tells its clients, and adds it to what they know.

    Args:
      current: `phases.ServerState` at the server.
      told: On the clients, by name.
    """
    shared = tff.federated_map(self._share, current)
    for name in self.told_types:
      told[name] = tff.federated_broadcast(shared[name])

  def on_clients(
    self,
    told: Mapping[str, tff.Value],
    states: tff.Value | None,
    examples: tff.Value,
  ) -> tuple[tff.Value, tff.Value | None]:
    """Runs the function of the clients.

    Args:
      told: All that they know.
      states: Of the clients, where they keep some.
      examples: As the cohort's `read` gives them.

    Returns:
      What is sent, and the states after.
    """
    shared = collections.OrderedDict(told)
    if not self._is_stateful:
      return tff.federated_map(self._client, (shared, examples)), states
    output = tff.federated_map(self._client, (shared, states, examples))
    return output['sent'], output['states']

  def combine(
    self, state: tff.Value, sent: tff.Value
  ) -> tff.templates.MeasuredProcessOutput:
    """Combines what the clients send, each value by its kind.

    Args:
      state: Of the aggregators, at the server.
      sent: On the clients.
    """
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
    """Returns `state` and `metrics` after the exchange.

    Args:
      current: `phases.ServerState` at the server.
      results: Of the aggregators.
    """
    return tff.federated_map(self._receive, (current, results))

  @property
  def _is_stateful(self) -> bool:
    return isinstance(self.exchange.client, client_functions.StatefulFunction)

  def _all_told(self, earlier: 'Mapping[str, Step]') -> dict[str, tff.Type]:
    """Returns the types of all that clients know in this exchange."""
    told: dict[str, tff.Type] = {}
    for step in earlier.values():
      told.update(step.told_types)
    if twice := told.keys() & self.told_types.keys():
      raise ValueError(
        f'The exchange {self.exchange.name!r} tells {sorted(twice)}, which clients '
        'know from an earlier one; it must tell other names.'
      )
    return {**told, **self.told_types}

  def _build_client(
    self, cohort: cohorts.Cohort, protocol: client_functions.Protocol
  ) -> None:
    shared_type = tff.types.to_type(collections.OrderedDict(self._told))
    function = self.exchange.client
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

  def _bytes(self, earlier: 'Mapping[str, Step]', tells_again: bool) -> phases.Bytes:
    """Returns the bytes of one client in a round, up to this exchange."""
    steps = [*earlier.values(), self]
    down = {name: communication.num_bytes(value) for name, value in self._told.items()}
    if tells_again:
      # What an exchange tells, each later computation tells too.
      for place, step in enumerate(steps):
        for name in step.told_types:
          down[name] *= len(steps) - place
    up = {
      f'{step.exchange.name}/{name}': size
      for step in steps
      for name, size in step.bytes_up.items()
    }
    return phases.Bytes(down, up)

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
        work = collections.OrderedDict(groups.get(phases.CLIENT_WORK, {}))
        work.update(arrived[phases.COUNTS])
        traffic = exchange.traffic or _all_of_it
        work.update(traffic(before, arrived, sizes))
        groups[phases.CLIENT_WORK] = work
      return collections.OrderedDict(state=state, metrics=groups)

    return receive


def _all_of_it(state, arrived, sizes: phases.Bytes):
  """Returns the bytes of a cohort whose clients send and are told everything."""
  del state
  cohort = tf.cast(arrived[phases.COUNTS]['clients'], tf.int64)
  return collections.OrderedDict(
    bytes_down=cohort * np.int64(sum(sizes.down.values())),
    bytes_up=cohort * np.int64(sum(sizes.up.values())),
  )
