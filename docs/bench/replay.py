"""Runs an algorithm's rounds in plain TensorFlow, one client after another.

In a process only combined values leave the clients. Here each client's model, or its
state, is in sight: to study the clients, and to measure what a process adds to the bare
arithmetic of its round. The round's seed, the views and the order of the examples are
those of the process, so each client ends with the same model, up to rounding. Many
steps magnify rounding errors, above all those of Adam, whose first steps are equally
long however small a gradient is.
"""

import collections
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_states
from tff_ssl.federated import client_sums
from tff_ssl.federated import clients
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import selection


class Round(NamedTuple):
  """One round.

  Attributes:
    state: The server's state after it.
    clients: For each stateful client, its state after the round. For each stateless
      client, the model that it ended with, by the names of the parameters and
      population statistics; for a discarded client, the model that it started with.
    metrics: The round's metrics, in groups, without counts of clients and bytes.
  """

  state: phases.ServerState
  clients: list[Any]
  metrics: phases.Metrics


class Replay:
  """The rounds of an algorithm with a single exchange."""

  def __init__(self, algorithm: phases.Algorithm):
    """Takes the algorithm; the first client traces its function.

    Args:
      algorithm: An algorithm of one exchange, whose clients keep a state or send an
        update of the model, such as that of `fedavg.fedavg`.

    Raises:
      ValueError: If it is of another kind.
    """
    kinds = algorithm.exchanges[0].sent if len(algorithm.phases) == 1 else {}
    known = (combine.Mean, combine.Statistics, combine.Total)
    if server.UPDATE not in kinds or not all(
      isinstance(kind, known) for kind in kinds.values()
    ):
      raise ValueError(
        'The clients of the algorithm cannot be replayed; it must have a single '
        'exchange, in which clients send their update, as FedAvg has.'
      )
    self._algorithm = algorithm
    self._exchange = algorithm.exchanges[0]
    self._exchange_spec = client_functions.ExchangeSpec(kinds, counted=True)
    self._client: Any = None
    self._receive = tf.function(self._combine, autograph=False)

  def initialize(self) -> phases.ServerState:
    """Returns the state before round 0."""
    # The states of TFF's optimizers may contain Python numbers.
    return tf.nest.map_structure(tf.convert_to_tensor, self._algorithm.initial())

  def new_client(
    self, state: phases.ServerState, client: int
  ) -> client_states.ClientState:
    """Returns the state of a client that has not taken part.

    Args:
      state: Any state of the server.
      client: The client's index.
    """
    function: Any = self._exchange.client
    first = function.first(self._exchange.broadcast(state))
    blank = tf.nest.map_structure(tf.zeros_like, first)
    never = client_states.NEVER
    return client_states.ClientState(np.int32(client), np.int32(never), blank)

  def next(
    self,
    state: phases.ServerState,
    cohort: Sequence[base.Examples],
    states: Sequence[client_states.ClientState] | None = None,
  ) -> Round:
    """Runs a round.

    Args:
      state: From `initialize` or the round before.
      cohort: The examples of each client, as arrays.
      states: The state of each client; None: the clients are stateless.
    """
    after, total = [], None
    before: Sequence[Any] = [()] * len(cohort) if states is None else states
    for examples, own in zip(cohort, before, strict=True):
      own, examples = tf.nest.map_structure(tf.convert_to_tensor, (own, examples))
      self._client = self._client or self._traced(state, own, examples)
      result, part = self._client(state, own, examples)
      after.append(result)
      total = part if total is None else tf.nest.map_structure(tf.add, total, part)
    state, metrics = self._receive(state, total)
    return Round(state, after, metrics)

  def _traced(
    self, state: phases.ServerState, own: Any, examples: base.Examples
  ) -> Any:
    """Returns the traced function of a client of any size."""
    specs = tf.nest.map_structure(
      lambda x: tf.TensorSpec(x.shape, x.dtype), (state, own)
    )
    of_any_size = tf.nest.map_structure(
      lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), examples
    )
    signature = [*specs, of_any_size]
    return tf.function(self._visit, input_signature=signature, autograph=False)

  def _visit(
    self, state: phases.ServerState, own: Any, examples: base.Examples
  ) -> tuple[Any, client_sums.Sums]:
    """Returns a client's state or model, and its part of the sums."""
    shared = self._exchange.broadcast(state)
    examples = selection.select_examples(self._algorithm.objective, examples)
    result, own = client_functions.run_client(
      self._exchange.client, self._exchange_spec, shared, own, examples
    )
    if not self._algorithm.is_stateful:
      own = self._model(shared, result)
    return own, client_sums.of_client(result)

  def _model(
    self, shared: client_functions.Shared, result: client_functions.ClientResult
  ) -> base.Params:
    """Returns the model that a stateless client ends with."""
    update = result.means[server.UPDATE]
    model = tf.nest.map_structure(tf.subtract, shared['params'], update)
    if server.STATISTICS in result.means:
      # A discarded client sends 0, which is not the statistics of any population.
      statistics = result.means[server.STATISTICS]
      usable = result.weight > 0
      model.update(clients.choose(usable, statistics, shared['population']))
    return model

  def _combine(
    self, state: phases.ServerState, total: client_sums.Sums
  ) -> tuple[phases.ServerState, phases.Metrics]:
    """Returns the state after the round, and its metrics."""
    aggregated = collections.OrderedDict(total.totals)
    for name, value in total.means.items():
      mean = tf.nest.map_structure(
        lambda x: tf.math.divide_no_nan(x, tf.cast(total.weight, x.dtype)), value
      )
      if isinstance(self._exchange.sent[name], combine.Statistics):
        mean = collections.OrderedDict(statistics=mean, num_examples=total.weight)
      aggregated[name] = mean
    state, metrics = self._exchange.receive(state, aggregated)
    return server.next_round(state), metrics
