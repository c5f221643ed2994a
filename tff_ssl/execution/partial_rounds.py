"""Rounds in parts: each part of the cohort is computed alone, all are merged in order.

    process = partial_rounds.in_parts(processes.build(dcco.dcco(...), ...), parts=8)
    state, metrics = process.next(state, cohort)

With `contexts.hosts` all hosts execute parts at the same time; in any other context the
parts run one after another. The numbers are the same to the bit. They equal those of
the process itself up to the rounding of sums, even with one part: its sums are divided
by the weights, and multiplied by them again when they are received.

When parts come back, and from which host, differs from run to run. So the sums of an
exchange are added once all of them are there, in the order of the parts. The states of
clients stay with the caller: a part receives its own clients' states and returns them.
"""

from collections.abc import Sequence
import functools
import itertools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import checks
from tff_ssl.execution import remote_hosts
from tff_ssl.federated import parts as parts_lib
from tff_ssl.federated import phase_graph
from tff_ssl.federated import processes


def in_parts(process: processes.Built, parts: int) -> 'PartedProcess':
  """Returns a process whose rounds are computed in parts.

  Args:
    process: From `processes.build`: `next` takes and returns the same.
    parts: Into how many parts the values (clients, or packs of them) of a round are
      cut, at least 1. If there are fewer values, each is a part. The rounding of a
      round's numbers depends on `parts` and not on the hosts: take several for each
      host. Where models are averaged in groups of clients, each value is a part.

  Raises:
    ValueError: If `parts` is below 1, or the process cannot run in parts: it is not
      from `processes.build`, or its aggregation acts on each client, as secure sums do.
  """
  checks.at_least(1, parts=parts)
  if not isinstance(process, (processes.Process, processes.LearningProcess)):
    raise ValueError(
      f'The process is a {type(process).__name__}; to run in parts it must come from '
      '`processes.build`.'
    )
  return PartedProcess(process.graph, parts_lib.build_parts(process.graph), parts)


class PartedProcess:
  """A process in parts; what `in_parts` returns.

  Attributes:
    graph: The `phase_graph.Graph` of the process that it was made from.
    initialize: () -> server state.
    get_model_weights: Server state -> `tff.learning.models.ModelWeights`.
  """

  def __init__(self, graph: phase_graph.Graph, built: parts_lib.Parts, parts: int):
    """Holds the computations."""
    self.graph = graph
    self._built = built
    self._parts = parts
    self.initialize = built.initialize
    self.get_model_weights = built.get_model_weights

  def next(self, state: Any, *given: Any) -> Any:
    """Runs one round.

    Args:
      state: The server's state.
      *given: What the process's `next` takes: the client states, or the data at the
        server, if there are any; then the clients' data, as lists.

    Returns:
      What the process's `next` returns.
    """
    is_stateful = self.graph.algorithm.is_stateful
    data = given[-1] if self._built.exchanges else []
    cuts = _cut(len(data), len(data) if self._built.in_groups else self._parts)
    states = given[-2] if is_stateful else None
    told: list[Any] = []
    for phase in self._built.phases.values():
      if isinstance(phase, parts_lib.ExchangeParts):
        state, metrics, states = self._exchange(phase, state, states, data, cuts)
      else:
        # A phase at the server, whose data come first.
        state, metrics = phase(state, given[0])
      told.append(metrics)
    joined = phase_graph.joined_metrics(told)
    if is_stateful:
      return processes.StatefulOutput(state, states, joined)
    return tff.learning.templates.LearningProcessOutput(state, joined)

  def _exchange(
    self,
    exchange: parts_lib.ExchangeParts,
    state: Any,
    states: Sequence[Any] | None,
    data: Sequence[Any],
    cuts: Sequence[slice],
  ) -> tuple[Any, Any, Sequence[Any] | None]:
    """Runs one exchange; returns state, metrics and the clients' states after it."""
    keeps = states is not None and len(exchange.partial.type_signature.parameter) > 2

    def task(cut: slice) -> Any:
      own = (states[cut],) if keeps else ()  # type: ignore[index]
      output = exchange.partial(state, *own, data[cut])
      if keeps and len(output.client_states) != len(own[0]):
        raise ValueError(
          f'{len(output.client_states)} states came back for {len(own[0])} clients'
        )
      return output

    done = remote_hosts.run_tasks([functools.partial(task, cut) for cut in cuts])
    sums = [output.sums for output in done]
    if not self._built.in_groups:
      # In the order of the parts, because rounding depends on it.
      merged = sums[0]
      for one in sums[1:]:
        merged = tf.nest.map_structure(np.add, merged, one)
      sums = [merged]
    state, metrics = exchange.receive(state, sums)
    if keeps:
      states = [own for output in done for own in output.client_states]
    return state, metrics, states


def _cut(count: int, parts: int) -> list[slice]:
  """Returns the slices of values that are the parts; their sizes differ by one at most.

  Without values, as in a round without clients, there is one empty part.
  """
  if not count:
    return [slice(0, 0)]
  ends = [count * k // parts for k in range(parts + 1)]
  return [slice(start, end) for start, end in itertools.pairwise(ends) if start < end]
