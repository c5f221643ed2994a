"""TFF computations as TensorFlow sessions in this process: no worker, no messages.

`contexts.in_process` makes this the default context.
"""

from collections.abc import Sequence
from concurrent import futures
import contextlib
import os
import queue
import threading
from typing import Any
import warnings
import weakref

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import assertions
from tff_ssl.computing import process_owner
from tff_ssl.computing import sessions
from tff_ssl.execution import client_threads
from tff_ssl.execution import internals
from tff_ssl.execution import interpreter
from tff_ssl.execution import local_graph
from tff_ssl.execution import tff_values

# Otherwise oneDNN rebuilds its kernels for every call of some convolutions, as it would
# in the worker: 5 % of the CPU time of DCCO.
_ENVIRONMENT = {'TF_MKL_OPTIMIZE_PRIMITIVE_MEMUSE': 'false'}
_KINDS = ('CPU', 'GPU')
# A call of a computation: where its result goes, the computation and its argument.
_Call = tuple[futures.Future[Any], tff.framework.ConcreteComputation, Any]
# A second Ctrl-C ends a run within two seconds: computations stop at the next step of
# their loops, and a computation without loops is left behind.
_STOP_SECONDS = 1.5


def device_names(device: str | Sequence[str] | None) -> list[str]:
  """Returns the names of devices.

  Args:
    device: 'cpu'; 'gpu', all that TensorFlow sees; a list of names as in
      `tf.config.list_logical_devices`; None: 'gpu' if there is one, otherwise 'cpu'.

  Raises:
    ValueError: If there is no such device.
  """
  seen = tf.config.list_physical_devices('GPU')
  gpus = [f'/device:GPU:{k}' for k in range(len(seen))]
  if device is None:
    return gpus or ['/device:CPU:0']
  if device == 'cpu':
    return ['/device:CPU:0']
  if device == 'gpu' and gpus:
    return gpus
  if device == 'gpu':
    raise ValueError('device is gpu; it must be cpu, because TensorFlow sees no GPU')
  if isinstance(device, str) or not device:
    raise ValueError(
      f'device is {device!r}; it must be cpu, gpu or a list of names of devices'
    )
  return [_device_name(name) for name in device]


def _device_name(name: str) -> str:
  known = {
    f'/device:{kind}:{k}': None
    for kind in _KINDS
    for k in range(len(tf.config.list_logical_devices(kind)))
  }
  try:
    spec = tf.DeviceSpec.from_string(name if name.startswith('/') else f'/{name}')
    device = f'/device:{spec.device_type}:{spec.device_index or 0}'
  except ValueError:
    device = name
  if device not in known:
    raise ValueError(f'device has {name!r}; TensorFlow has {", ".join(known)}')
  return device


def _optimized(
  comp: tff.framework.ConcreteComputation,
) -> tff.framework.ComputationBuildingBlock:
  """Compiles as for the worker."""
  return tff.backends.native.desugar_and_transform_to_native(comp).to_building_block()


def _reduced(
  comp: tff.framework.ConcreteComputation,
) -> tff.framework.ComputationBuildingBlock:
  """Compiles without the optimization of TensorFlow's graphs."""
  block, _ = tff.tensorflow.replace_intrinsics_with_bodies(comp.to_building_block())
  return tff.framework.to_call_dominant(block)


class InProcess(tff.framework.SyncContext):
  """Executes computations here; any thread may call, one computation at a time."""

  def __init__(
    self,
    devices: Sequence[str],
    concurrency: int,
    intra_op_threads: int,
    optimize_graphs: bool,
  ):
    """Starts the threads that compute.

    Args:
      devices: Names, at least one. Client k is computed on device k modulo their
        number, and the server's part on the first.
      concurrency: Clients computed at the same time on each device.
      intra_op_threads: Threads per operation.
      optimize_graphs: Whether Grappler optimizes computations.
    """
    for name, value in _ENVIRONMENT.items():
      os.environ.setdefault(name, value)
    if not sessions.OWN_THREADS:
      warnings.warn(
        'TensorFlow was used before tff_ssl.execution was imported, so each operation '
        'uses the threads of all cores, and the last digits of results depend on the '
        'number of cores: import tff_ssl.execution.contexts first.',
        stacklevel=3,
      )
    self._owner = process_owner.Owner()
    self._devices = devices
    self._config = sessions.session_config(
      devices, concurrency * len(devices), intra_op_threads
    )
    self._compile = _optimized if optimize_graphs else _reduced
    self._clients = client_threads.ClientThreads(len(devices), concurrency)
    # Those of computations that are still referenced, by the identity of these: hashing
    # one would serialise all of it.
    self._programs: dict[int, tuple[Any, interpreter.Interpreter]] = {}
    self._calling = threading.Lock()
    self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
    # The result that a thread waits for.
    self._result: futures.Future[Any] | None = None
    self._closed = False
    threading.Thread(target=self._work, name='tff_ssl_server', daemon=True).start()

  def invoke(self, comp: tff.framework.ConcreteComputation, arg: Any) -> Any:
    """Executes a computation; see `tff.framework.SyncContext`."""
    self._owner.check('the execution context')
    result: futures.Future[Any] = futures.Future()
    with self._calling:
      # Before the check: either `close` sees the result, or this thread `_closed`.
      self._result = result
      try:
        if self._closed:
          raise RuntimeError('the execution context is closed')
        # Another thread computes: in this one a signal would have to wait for the
        # session.
        self._calls.put((result, comp, arg))
        return result.result()
      except tf.errors.InvalidArgumentError as error:
        if sentence := assertions.sentence_of(error):
          raise ValueError(sentence) from error
        raise
      except BaseException:
        if not self._closed and not result.done():
          self._abandon(result)
        raise
      finally:
        self._result = None

  def close(self) -> None:
    """Ends the threads and frees all sessions; a thread that waits gets an error."""
    self._closed = True
    if (result := self._result) is not None:
      with contextlib.suppress(futures.InvalidStateError):
        result.set_exception(
          RuntimeError('the execution context was closed while it computed')
        )
    self._calls.put(None)
    self._clients.stop()
    self._close_programs()

  def _work(self) -> None:
    while (call := self._calls.get()) is not None:
      self._run(*call)
      # While the thread waits, it must not keep the call's data in memory.
      del call

  def _run(
    self, result: futures.Future[Any], comp: tff.framework.ConcreteComputation, arg: Any
  ) -> None:
    # `close` may have ended the call meanwhile.
    with contextlib.suppress(futures.InvalidStateError):
      try:
        result.set_result(self._execute(comp, arg))
      except BaseException as error:
        result.set_exception(error)

  def _execute(self, comp: tff.framework.ConcreteComputation, arg: Any) -> Any:
    signature = comp.type_signature
    program = self._program(comp)
    num_clients = tff_values.num_clients(arg, signature.parameter)
    argument = (
      None
      if signature.parameter is None
      else tff_values.to_interpreter(arg, signature.parameter, num_clients)
    )
    # The clients' data are dropped once they have been used, if nobody else holds them.
    del arg
    return tff_values.from_interpreter(program(argument, num_clients), signature.result)

  def _program(
    self, comp: tff.framework.ConcreteComputation
  ) -> interpreter.Interpreter:
    key = id(comp)
    if key not in self._programs:
      program = interpreter.Interpreter(
        self._compile(comp), self._clients, self._open_graph
      )
      gone = weakref.finalize(comp, self._forget, key)
      gone.atexit = False
      self._programs[key] = gone, program
    return self._programs[key][1]

  def _forget(self, key: int) -> None:
    known = self._programs.pop(key, None)
    # A fork has none of the session's threads: there closing it would never end.
    if known is not None and self._owner.is_here:
      known[1].close()

  def _open_graph(
    self, graph: internals.ComputationGraph, device: int
  ) -> local_graph.LocalGraph:
    return local_graph.LocalGraph(graph, self._devices[device], self._config)

  def _abandon(self, result: futures.Future[Any]) -> None:
    """Stops a call whose caller was interrupted while it waited."""
    # In a thread, because closing a session waits until its run has ended.
    threading.Thread(target=self._close_programs, daemon=True).start()
    futures.wait([result], _STOP_SECONDS)

  def _close_programs(self) -> None:
    programs, self._programs = self._programs, {}
    for gone, program in programs.values():
      gone.detach()
      program.close()
