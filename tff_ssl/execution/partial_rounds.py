"""Rounds in parts: each part of the cohort is computed alone, all are merged in order.

    process = partial_rounds.in_parts(processes.build(dcco.dcco(...), ...), parts=8)
    state, metrics = process.next(state, cohort)

With `contexts.ray` actors on many machines execute parts; in any other context they run
one after another. The numbers are the same to the bit. They equal those of the process
itself up to the rounding of sums, even with one part: its sums are divided by the
weights, and multiplied by them again when they are received.

When parts come back, and from where, differs from run to run. So the sums of an
exchange are added in the order of the parts. The states of clients stay with the
caller: a part receives its own clients' states and returns them.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
import itertools
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import checks
from tff_ssl.federated import parts as parts_lib
from tff_ssl.federated import phase_graph
from tff_ssl.federated import processes
from tff_ssl.federated import round_metrics


class Rows(Protocol):
  """A value of clients as rows of arrays: `simulated_clients.Rows`."""

  def dataset(self, arrays: Mapping[str, np.ndarray]) -> tf.data.Dataset:
    """Returns the value, given the arrays."""


class Task(NamedTuple):
  """The clients of a part.

  Attributes:
    states: One list, of the states of its values; empty if the exchange takes none.
    data: Its values.
  """

  states: Sequence[Any]
  data: Sequence[tf.data.Dataset | Rows]


def in_parts(
  process: processes.Built,
  parts: int,
  arrays: Mapping[str, np.ndarray] | None = None,
) -> 'PartedProcess':
  """Returns a process whose rounds are computed in parts.

  Args:
    process: From `processes.build`: `next` takes and returns the same.
    parts: Into how many parts the values (clients, or packs of them) of a round are
      cut, at least 1. If there are fewer values, each is a part. The rounding of a
      round's numbers depends on `parts` and not on the machines: take several for each
      actor. Where models are averaged in groups of clients, each value is a part.
    arrays: What values of clients are rows of (`ArrayClientData.held`); None: they are
      data sets.

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
  built = parts_lib.build_parts(process.graph)
  return PartedProcess(process.graph, built, parts, arrays)


class PartedProcess:
  """A process in parts; what `in_parts` returns.

  Attributes:
    graph: The `phase_graph.Graph` of the process that it was made from.
    initialize: () -> server state.
    get_model_weights: Server state -> `tff.learning.models.ModelWeights`.
  """

  def __init__(
    self,
    graph: phase_graph.Graph,
    built: parts_lib.Parts,
    parts: int,
    arrays: Mapping[str, np.ndarray] | None = None,
  ):
    """Holds the computations; see `in_parts`."""
    self.graph = graph
    self._built = built
    self._parts = parts
    self._arrays = arrays
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
    # What each exchange has broadcast.
    shared: list[Mapping[str, Any]] = []
    for phase in self._built.phases.values():
      if isinstance(phase, parts_lib.ExchangeParts):
        shared.append(phase.broadcast(state))
        tasks = _tasks(phase, states, data, cuts)
        state, metrics, after = self._exchange(phase, state, shared, tasks)
        states = states if after is None else after
      else:
        # A phase at the server, whose data come first.
        state, metrics = phase(state, given[0])
      told.append(metrics)
    joined = round_metrics.joined(told)
    if is_stateful:
      return processes.StatefulOutput(state, states, joined)
    return tff.learning.templates.LearningProcessOutput(state, joined)

  def _exchange(
    self,
    exchange: parts_lib.ExchangeParts,
    state: Any,
    shared: Sequence[Mapping[str, Any]],
    tasks: Sequence[Task],
  ) -> tuple[Any, Any, list[Any] | None]:
    """Runs one exchange; returns state, metrics and the clients' states it changed."""
    current = tff.framework.get_context_stack().current
    run = getattr(current, 'run_parts', one_by_one)
    sums: list[Any] = []
    states: list[Any] = []
    for task, output in zip(
      tasks, run(exchange.partial, self._arrays, shared, tasks), strict=True
    ):
      if sums and not self._built.in_groups:
        sums = [tf.nest.map_structure(np.add, sums[0], output.sums)]
      else:
        sums.append(output.sums)
      if task.states:
        if len(output.client_states) != len(task.data):
          raise ValueError(
            f'{len(output.client_states)} states came back for {len(task.data)} clients'
          )
        states += output.client_states
    state, metrics = exchange.receive(state, sums)
    return state, metrics, states if tasks[0].states else None


def one_by_one(
  partial: tff.Computation,
  arrays: Mapping[str, np.ndarray] | None,
  shared: Sequence[Mapping[str, Any]],
  tasks: Sequence[Task],
) -> Iterator[parts_lib.Partial]:
  """Yields the results of parts, in their order.

  Args:
    partial: Computes a part.
    arrays: See `in_parts`.
    shared: What the exchanges of the round have broadcast so far.
    tasks: The parts.
  """
  known = collections.OrderedDict(
    (name, value) for values in shared for name, value in values.items()
  )
  for task in tasks:
    data = [
      value if isinstance(value, tf.data.Dataset) else value.dataset(arrays or {})
      for value in task.data
    ]
    yield partial(known, *task.states, data)


def _tasks(
  exchange: parts_lib.ExchangeParts,
  states: Sequence[Any] | None,
  data: Sequence[Any],
  cuts: Sequence[slice],
) -> list[Task]:
  """Returns the parts of an exchange, whose clients have a state if it takes any."""
  if states is None or len(exchange.partial.type_signature.parameter) < 3:
    return [Task((), data[cut]) for cut in cuts]
  return [Task((states[cut],), data[cut]) for cut in cuts]


def _cut(count: int, parts: int) -> list[slice]:
  """Returns the slices of values that are the parts; their sizes differ by one at most.

  Without values, as in a round without clients, there is one empty part.
  """
  if not count:
    return [slice(0, 0)]
  ends = [count * k // parts for k in range(parts + 1)]
  return [slice(start, end) for start, end in itertools.pairwise(ends) if start < end]
