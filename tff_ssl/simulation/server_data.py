"""Rounds of algorithms whose server has data, as the round loop runs them.

Typical use::

  grouped = server_data.Grouped(data, cohorts, groups, seed)
  rounds = server_data.ServerDataRounds(process, server_data.dataset(labelled))
  loop.run(rounds, grouped, folder, 100)
"""

import collections
from collections.abc import Mapping
import math
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.aggregators import groupwise
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.computing import sessions
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients
from tff_ssl.simulation import spilled_examples


class Grouped:
  """Draws the cohort of each round and deals its clients into groups.

  Each TFF value is then one client, or a pack of clients of the same group.
  """

  def __init__(
    self,
    data: client_data.ArrayClientData,
    cohorts: cohort_sampling.Cohorts,
    groups: int,
    seed: int,
    num_packs: int | None = None,
    as_rows: bool = False,
  ):
    """Initializes; each call deals the clients of a round to groups.

    Args:
      data: All clients.
      cohorts: Round -> the ids of its clients.
      groups: S, groups of a round: `groupwise.num_groups` of its clients.
      seed: For dealing clients into groups; not negative.
      num_packs: TFF values of a round, at least one for each group; None: as many as
        cores this process may use; 0: one for each client.
      as_rows: See `simulated_clients.Clients`.
    """
    if num_packs is None:
      num_packs = sessions.cores()
    self._data = data
    self._cohorts = cohorts
    self._groups = groups
    self._seed = seed
    self._as_rows = as_rows
    self._packs_of_group = math.ceil(num_packs / groups)
    self.element_spec: Any = self._clients({}).element_spec

  def __call__(self, round: int) -> list[simulated_clients.Value]:
    """Returns the data of a round; a function of the round and the seed alone.

    Args:
      round: Its number.

    Raises:
      ValueError: The clients of the round form another number of groups.
    """
    client_ids = sorted(self._cohorts(round))
    groups = groupwise.num_groups(len(client_ids))
    if groups != self._groups:
      raise ValueError(
        f'groups is {self._groups}; it must be {groups}, the number of groups into '
        f'which the {len(client_ids)} clients of round {round} are dealt.'
      )
    dealt = groupwise.deal(len(client_ids), self._seed, round)
    clients = self._clients(
      {client_id: int(g) for client_id, g in zip(client_ids, dealt, strict=True)}
    )
    if not self._packs_of_group:
      return clients.cohort(client_ids)
    return [
      pack
      for group in range(self._groups)
      for pack in clients.cohort(
        [k for k, g in zip(client_ids, dealt, strict=True) if g == group]
      )
    ]

  def _clients(self, groups: Mapping[str, int]) -> simulated_clients.Clients:
    return simulated_clients.Clients(
      self._data.with_field(grouping.GROUP, groups),
      num_packs=self._packs_of_group,
      as_rows=self._as_rows,
    )


def dataset(labelled: Mapping[str, np.ndarray]) -> tf.data.Dataset:
  """Returns the server's examples as a data set.

  Args:
    labelled: Fields of the examples, [n, ...] each: `image`, `example_id` and `label`.
  """
  return spilled_examples.slices(collections.OrderedDict(labelled))


class ServerDataRounds:
  """A process whose server has data, and these data."""

  def __init__(self, process: Any, labelled: tf.data.Dataset):
    """Holds both.

    Args:
      process: A `processes.Process` of an algorithm whose server has data; or such a
        process in parts.
      labelled: The server's data.
    """
    self._process = process
    self._labelled = labelled
    self.get_model_weights = process.get_model_weights

  def initialize(self) -> Any:
    """Returns the initial state."""
    return self._process.initialize()

  def next(self, state: Any, cohort: list[simulated_clients.Value] | None) -> Any:
    """Runs one round.

    Args:
      state: The state before it.
      cohort: The clients' data; None if there are no clients.
    """
    data = [self._labelled] if cohort is None else [self._labelled, cohort]
    return self._process.next(state, *data)
