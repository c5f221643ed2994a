"""A process with stateful clients, in the form of one with stateless clients.

The tests of algorithms then run both. Its state holds the server's and the clients'.
"""

from typing import Any, NamedTuple

import numpy as np

from tff_ssl.federated import client_states
from tff_ssl.federated import packs
from tff_ssl.federated import processes


class State(NamedTuple):
  """Of the server, and by client; a client is known by the id of its first example."""

  server: Any
  clients: dict[int, Any]

  @property
  def optimizer(self):
    return self.server.optimizer


class Output(NamedTuple):
  state: Any
  metrics: Any


class WithStates:
  """Runs a process on cohorts of data sets alone, or of packs of them."""

  def __init__(self, process: processes.Built, packed: bool):
    self.process = process
    self._packed = packed
    self._blank = client_states.blank_state(process.graph.client_state_type)

  def initialize(self):
    return State(self.process.initialize(), {})

  def get_model_weights(self, state):
    return self.process.get_model_weights(state.server)

  def next(self, state, cohort):
    members = self._members(cohort)
    values = [[self._before(state, key) for key in keys] for keys in members]
    if self._packed:
      given = [packs.stack(value) for value in values]
    else:
      given = [value[0] for value in values]
    output = self.process.next(state.server, given, cohort)
    clients = dict(state.clients)
    for value in output.client_states:
      for own in packs.unstack(value) if self._packed else [value]:
        clients[int(own.client)] = own
    # A client without examples has no id to keep its state by.
    known = {key: own for key, own in clients.items() if key >= 0}
    return Output(State(output.state, known), output.metrics)

  def _before(self, state, key):
    return state.clients.get(key, self._blank._replace(client=np.int32(key)))

  def _members(self, cohort):
    """Returns the clients of each value; those without examples count from -1 down."""
    members, empty = [], 0
    for dataset in cohort:
      keys = []
      for ids in self._example_ids(dataset):
        empty += not len(ids)
        keys.append(int(ids[0]) if len(ids) else -empty)
      members.append(keys)
    return members

  def _example_ids(self, dataset):
    if not self._packed:
      return [[example['example_id'] for example in dataset.as_numpy_iterator()]]
    pack = dataset.get_single_element()
    ends = np.cumsum(pack[packs.SIZES])
    return np.split(pack[packs.EXAMPLES]['example_id'].numpy(), ends[:-1])
