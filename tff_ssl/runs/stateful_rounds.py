"""Rounds of an algorithm with stateful clients, as the round loop runs them.

    clients = simulated_clients.Clients(data)
    process = processes.build(fed_ssl.fed_ssl(...), clients.element_spec)
    rounds = stateful_rounds.StatefulRounds(process, clients)
    loop.run(rounds, lambda round: rounds.cohort(cohorts(round)), folder, 100)

A round loads the states of its cohort from the run folder, sends them with the data,
and saves them before the loop writes anything of that round. So the states exist for
every round that the loop has written. `resume` drops the states of rounds after the
checkpoint. The numbers that the process reports for each client go to `clients.csv`, a
row for each round and client; `resume` drops these rows likewise.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import os
import pathlib
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from tff_ssl.federated import client_states
from tff_ssl.federated import packs
from tff_ssl.federated import phase_graph
from tff_ssl.runs import round_algorithms
from tff_ssl.runs import round_table
from tff_ssl.runs import run_config
from tff_ssl.runs import state_store
from tff_ssl.simulation import simulated_clients

# At most this many clients' states form the evaluated model: this bounds the memory.
_MOST_EVALUATED = 100


class StatefulProcess(Protocol):
  """A process of clients that keep a state, whole or in parts."""

  graph: phase_graph.Graph
  initialize: Any
  get_model_weights: Any

  def next(self, state: Any, *given: Any) -> Any:
    """Runs a round; returns a `processes.StatefulOutput`."""


class StatefulRounds:
  """A process, its clients and their stored states: a `round_algorithms.Resumable`.

  Attributes:
    algorithm: The algorithm of the process.
  """

  def __init__(
    self,
    process: StatefulProcess,
    clients: simulated_clients.Clients,
    most_bytes: int | None = None,
  ):
    """Initializes the rounds; `resume` opens the store.

    Args:
      process: A process of clients that keep a state, for `clients.element_spec`.
      clients: All clients.
      most_bytes: How large the states of a cohort may be together; None: as large as
        the memory allows, because nothing is sent (`contexts.in_process`).

    Raises:
      ValueError: If a client's state takes more than a GB.
    """
    self._process = process
    self.algorithm = process.graph.algorithm
    self._clients = clients
    self._most_bytes = most_bytes
    self._is_packed = isinstance(clients.element_spec, packs.PackSpec)
    self._blank = client_states.blank_state(process.graph.client_state_type)
    self._stacks = StateStacks(self._blank)
    self._store: state_store.ClientStates | None = None
    self._table: round_table.Table | None = None
    self._round = 0
    self._bytes_per_client = sum(x.nbytes for x in tf.nest.flatten(self._blank))

  @property
  def evaluates_states(self) -> bool:
    """Whether the evaluated model takes what clients keep, which nothing protects."""
    return self.algorithm.evaluated is not None

  def cohort(self, client_ids: Iterable[str]) -> simulated_clients.CohortData:
    """Returns a cohort without its states, which the previous round may still change.

    Args:
      client_ids: The clients of the round; their order does not matter.

    Raises:
      ValueError: If there is no client, a client does not exist or is named twice, or
        their states cannot be sent.
    """
    ids = list(client_ids)
    if len(set(ids)) < len(ids):
      raise ValueError(
        'client_ids names a client twice: each client has only one state'
      )
    num_bytes = len(ids) * self._bytes_per_client
    if self._most_bytes is not None and num_bytes > self._most_bytes:
      raise ValueError(
        f'the states of {len(ids)} clients take {num_bytes} bytes: TFF can send '
        f'{self._most_bytes} per round; take fewer clients'
      )
    return self._clients.cohort_with_members(ids, self._bytes_per_client)

  def initialize(self) -> Any:
    """Returns the initial server state."""
    return self._process.initialize()

  def next(
    self, state: Any, cohort: simulated_clients.CohortData
  ) -> round_algorithms.Output:
    """Runs one round and saves the states of its clients.

    Args:
      state: The server's state.
      cohort: From `cohort`.
    """
    before: dict[str, _Before] = {}
    given = [
      self._given(place, ids, before) for place, ids in enumerate(cohort.members)
    ]
    output = self._process.next(state, given, cohort.data)
    after = {
      int(own.client): own
      for value in output.client_states
      for own in (packs.unstack(value) if self._is_packed else [value])
    }
    if after.keys() != {own.client for own in before.values()}:
      raise RuntimeError(
        'the process has returned states of clients other than those it was given'
      )
    changed = {}
    for name, own in before.items():
      new = after[own.client]
      # The state of a discarded client has not changed: it gets no row.
      if new.last_round != own.last_round:
        changed[name] = _without_index(new)
    self._opened.save(self._round + 1, changed)
    self._round += 1
    self._tell(changed)
    return round_algorithms.Output(output.state, output.metrics)

  def get_model_weights(self, state: Any) -> Any:
    """Returns the model weights with which a server state is evaluated.

    If they depend on what clients keep (FedBN), they use what clients keep now. Only
    those of the first hundred clients by id that have taken part count.
    """
    weights = self._process.get_model_weights(state)
    if self.algorithm.evaluated is None:
      return weights
    states = self.states_of(self._opened.first_ids(_MOST_EVALUATED)).values()
    return self.algorithm.evaluated(weights, [own.kept for own in states])

  def states_of(
    self, client_ids: Iterable[str]
  ) -> Mapping[str, client_states.ClientState]:
    """Returns the current states of some clients, by id.

    Args:
      client_ids: Any clients; the state of one that has not taken part is blank.

    Raises:
      ValueError: If the store is damaged, or there is no such client.
    """
    return {
      name: client_states.ClientState(np.int32(self._clients.index(name)), *stored)
      for name, stored in self._opened.load(client_ids).items()
    }

  def resume(self, folder: str | os.PathLike[str], round: int) -> None:
    """Rolls the states back to the end of a round (`round_algorithms.Resumable`).

    Args:
      folder: The run folder.
      round: The round.

    Raises:
      ValueError: If the folder does not hold these states.
    """
    path = pathlib.Path(folder) / state_store.NAME
    store = state_store.ClientStates(path, _without_index(self._blank))
    store.resume(round, run_config.identity(folder))
    self._store, self._round = store, round
    if self.algorithm.client_report is not None:
      self._table = round_table.Table(path.with_name(round_table.CLIENTS))
      self._table.keep_until(round)

  def skip(self, round: int) -> None:
    """Goes on with a round; those before it, since the last one, change no state.

    Args:
      round: The round that is next.
    """
    while self._round < round - 1:
      self._opened.save(self._round + 1, {})
      self._round += 1

  def saved(self, oldest: int) -> None:
    """Drops states that no checkpoint needs; see `round_algorithms.Resumable`.

    Args:
      oldest: The round of the oldest checkpoint.
    """
    self._opened.prune(oldest)

  def _given(
    self, place: int, client_ids: Sequence[str], before: dict[str, '_Before']
  ) -> Any:
    """Returns the states of the clients of one TFF value, as the process takes them.

    Args:
      place: The value's place in its round.
      client_ids: The clients.
      before: Receives their indices and last rounds, by id.
    """

    def states() -> Iterator[client_states.ClientState]:
      for name in client_ids:
        own = self.states_of([name])[name]
        before[name] = _Before(int(own.client), int(own.last_round))
        yield own

    if self._is_packed:
      return self._stacks.fill(place, len(client_ids), states())
    (alone,) = states()
    return alone

  def _tell(self, states: Mapping[str, '_Stored']) -> None:
    """Writes a row of numbers for each client that took part in the round."""
    if self._table is None or self.algorithm.client_report is None:
      return
    rows: list[Mapping[str, round_table.Cell]] = [
      {round_table.CLIENT: name, **self.algorithm.client_report(states[name].kept)}
      for name in sorted(states)
    ]
    self._table.extend(self._round, rows)

  @property
  def _opened(self) -> state_store.ClientStates:
    if self._store is None:
      raise RuntimeError('the client states are not open: `resume` opens them')
    return self._store


class _Stored(NamedTuple):
  """A client's state as it is kept on disk, where the id identifies the client."""

  last_round: Any
  kept: Any


class _Before(NamedTuple):
  """A client's index, and its last round before this one."""

  client: int
  last_round: int


def _without_index(state: client_states.ClientState) -> _Stored:
  return _Stored(state.last_round, state.kept)


class StateStacks:
  """Arrays of the states of packs, each the size of the largest pack so far.

  Allocating new arrays for each round would cost as much as filling them: the kernel
  clears the pages of memory that it gives.
  """

  def __init__(self, blank: Any):
    """Initializes; the first cohort allocates.

    Args:
      blank: A nest of arrays; every state has its structure, shapes and types.
    """
    self._blank = blank
    self._stacks: list[Any] = []

  def fill(self, place: int, count: int, states: Iterable[Any]) -> Any:
    """Returns states as one structure of arrays [K, ...], as `packs.stack` does.

    The structure is valid until the same place is filled again.

    Args:
      place: The pack's place in its round, from 0.
      count: K, at least 1.
      states: K states, taken one after another: only one is held at a time.
    """
    while len(self._stacks) <= place:
      self._stacks.append(self._empty(0))
    if len(tf.nest.flatten(self._stacks[place])[0]) < count:
      self._stacks[place] = self._empty(count)
    stack = tf.nest.map_structure(lambda array: array[:count], self._stacks[place])
    arrays = tf.nest.flatten(stack)
    for k, state in enumerate(states):
      for array, leaf in zip(arrays, tf.nest.flatten(state), strict=True):
        array[k] = leaf
    return stack

  def _empty(self, count: int) -> Any:
    return tf.nest.map_structure(
      lambda leaf: np.empty([count, *np.shape(leaf)], np.asarray(leaf).dtype),
      self._blank,
    )
