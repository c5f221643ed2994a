"""Executes a compiled TFF computation in this process, part by part.

TFF compiles a computation to a short list of named values: local TensorFlow
computations, which a few intrinsics apply to values at the server or on each client. It
is translated once into Python functions. Here a value is

- an array, or a data set;
- a tuple of values, for a structure;
- `AtServer` or `OnClients`, for a federated value;
- a function of a value and the number of a device, for a function.

Secure sums are simulated by `secure_sums`.

Clients come in a fixed order, and sums are taken in this order, whichever client is
done first.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import threading
from typing import Any

import tensorflow_federated as tff

from tff_ssl.execution import client_threads
from tff_ssl.execution import internals
from tff_ssl.execution import local_graph
from tff_ssl.execution import secure_sums

# (graph, number of the device) -> its session.
OpenGraph = Callable[[internals.ComputationGraph, int], local_graph.LocalGraph]
# The device that computes the server's part.
_SERVER = 0
# TFF has no public definition of these.
_SECURE_SUM = 'federated_secure_sum'
_SECURE_SUM_BITWIDTH = 'federated_secure_sum_bitwidth'
_SECURE_MODULAR_SUM = 'federated_secure_modular_sum'


@dataclasses.dataclass(frozen=True)
class AtServer:
  """A value at the server."""

  value: Any


@dataclasses.dataclass(frozen=True)
class OnClients:
  """The value of each client, in their order."""

  values: Sequence[Any]


@dataclasses.dataclass(frozen=True)
class _Scope:
  """The scope of a part of a computation: the values that it can name.

  Attributes:
    values: By name.
    num_clients: Number of clients of this call.
    device: Number of the device.
  """

  values: dict[str, Any]
  num_clients: int
  device: int


# A translated part of a computation.
_Part = Callable[[_Scope], Any]


class Interpreter:
  """One compiled computation."""

  def __init__(
    self,
    computation: tff.framework.ComputationBuildingBlock,
    threads: client_threads.ClientThreads,
    open_graph: OpenGraph,
  ):
    """Translates the computation; opens no session yet.

    Args:
      computation: Compiled by TFF.
      threads: They compute clients.
      open_graph: Opens a session.

    Raises:
      ValueError: If the computation has a part that is not known here.
    """
    self._map_clients = threads.map
    self._open_graph = open_graph
    self._locals: dict[tff.framework.CompiledComputation, _Local] = {}
    # Functions of an intrinsic's argument and the number of clients.
    self._intrinsics: dict[str, Callable[[Any, int], Any]] = {
      tff.framework.FEDERATED_AGGREGATE.uri: _aggregate,
      tff.framework.FEDERATED_APPLY.uri: _apply,
      tff.framework.FEDERATED_BROADCAST.uri: lambda x, n: OnClients([x.value] * n),
      tff.framework.FEDERATED_EVAL_AT_CLIENTS.uri: (
        lambda function, n: self._over_clients(function, [None] * n)
      ),
      tff.framework.FEDERATED_EVAL_AT_SERVER.uri: (
        lambda function, _: AtServer(function(None, _SERVER))
      ),
      tff.framework.FEDERATED_MAP.uri: self._map,
      tff.framework.FEDERATED_MAP_ALL_EQUAL.uri: self._map,
      tff.framework.FEDERATED_VALUE_AT_CLIENTS.uri: lambda x, n: OnClients([x] * n),
      tff.framework.FEDERATED_VALUE_AT_SERVER.uri: lambda x, _: AtServer(x),
      tff.framework.FEDERATED_ZIP_AT_CLIENTS.uri: (
        lambda x, n: OnClients([_of_client(x, k) for k in range(n)])
      ),
      tff.framework.FEDERATED_ZIP_AT_SERVER.uri: lambda x, _: AtServer(_of_server(x)),
      _SECURE_MODULAR_SUM: _secure_modular_sum,
      _SECURE_SUM: _secure_sum,
      _SECURE_SUM_BITWIDTH: _secure_sum_bitwidth,
    }
    self._run = self._translate(computation)

  def __call__(self, argument: Any, num_clients: int) -> Any:
    """Executes the computation.

    Args:
      argument: A value, see the module; None if there is no parameter.
      num_clients: Number of clients of this call.

    Returns:
      The value.
    """
    function = self._run(_Scope({}, num_clients, _SERVER))
    return function(argument, _SERVER)

  def close(self) -> None:
    """Cancels running sessions and frees all; they are opened again if needed."""
    for local in self._locals.values():
      local.close()

  def _translate(self, block: tff.framework.ComputationBuildingBlock) -> _Part:
    """Returns a part of the computation as a function."""
    if isinstance(block, tff.framework.Reference):
      name = block.name
      return lambda scope: scope.values[name]
    if isinstance(block, tff.framework.Selection):
      source, index = self._translate(block.source), block.as_index()
      return lambda scope: source(scope)[index]
    if isinstance(block, tff.framework.Struct):
      elements = [self._translate(each) for each in block.children()]
      return lambda scope: tuple([element(scope) for element in elements])
    if isinstance(block, tff.framework.Call):
      return self._translate_call(block)
    if isinstance(block, tff.framework.Lambda):
      return self._translate_lambda(block)
    if isinstance(block, tff.framework.Block):
      return self._translate_block(block)
    if isinstance(block, tff.framework.CompiledComputation):
      local = self._local(block)
      return lambda _: local
    if isinstance(block, tff.framework.Literal):
      value = block.value
      return lambda _: value
    raise ValueError(
      f'the computation has {block.compact_representation()}, which the runtime '
      f'in_process does not execute; it supports {", ".join(self._intrinsics)}'
    )

  def _local(self, block: tff.framework.CompiledComputation) -> '_Local':
    if block not in self._locals:
      graph = internals.graph_of(block)
      self._locals[block] = _Local(functools.partial(self._open_graph, graph))
    return self._locals[block]

  def _translate_call(self, block: tff.framework.Call) -> _Part:
    of_argument = None if block.argument is None else self._translate(block.argument)

    def argument(scope: _Scope) -> Any:
      return None if of_argument is None else of_argument(scope)

    called = block.function
    if isinstance(called, tff.framework.Intrinsic) and called.uri in self._intrinsics:
      intrinsic = self._intrinsics[called.uri]
      return lambda scope: intrinsic(argument(scope), scope.num_clients)
    function = self._translate(called)
    return lambda scope: function(scope)(argument(scope), scope.device)

  def _translate_lambda(self, block: tff.framework.Lambda) -> _Part:
    name, result = block.parameter_name, self._translate(block.result)

    def make(scope: _Scope) -> Any:
      def function(argument: Any, device: int) -> Any:
        values = scope.values if name is None else {**scope.values, name: argument}
        return result(_Scope(values, scope.num_clients, device))

      return function if _computes(block.result) else _Light(function)

    return make

  def _translate_block(self, block: tff.framework.Block) -> _Part:
    steps = [(name, self._translate(value)) for name, value in block.locals]
    result = self._translate(block.result)
    # A value is dropped after its last use: examples and updates of clients are large.
    last: dict[str, int] = {}
    for step, (_, value) in enumerate(block.locals):
      last.update(dict.fromkeys(_references(value), step))
    in_result = _references(block.result)
    dropped = [
      [name for name, at in last.items() if at == step and name not in in_result]
      for step in range(len(steps))
    ]

    def run(scope: _Scope) -> Any:
      values = dict(scope.values)
      inner = _Scope(values, scope.num_clients, scope.device)
      for (name, step), unused in zip(steps, dropped, strict=True):
        values[name] = step(inner)
        for other in unused:
          values.pop(other, None)
      return result(inner)

    return run

  def _over_clients(self, function: Any, values: Sequence[Any]) -> OnClients:
    if isinstance(function, _Light):
      return OnClients([function(value, _SERVER) for value in values])
    return OnClients(self._map_clients(function, values))

  def _map(self, argument: Any, num_clients: int) -> AtServer | OnClients:
    function, placed = argument
    if isinstance(placed, AtServer):
      return _apply(argument, num_clients)
    return self._over_clients(function, placed.values)


def _aggregate(argument: Any, _: int) -> AtServer:
  on_clients, total, accumulate, _, report = argument
  for value in on_clients.values:
    total = accumulate((total, value), _SERVER)
  return AtServer(report(total, _SERVER))


def _apply(argument: Any, _: int) -> AtServer:
  function, at_server = argument
  return AtServer(function(at_server.value, _SERVER))


def _secure_modular_sum(argument: Any, _: int) -> AtServer:
  on_clients, modulus = argument
  return AtServer(secure_sums.modular_sum(_of_some(on_clients), modulus))


def _secure_sum(argument: Any, _: int) -> AtServer:
  on_clients, largest = argument
  return AtServer(secure_sums.bounded_sum(_of_some(on_clients), largest))


def _secure_sum_bitwidth(argument: Any, num_clients: int) -> AtServer:
  on_clients, bitwidth = argument
  return _secure_sum((on_clients, secure_sums.of_bits(bitwidth)), num_clients)


class _Light:
  """A function without any TensorFlow computation: not worth a thread."""

  def __init__(self, function: Callable[[Any, int], Any]):
    self._function = function

  def __call__(self, argument: Any, device: int) -> Any:
    return self._function(argument, device)


class _Local:
  """A local computation; its first call on a device opens a session there."""

  def __init__(self, open_graph: Callable[[int], local_graph.LocalGraph]):
    self._open_graph = open_graph
    self._graphs: dict[int, local_graph.LocalGraph] = {}
    self._opening = threading.Lock()

  def __call__(self, argument: Any, device: int) -> Any:
    with self._opening:
      if device not in self._graphs:
        self._graphs[device] = self._open_graph(device)
      graph = self._graphs[device]
    return graph(argument)

  def close(self) -> None:
    with self._opening:
      while self._graphs:
        self._graphs.popitem()[1].close()


def _parts(
  block: tff.framework.ComputationBuildingBlock,
) -> Iterator[tff.framework.ComputationBuildingBlock]:
  """Yields a part of a computation and everything in it."""
  yield block
  for child in block.children():
    yield from _parts(child)


def _computes(block: tff.framework.ComputationBuildingBlock) -> bool:
  return any(isinstance(part, tff.framework.Call) for part in _parts(block))


def _references(block: tff.framework.ComputationBuildingBlock) -> frozenset[str]:
  """Returns the names that are used in a part of a computation."""
  return frozenset(
    part.name for part in _parts(block) if isinstance(part, tff.framework.Reference)
  )


def _of_some(on_clients: OnClients) -> Sequence[Any]:
  """Returns the values of clients; a secure sum needs at least one."""
  if not on_clients.values:
    raise ValueError('there is no client; a secure sum must have at least one')
  return on_clients.values


def _of_client(value: Any, client: int) -> Any:
  """Returns one client's part of a structure of values on clients."""
  if isinstance(value, tuple):
    return tuple([_of_client(each, client) for each in value])
  return value.values[client]


def _of_server(value: Any) -> Any:
  """Returns the content of a structure of values at the server."""
  if isinstance(value, tuple):
    return tuple([_of_server(each) for each in value])
  return value.value
