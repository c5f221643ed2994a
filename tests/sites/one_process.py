"""Rounds whose parts are the clients of sites, in one process: without a message."""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.federated import client_states
from tff_ssl.federated import packs
from tff_ssl.federated import parts as parts_lib
from tff_ssl.simulation import simulated_clients

# The states of clients by their numbers, of each site.
_Kept = dict[str, dict[int, Any]]


def rounds(
  built: parts_lib.Parts,
  clients: Mapping[str, simulated_clients.Clients],
  draw: Callable[[str, int], Sequence[str]],
  count: int,
) -> Iterator[tuple[Any, list[Any], _Kept]]:
  """Yields the state, the metrics of each exchange, and what clients keep.

  Args:
    built: The parts of a process.
    clients: Of each site.
    draw: (site, round) -> its clients of the round.
    count: How many rounds.
  """
  state, kept = built.initialize(), {name: {} for name in clients}
  for round in range(1, count + 1):
    known, told = collections.OrderedDict(), []
    drawn = {
      name: own.cohort_with_members(draw(name, round)) for name, own in clients.items()
    }
    for exchange in built.exchanges.values():
      known.update(exchange.broadcast(state))
      total = None
      for name, cohort in drawn.items():
        states = _states(built, clients[name], cohort, kept[name])
        sums, after = exchange.partial(known, *states, cohort.data)
        if states:
          of_clients = [own for pack in after for own in packs.unstack(pack)]
          kept[name].update({int(own.client): own for own in of_clients})
        total = sums if total is None else tf.nest.map_structure(np.add, total, sums)
      state, metrics = exchange.receive(state, [total])
      told.append(metrics)
    yield state, told, kept


def _states(built, clients, cohort, kept):
  """Returns the states of a cohort's packs, in a list, if its clients keep some."""
  if built.client_state_type is None:
    return []
  blank = client_states.blank_state(built.client_state_type)
  numbers = [[clients.index(each) for each in pack] for pack in cohort.members]
  states = [
    [kept.get(number, blank._replace(client=np.int32(number))) for number in pack]
    for pack in numbers
  ]
  return [[packs.stack(of_pack) for of_pack in states]]
