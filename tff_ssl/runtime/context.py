"""One context manager owns TFF's execution context and what is behind it.

Typical use::

  with context.local() as execution:
    process = dcco.build_dcco(...)
    state = process.initialize()
    ...
    print(execution.memory())

Inside, every TFF computation called from this thread runs on the worker; afterwards the
worker is gone, and a computation called by mistake fails instead of starting another.

`in_process` has no worker: computations run in this process, as TensorFlow's sessions.
`hosts` has computations executed by workers on many machines.
"""

import collections
from collections.abc import Sequence
import os
import threading
import time
import types
from typing import Self

import grpc
import tensorflow_federated as tff

from tff_ssl.runtime import executors
from tff_ssl.runtime import hosts as hosts_lib
from tff_ssl.runtime import in_process as in_process_lib
from tff_ssl.runtime import resources
from tff_ssl.runtime import worker as worker_lib

_CONNECT_SECONDS = 60.0


# TFF's default context is one of a thread.
_threads = threading.local()


def local(
  concurrency: int | None = None,
  intra_op_threads: int = 1,
  worker_address: str | None = None,
  log_path: str | os.PathLike[str] | None = None,
  optimize_graphs: bool = True,
) -> 'WorkerContext':
  """Makes a worker TFF's default execution context.

  The result is a context manager; without `with`, call `close()`.

  Args:
    concurrency: Clients executed at the same time; None: the number of cores this
      process may use.
    intra_op_threads: Threads per TensorFlow operation in the worker. One is best where
      clients are small and as many run at once as there are cores; raise it where few
      clients with large batches make a round.
    worker_address: 'host:port' of a `worker_binary` that runs elsewhere and is left
      alone; None: start one here. It has no authentication: use a trusted network.
    log_path: File for the started worker's output; None: kept only while it runs.
    optimize_graphs: Whether TensorFlow's Grappler optimizes a computation before its
      first call. That takes seconds, and makes each round faster: leave it out where
      few small rounds are run, as in tests.

  Returns:
    The open context.

  Raises:
    ValueError: If an argument is out of range.
    RuntimeError: If the worker does not start, or ends.
    ConnectionError: If nothing answers at the address.
  """
  concurrency = _checked(concurrency, intra_op_threads)
  if worker_address is None:
    worker = worker_lib.Worker(concurrency, intra_op_threads, log_path)
    return WorkerContext(worker.address, worker, optimize_graphs)
  host, _, port = worker_address.rpartition(':')
  if not host or not port.isdecimal():
    raise ValueError(f"worker_address is '{worker_address}': it must be host:port")
  return WorkerContext(worker_address, None, optimize_graphs)


def in_process(
  device: str | Sequence[str] | None = None,
  concurrency: int | None = None,
  intra_op_threads: int = 1,
  optimize_graphs: bool = True,
) -> 'InProcessContext':
  """Makes this process TFF's default execution context.

  The result is a context manager; without `with`, call `close()`. On the CPU the
  numbers are those of `local` with the same arguments, to the bit.

  Args:
    device: 'cpu'; 'gpu', all that TensorFlow sees; a list of names of TensorFlow's
      devices; None: the GPUs where there are some, else the CPU. Of several devices
      each computes a client (or pack) in turn.
    concurrency: Clients computed at the same time on each device; None: on a GPU 1, on
      CPUs together the number of cores this process may use.
    intra_op_threads: Threads per TensorFlow operation, see `local`. Everything else in
      this process has TensorFlow's own.
    optimize_graphs: See `local`.

  Returns:
    The open context.

  Raises:
    ValueError: If an argument is out of range, or there is no such device.
  """
  devices = in_process_lib.device_names(device)
  if concurrency is None and 'GPU' in devices[0]:
    concurrency = 1
  elif concurrency is None:
    concurrency = max(1, len(os.sched_getaffinity(0)) // len(devices))
  concurrency = _checked(concurrency, intra_op_threads)
  return InProcessContext(
    in_process_lib.InProcess(devices, concurrency, intra_op_threads, optimize_graphs)
  )


def _checked(concurrency: int | None, intra_op_threads: int) -> int:
  """Returns the number of clients that are computed at the same time."""
  if concurrency is None:
    concurrency = len(os.sched_getaffinity(0))
  if concurrency < 1:
    raise ValueError(f'concurrency is {concurrency}: it must be at least 1')
  if intra_op_threads < 1:
    raise ValueError(f'intra_op_threads is {intra_op_threads}: it must be at least 1')
  return concurrency


def hosts(
  addresses: Sequence[str],
  timeout: float = hosts_lib.TIMEOUT,
  trusts_network: bool = False,
  optimize_graphs: bool = True,
) -> 'HostsContext':
  """Makes workers on many machines TFF's default execution context.

  The result is a context manager; without `with`, call `close()`. Whatever TFF
  computation is called inside is executed by one of the hosts, and by another if that
  one dies, freezes or answers with garbage. For the clients of a round to be shared out
  among all of them, have the process run in parts::

    with context.hosts(['a:1', 'b:1'], trusts_network=True):
      process = parted.in_parts(dcco.build_dcco(...), parts=8)
      state = process.initialize()
      state, metrics = process.next(state, cohort)

  The numbers are those of the same process in as many parts in any other context, to
  the bit if the processors are of one kind, whichever hosts there are and in whatever
  order they answer.

  Args:
    addresses: 'host:port' of each worker; see `binaries.worker`. They are left alone.
    timeout: Seconds after which a host that does not answer is given up. Hosts answer
      while they compute, for however long.
    trusts_network: Whether addresses may be those of other machines: TFF's workers
      execute what anyone sends them, and nothing is encrypted.
    optimize_graphs: See `local`.

  Returns:
    The open context.

  Raises:
    ValueError: If an argument is out of range, or an address not allowed.
    ConnectionError: If no host answers; later, from any call, if none is left.
  """
  hosts_lib.check_addresses(addresses, trusts_network)
  return HostsContext(hosts_lib.Hosts(addresses, timeout, optimize_graphs))


def remove_default() -> None:
  """Removes the default context that `import tensorflow_federated` has set.

  For programs that may end without having opened a context of ours: TFF's own would
  leave a worker behind, and complains when it is deleted as the interpreter ends.
  """
  tff.test.set_no_default_context()


class Context:
  """An open execution context; see `local` and `in_process`.

  Attributes:
    tff_context: What TFF is given.
  """

  def __init__(self, context: tff.framework.SyncContext):
    """Becomes TFF's default context.

    Args:
      context: What executes computations.
    """
    self.tff_context = context
    self._closed = False
    _enter(self)

  @property
  def worker_pid(self) -> int | None:
    """Process id of the worker, None where it runs elsewhere or there is none."""
    return None

  def memory(self) -> collections.OrderedDict[str, float]:
    """Returns resident MiB now of `driver` and, when it is ours, `worker`."""
    return resources.memory(self._pids())

  def peak_memory(self) -> collections.OrderedDict[str, float]:
    """Returns the highest resident MiB so far of `driver` and `worker`."""
    return resources.peak_memory(self._pids())

  def cpu_seconds(self) -> collections.OrderedDict[str, float]:
    """Returns CPU seconds so far, all threads, of `driver` and `worker`."""
    return resources.cpu_seconds(self._pids())

  def close(self) -> None:
    """Ends what is behind it and removes the context; idempotent.

    The context that was open around it, if there is one, is the default again.
    """
    if self._closed:
      return
    self._closed = True
    _leave(self)
    self._end()

  def __enter__(self) -> Self:
    return self

  def __exit__(
    self,
    exception_type: type[BaseException] | None,
    exception: BaseException | None,
    traceback: types.TracebackType | None,
  ) -> None:
    self.close()

  def _end(self) -> None:
    """Ends what is behind the context."""

  def _pids(self) -> collections.OrderedDict[str, int]:
    return collections.OrderedDict(driver=os.getpid())


class InProcessContext(Context):
  """A context of this process; see `in_process`."""

  def __init__(self, context: in_process_lib.InProcess):
    """Becomes TFF's default context."""
    self._in_process = context
    super().__init__(context)

  def _end(self) -> None:
    self._in_process.close()


class HostsContext(Context):
  """A context of workers on many machines, which it leaves alone; see `hosts`."""

  def __init__(self, hosts: hosts_lib.Hosts):
    """Becomes TFF's default context."""
    self._hosts = hosts
    super().__init__(hosts.tff_context)

  @property
  def connected(self) -> list[str]:
    """The addresses of the hosts that answer now."""
    return self._hosts.connected

  @property
  def repeated(self) -> int:
    """How many tasks had to be given out again so far."""
    return self._hosts.repeated

  def _end(self) -> None:
    self._hosts.close()


class WorkerContext(Context):
  """A context of a worker; see `local`."""

  def __init__(
    self, address: str, worker: worker_lib.Worker | None, optimize_graphs: bool = True
  ):
    """Connects to the worker at `address` and becomes TFF's default context.

    Args:
      address: 'host:port'.
      worker: The process behind the address when it is ours to end.
      optimize_graphs: See `local`.

    Raises:
      RuntimeError: If our worker has ended.
      ConnectionError: If nothing answers.
    """
    self.address = address
    self._worker = worker
    self._executors = executors.Executors(self._make_executor)
    self._channel = grpc.insecure_channel(address, executors.CHANNEL_OPTIONS)
    self._stub = tff.framework.RemoteExecutorGrpcStub(self._channel)
    try:
      self._wait_until_ready()
    except BaseException:
      self._end()
      raise
    super().__init__(
      executors.build_context(self._executors, executors.compiler(optimize_graphs))
    )

  @property
  def worker_pid(self) -> int | None:
    """Process id of the worker, None where it runs elsewhere."""
    return None if self._worker is None else self._worker.pid

  def _end(self) -> None:
    if self._worker is None:
      self._executors.close()
    else:
      self._worker.stop()
    self._channel.close()

  def _pids(self) -> collections.OrderedDict[str, int]:
    pids = super()._pids()
    if self._worker is not None and not self._closed:
      pids['worker'] = self._worker.pid
    return pids

  def _wait_until_ready(self) -> None:
    deadline = time.monotonic() + _CONNECT_SECONDS
    while not self._stub.is_ready:
      if self._worker is not None and not self._worker.is_alive():
        raise RuntimeError(self._worker.describe_death())
      if time.monotonic() > deadline:
        log = '' if self._worker is None else f':\n{self._worker.log_tail()}'
        raise ConnectionError(
          f'no TFF worker answers at {self.address} in {_CONNECT_SECONDS:.0f} s{log}'
        )
      time.sleep(0.01)

  def _make_executor(
    self, cardinalities: dict[tff.framework.PlacementLiteral, int]
  ) -> tff.framework.RemoteExecutor:
    """Returns an executor for one number of clients.

    TFF repeats a call for ever when the connection is lost, and comes here each time:
    a worker that died ends it with an error instead.
    """
    if self._closed:
      raise RuntimeError('the execution context is closed')
    self._wait_until_ready()
    return executors.build_executor(self._stub, cardinalities)


def _enter(execution: Context) -> None:
  """Makes an open context TFF's default."""
  # `import tensorflow_federated` has set a default context of its own that would start
  # a worker at the first call and never end it; this replaces it.
  tff.framework.set_default_context(execution.tff_context)
  _open_here().append(execution)


def _leave(execution: Context) -> None:
  """Makes the context around one that is closed TFF's default, or none."""
  outer = _open_here()
  if execution in outer:
    outer.remove(execution)
  # Contexts are per thread, and another one may have become the default since.
  if tff.framework.get_context_stack().current is execution.tff_context:
    if outer:
      tff.framework.set_default_context(outer[-1].tff_context)
    else:
      tff.test.set_no_default_context()


def _open_here() -> list[Context]:
  """Returns the open contexts of this thread, the innermost last."""
  if not hasattr(_threads, 'contexts'):
    _threads.contexts = []
  contexts: list[Context] = _threads.contexts
  return contexts
