"""Re-runs rounds in plain TensorFlow and returns every client's model.

In a process only combined values leave the clients. To study the clients, the same
phases are run one client after another, in plain TensorFlow. The round's seed, the
views and the order of the examples are those of the process, so each client ends with
the same model, up to rounding. Many steps magnify rounding errors, above all those of
Adam, whose first steps are equally long however small a gradient is.
"""

import collections
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base


class Round(NamedTuple):
  """One round.

  Attributes:
    state: State of the server after it.
    clients: The model that each client ended with, by the names of the parameters and
      population statistics; for a discarded client, the model that it started with.
  """

  state: phases.ServerState
  clients: list[base.Params]


class Replay:
  """The rounds of an algorithm whose clients send an update of the model."""

  def __init__(self, algorithm: phases.Algorithm):
    """Takes the algorithm; the first client traces its function.

    Args:
      algorithm: An algorithm of one exchange with stateless clients, such as FedAvg.

    Raises:
      ValueError: If it is of another kind.
    """
    kinds = algorithm.exchanges[0].sent if len(algorithm.phases) == 1 else {}
    known = (combine.Mean, combine.Statistics)
    if (
      server.UPDATE not in kinds
      or algorithm.is_stateful
      or not all(isinstance(kind, known) for kind in kinds.values())
    ):
      raise ValueError(
        'The clients of the algorithm cannot be replayed; it must have a single '
        'exchange, in which stateless clients send their update, as FedAvg has.'
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

  def next(self, state: phases.ServerState, cohort: Sequence[base.Examples]) -> Round:
    """Runs a round.

    Args:
      state: From `initialize` or the round before.
      cohort: The examples of each client, as arrays.
    """
    models, total = [], None
    for examples in cohort:
      tensors = tf.nest.map_structure(tf.convert_to_tensor, examples)
      self._client = self._client or self._traced(state, tensors)
      model, part = self._client(state, tensors)
      models.append(model)
      total = part if total is None else tf.nest.map_structure(tf.add, total, part)
    return Round(self._receive(state, total), models)

  def _traced(self, state: phases.ServerState, examples: base.Examples) -> Any:
    """Returns the traced function of a client of any size."""
    specs = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), state)
    of_any_size = tf.nest.map_structure(
      lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), examples
    )
    signature = [specs, of_any_size]
    return tf.function(self._visit, input_signature=signature, autograph=False)

  def _visit(self, state: phases.ServerState, examples: base.Examples) -> Any:
    """Returns a client's model, and its part of the sums."""
    shared = self._exchange.broadcast(state)
    examples = base.in_loss(self._algorithm.objective, examples)
    result, _ = client_functions.run_client(
      self._exchange.client, self._exchange_spec, shared, (), examples
    )
    update = result.means[server.UPDATE]
    model = tf.nest.map_structure(tf.subtract, shared['params'], update)
    if server.STATISTICS in result.means:
      # A discarded client sends 0, which is not the statistics of any population.
      statistics = result.means[server.STATISTICS]
      model.update(clients.choose(result.weight > 0, statistics, shared['population']))
    means = tf.nest.map_structure(
      lambda x: x * tf.cast(result.weight, x.dtype), result.means
    )
    return model, (means, result.weight, result.totals)

  def _combine(self, state: phases.ServerState, total: Any) -> phases.ServerState:
    """Returns the state after the round."""
    means, weight, totals = total
    aggregated = collections.OrderedDict(totals)
    for name, value in means.items():
      mean = tf.nest.map_structure(
        lambda x: tf.math.divide_no_nan(x, tf.cast(weight, x.dtype)), value
      )
      if isinstance(self._exchange.sent[name], combine.Statistics):
        mean = collections.OrderedDict(statistics=mean, num_examples=weight)
      aggregated[name] = mean
    return server.next_round(self._exchange.receive(state, aggregated)[0])
