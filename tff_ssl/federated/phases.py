"""What a federated algorithm is: a server state and a list of phases.

A phase is one exchange between the server and the clients of a round, in the order of
the paper's pseudocode, or training at the server if it has data of its own. All
functions are pure functions of tensors; nothing here uses TFF. FedAvg, complete::

  def broadcast(state):
    return phases.model(state, rate=config.rate(state.round))


  receive = server.averaging(optimizer, objective.summarize)
  algorithm = phases.Algorithm(
    lambda: server.initial_of(objective, seed, optimizer),
    [phases.Exchange('train', broadcast, client, server.sent_kinds(), receive)],
  )

Three modules make TFF computations of an algorithm. `processes` makes one that runs
whole rounds; `single`, one deployable computation per phase; `parts`, what several
machines compute. They take care of seeds, the number of the round, discarded clients,
counts, bytes and packs.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any, NamedTuple

from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_states
from tff_ssl.objectives import base

# Metrics by name, in groups: 'client_work', 'finalizer', 'server_work'.
CLIENT_WORK, FINALIZER, SERVER_WORK = 'client_work', 'finalizer', 'server_work'
# The sums of the counts of clients and examples, in a round's last exchange.
COUNTS = 'counts'

Metrics = Mapping[str, Mapping[str, Any]]


class ServerState(NamedTuple):
  """The server's state between phases.

  Attributes:
    global_model_weights: `tff.learning.models.ModelWeights`, the result of the rounds.
    optimizer: State of the server's optimizer; empty if it has none.
    extra: What else the algorithm keeps at the server, by name: DCCO's statistics, a
      teacher, control variates.
    round: int32, the number of the round, from 0.
    round_seed: int32 [2], of the round.
  """

  global_model_weights: Any
  optimizer: Any
  extra: Any
  round: Any
  round_seed: Any

  def with_extra(self, **values: Any) -> 'ServerState':
    """Returns the state with some of its `extra` values replaced."""
    return self._replace(extra=collections.OrderedDict(self.extra, **values))


class Bytes(NamedTuple):
  """The bytes of one client's exchanges in a round, by name of what is sent."""

  down: Mapping[str, int]
  up: Mapping[str, int]


# (state before, aggregated, bytes of one client) -> `bytes_down` and `bytes_up` of the
# cohort, and further metrics.
Traffic = Callable[[ServerState, Mapping[str, Any], Bytes], Mapping[str, Any]]
# (parameters of the global model, state of a client) -> parameters of the client's own.
PersonalModel = Callable[[base.Params, client_states.ClientState], base.Params]


@dataclasses.dataclass(frozen=True)
class Exchange:
  """One exchange between the server and the clients of a round.

  Attributes:
    name: Name of the phase, as 'statistics' or 'train'.
    broadcast: State -> values by name that are broadcast to the clients. These still
      know the values of the round's earlier exchanges: nothing is broadcast twice. With
      stateful clients `round` must be among the values.
    client: What one client computes from all broadcast values.
    sent: How each value that a client sends is combined.
    receive: (state, combined payloads by name) -> the state after, and metrics. Except
      in the last exchange, it must not change what the round has already broadcast. If
      no client counts, means and sums are 0; in a round's last exchange
      `aggregated[COUNTS]['examples']` is then 0.
    traffic: The bytes of the cohort if not all clients send and receive everything;
      None: they do.
  """

  name: str
  broadcast: Callable[[ServerState], Mapping[str, Any]]
  client: client_functions.ClientFunction | client_functions.StatefulFunction
  sent: Mapping[str, combine.Kind]
  receive: Callable[[ServerState, Mapping[str, Any]], tuple[ServerState, Metrics]]
  traffic: Traffic | None = None


@dataclasses.dataclass(frozen=True)
class AtServer:
  """Training at the server, on data of its own.

  Attributes:
    name: Name of the phase.
    element_spec: `tf.TensorSpec`s of one example of the server's data.
    train: (state, examples [n, ...], n >= 0) -> the state after, and metrics.
  """

  name: str
  element_spec: Any
  train: Callable[[ServerState, Mapping[str, Any]], tuple[ServerState, Metrics]]


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """A federated algorithm: all that a process of it needs.

  Attributes:
    initial: () -> the server's state before round 0.
    phases: The phases of a round, in order. If several train at the server, they take
      the same data.
    client_numbers: int32 fields of an example that say which client holds it: the
      client's place in the population, or its group in this round.
    keeps_table: Whether the server keeps a table of what each client sent, so that an
      aggregation that adds noise must be refused.
    objective: What clients minimise. Those of their examples that its loss leaves out
      are no part of the round (`base.Objective.example_mask`): n_k is the number of the
      others, and a client without any is empty. None: all examples take part.
    client_report: Numbers that a simulation records of each client of a round, read
      from `ClientState.kept` after it; None: none. Elsewhere they stay on the device.
    personal_model: (parameters of the global model, a client's `ClientState`) -> those
      of the client's own model; None: clients have none.
    evaluated: (model weights, `ClientState.kept` of some clients) -> the model weights
      that a simulation evaluates; None: the server's own.
    client_rate: The clients' learning rate, or round -> rate; None: unknown.
    classifiers: State -> parameters of an encoder and a head that classify together, by
      the name of the model ('student', 'teacher'); None: there are none.
  """

  initial: Callable[[], ServerState]
  phases: Sequence[Exchange | AtServer]
  client_numbers: Sequence[str] = ()
  keeps_table: bool = False
  objective: Any = None
  client_report: Callable[[Any], Mapping[str, float | None]] | None = None
  personal_model: PersonalModel | None = None
  evaluated: Callable[[Any, Sequence[Any]], Any] | None = None
  client_rate: float | Callable[[Any], Any] | None = None
  classifiers: Callable[[Any], Mapping[str, base.Params]] | None = None

  @property
  def exchanges(self) -> tuple[Exchange, ...]:
    """The phases that are exchanges with clients."""
    return tuple(phase for phase in self.phases if isinstance(phase, Exchange))

  @property
  def is_stateful(self) -> bool:
    """Whether clients keep a state between rounds."""
    return any(
      isinstance(exchange.client, client_functions.StatefulFunction)
      for exchange in self.exchanges
    )

  @property
  def server_spec(self) -> Any:
    """`tf.TensorSpec`s of one example of the server's data; None if it has none."""
    at_server = (phase for phase in self.phases if isinstance(phase, AtServer))
    return next((phase.element_spec for phase in at_server), None)


def model(state: ServerState, **others: Any) -> collections.OrderedDict[str, Any]:
  """Returns what is broadcast to train the model.

  Args:
    state: State of the server.
    **others: What else is broadcast, by name.

  Returns:
    `params`, the round's `seed`, `others` and, with batch norm, the `population`
    statistics, which come with the model.
  """
  weights = state.global_model_weights
  values = collections.OrderedDict(
    params=weights.trainable, seed=state.round_seed, **others
  )
  if weights.non_trainable:
    values['population'] = weights.non_trainable
  return values


def kept_model(weights: base.Params, state: client_states.ClientState) -> base.Params:
  """Returns the model that is a client's state; the global one before its first round.

  Args:
    weights: Parameters of the global model.
    state: The client's.
  """
  return weights if state.last_round == client_states.NEVER else state.kept
