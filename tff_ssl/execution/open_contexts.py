"""The execution contexts that `contexts` opens, and how each ends.

A context belongs to the process that opened it. A fork of that process has none of its
threads: there the context refuses every call at once and ends nothing.
"""

import collections
from collections.abc import Callable
import os
import threading
import time
from typing import Any, Self

import grpc
import tensorflow_federated as tff

from tff_ssl.computing import assertions
from tff_ssl.computing import process_owner
from tff_ssl.execution import executors
from tff_ssl.execution import in_process
from tff_ssl.execution import internals
from tff_ssl.execution import resources
from tff_ssl.execution import worker_health
from tff_ssl.execution import worker_process

_CONNECT_SECONDS = 60.0
# For a worker that has answered before.
_RECONNECT_SECONDS = 20.0

# TFF's default context is per thread.
_threads = threading.local()
# The default context when this module is imported: that of `import
# tensorflow_federated`, unless the program has set its own before.
_OF_IMPORT = tff.framework.get_context_stack().current


class Context:
  """An open execution context; see `contexts.local` and its siblings.

  Attributes:
    tff_context: The context that TFF uses.
  """

  def __init__(self, context: tff.framework.SyncContext):
    """Becomes TFF's default context.

    Args:
      context: What executes computations.
    """
    self.tff_context = context
    self._owner = process_owner.Owner()
    self._closed = False
    _enter(self)

  @property
  def worker_pid(self) -> int | None:
    """Process id of the worker; None if there is none."""
    return None

  def memory(self) -> collections.OrderedDict[str, float]:
    """Returns the current resident MiB of `driver` and, if there is one, `worker`."""
    return resources.memory(self._pids())

  def peak_memory(self) -> collections.OrderedDict[str, float]:
    """Returns the highest resident MiB so far of `driver` and `worker`."""
    return resources.peak_memory(self._pids())

  def cpu_seconds(self) -> collections.OrderedDict[str, float]:
    """Returns CPU seconds so far, all threads, of `driver` and `worker`."""
    return resources.cpu_seconds(self._pids())

  def close(self) -> None:
    """Ends the context, and its own threads or worker; idempotent.

    The context that was open around it, if any, becomes the default again. In a fork of
    the process that opened the context, nothing is ended.
    """
    if self._closed or not self._owner.is_here:
      return
    self._closed = True
    _leave(self)
    self._end()

  def __enter__(self) -> Self:
    return self

  def __exit__(self, *_: object) -> None:
    self.close()

  def _end(self) -> None:
    """Ends what executes computations: threads, connections, a worker of our own."""

  def _pids(self) -> collections.OrderedDict[str, int]:
    return collections.OrderedDict(driver=os.getpid())


class InProcessContext(Context):
  """A context of this process; see `contexts.in_process`."""

  def __init__(self, context: in_process.InProcess):
    """Becomes TFF's default context."""
    self._in_process = context
    super().__init__(context)

  def _end(self) -> None:
    self._in_process.close()


class WorkerContext(Context):
  """A context of a worker; see `contexts.local`."""

  def __init__(self, worker: worker_process.Worker, optimize_graphs: bool = True):
    """Connects to a worker and becomes TFF's default context.

    Args:
      worker: The worker, which ends with this context.
      optimize_graphs: See `contexts.local`.

    Raises:
      worker.LostError: If the worker has ended; later, from any call, if it has ended
        or has not answered for too long.
      ConnectionError: If it does not answer at all.
    """
    self.address = worker.address
    self._worker = worker
    self._lost = ''
    self._executors = executors.Executors(self._make_executor)
    self._channel = grpc.insecure_channel(self.address, executors.CHANNEL_OPTIONS)
    self._stub = tff.framework.RemoteExecutorGrpcStub(self._channel)
    self._watch: worker_health.Watch | None = None
    try:
      self._wait_until_ready(_CONNECT_SECONDS)
    except BaseException:
      self._end()
      raise
    built = executors.build_context(self._executors, optimize_graphs)
    super().__init__(_Guarded(built, self._check))
    self._watch = worker_health.Watch(self.address, self._give_up)

  @property
  def worker_pid(self) -> int | None:
    """Process id of the worker."""
    return self._worker.pid

  def _end(self) -> None:
    if self._watch is not None:
      self._watch.stop()
    self._worker.stop()
    self._channel.close()

  def _pids(self) -> collections.OrderedDict[str, int]:
    pids = super()._pids()
    if not self._closed:
      pids['worker'] = self._worker.pid
    return pids

  def _check(self) -> None:
    """Raises an error if nothing can be computed."""
    self._owner.check('the execution context')
    if self._lost:
      raise worker_process.LostError(self._lost)

  def _give_up(self, silent: float) -> None:
    """Ends calls that wait for an answer; called by the watching thread."""
    self._lost = (
      f'the TFF worker at {self.address}, process {self._worker.pid}, has not answered '
      f'for {silent:.0f} s'
    )
    if self._worker.is_alive():
      # The worker is stopped or hangs: its calls would never return.
      self._worker.stop()
    else:
      self._lost = self._worker.describe_death()

  def _wait_until_ready(self, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not self._stub.is_ready:
      if self._lost:
        raise worker_process.LostError(self._lost)
      if not self._worker.is_alive():
        raise worker_process.LostError(self._worker.describe_death())
      if time.monotonic() > deadline:
        raise ConnectionError(
          f'no TFF worker answers at {self.address} in {seconds:.0f} s:\n'
          f'{self._worker.log_tail()}'
        )
      time.sleep(0.01)

  def _make_executor(
    self, cardinalities: dict[tff.framework.PlacementLiteral, int]
  ) -> tff.framework.RemoteExecutor:
    """Returns an executor for one number of clients.

    When the connection is lost, TFF repeats a call forever, and calls this each time.
    If the worker has died, an error ends that here.
    """
    if self._closed:
      raise RuntimeError('the execution context is closed')
    self._wait_until_ready(_RECONNECT_SECONDS)
    return executors.build_executor(self._stub, cardinalities)


class _Guarded(tff.framework.SyncContext):
  """A TFF context that raises our own error when its worker is lost."""

  def __init__(self, context: tff.framework.SyncContext, check: Callable[[], None]):
    """Initializes the context.

    Args:
      context: What executes computations.
      check: Raises an error if nothing can be executed. Called before each call, and
        after a call that failed.
    """
    self._context = context
    self._check = check

  def invoke(self, comp: Any, arg: Any) -> Any:
    """Invokes a computation; see `tff.framework.SyncContext`."""
    self._check()
    try:
      return self._context.invoke(comp, arg)
    except Exception as error:
      # gRPC's error about a closed connection does not say why it was closed.
      try:
        self._check()
      except worker_process.LostError as lost:
        raise lost from error
      if sentence := assertions.sentence_of(error):
        raise ValueError(sentence) from error
      raise


class _Closed(tff.framework.SyncContext):
  """The default context after ours: it refuses every call."""

  def invoke(self, comp: Any, arg: Any) -> Any:
    """Raises RuntimeError."""
    del comp, arg
    raise RuntimeError(
      'No execution context is open; a computation must be called inside one, as in '
      '`with contexts.in_process():`.'
    )


def remove_default() -> None:
  """Removes the default context that `import tensorflow_federated` has set.

  For programs that may end without having opened one of our contexts: TFF's own context
  would leave a worker behind, and complains when the interpreter deletes it at exit.
  Every call outside of a context is then an error.
  """
  tff.framework.set_default_context(_Closed())


def _enter(execution: Context) -> None:
  """Makes an open context TFF's default."""
  internals.remember_types()
  opened = _open_here()
  if not opened:
    _threads.before = tff.framework.get_context_stack().current
  tff.framework.set_default_context(execution.tff_context)
  opened.append(execution)


def _leave(execution: Context) -> None:
  """Makes the context around a closed one TFF's default again, ours or a program's.

  If the outer context is that of `import tensorflow_federated`, there is no default
  afterwards: that context would start a worker at the first call and never end it.
  """
  outer = _open_here()
  if execution in outer:
    outer.remove(execution)
  # Contexts are per thread, and another context may have become the default since.
  if tff.framework.get_context_stack().current is execution.tff_context:
    if outer:
      tff.framework.set_default_context(outer[-1].tff_context)
    elif _threads.before is _OF_IMPORT:
      remove_default()
    else:
      tff.framework.set_default_context(_threads.before)


def _open_here() -> list[Context]:
  """Returns the open contexts of this thread, the innermost last."""
  if not hasattr(_threads, 'contexts'):
    _threads.contexts = []
  contexts: list[Context] = _threads.contexts
  return contexts
