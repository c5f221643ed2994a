"""Opens TFF's execution contexts: of a worker, of this process, or of many machines.

Typical use::

  with contexts.local() as execution:
    process = processes.build(dcco.dcco(...), ...)
    state = process.initialize()
    ...
    print(execution.memory())

Inside, every TFF computation called from this thread runs on the worker. Afterwards the
worker is gone: a computation called by mistake fails instead of starting another one.

`in_process` has no worker: computations run in this process, as TensorFlow sessions.
With `ray`, actors on many machines execute the parts of a round.
"""

from collections.abc import Sequence
import importlib.util
import os
import socket

from tff_ssl.computing import checks
from tff_ssl.computing import sessions
from tff_ssl.execution import in_process as in_process_lib
from tff_ssl.execution import open_contexts
from tff_ssl.execution import worker_process

Context = open_contexts.Context
remove_default = open_contexts.remove_default
_CONNECT_SECONDS = 10.0


def local(
  concurrency: int | None = None,
  intra_op_threads: int = 1,
  log_path: str | os.PathLike[str] | None = None,
  optimize_graphs: bool = True,
) -> open_contexts.WorkerContext:
  """Makes a worker TFF's default execution context.

  The result is a context manager; without `with`, call `close()`.

  Args:
    concurrency: Clients executed at the same time; None: the number of cores this
      process may use.
    intra_op_threads: Threads per TensorFlow operation in the worker. One is best if
      clients are small and as many run at once as there are cores; raise it if a round
      has few clients with large batches.
    log_path: File for the started worker's output; None: kept only while it runs.
    optimize_graphs: Whether TensorFlow's Grappler optimizes a computation before its
      first call. That takes seconds, and makes each round faster: switch it off for a
      few small rounds, as in tests.

  Returns:
    The open context.

  Raises:
    ValueError: If an argument is out of range.
    RuntimeError: If the worker does not start, or ends. It is a
      `worker_process.LostError`, in later calls too, if the worker has died or has not
      answered for too long.
  """
  concurrency = _checked(concurrency, intra_op_threads)
  worker = worker_process.Worker(concurrency, intra_op_threads, log_path)
  return open_contexts.WorkerContext(worker, optimize_graphs)


def in_process(
  device: str | Sequence[str] | None = None,
  concurrency: int | None = None,
  intra_op_threads: int = 1,
  optimize_graphs: bool = True,
) -> open_contexts.InProcessContext:
  """Makes this process TFF's default execution context.

  The result is a context manager; without `with`, call `close()`. On the CPU the
  numbers equal those of `local` with the same arguments up to the rounding of float32:
  the worker brings its own TensorFlow, which was compiled differently. The losses of a
  first round differ by 1e-7 at most; from round to round the difference grows.

  Args:
    device: 'cpu'; 'gpu', all that TensorFlow sees; a list of names of TensorFlow's
      devices; None: the GPUs if there are any, otherwise the CPU. Several devices
      compute clients (or packs) in turn.
    concurrency: Clients computed at the same time on each device; None: 1 on a GPU; on
      all CPUs together, the number of cores this process may use.
    intra_op_threads: Threads per TensorFlow operation, see `local`. Everything else in
      this process uses TensorFlow's own threads.
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
    concurrency = max(1, sessions.cores() // len(devices))
  concurrency = _checked(concurrency, intra_op_threads)
  return open_contexts.InProcessContext(
    in_process_lib.InProcess(devices, concurrency, intra_op_threads, optimize_graphs)
  )


def _checked(concurrency: int | None, intra_op_threads: int) -> int:
  """Returns how many clients are computed at the same time, after checks."""
  if concurrency is None:
    concurrency = sessions.cores()
  checks.at_least(1, concurrency=concurrency, intra_op_threads=intra_op_threads)
  return concurrency


def ray(
  address: str | None = None,
  actors: int | None = None,
  cpus: int = 1,
  gpus: float = 0.0,
  optimize_graphs: bool = True,
) -> open_contexts.InProcessContext:
  """Makes this process, with actors of Ray, TFF's default execution context.

  The result is a context manager; without `with`, call `close()`. The actors execute
  the parts of rounds (`partial_rounds`), this process everything else. If an actor or
  its machine dies, Ray repeats the part. The numbers equal those of the same process in
  as many parts in `in_process`, to the bit if the processors are of one kind. They do
  not depend on which machines or actors there are, or on who died. See `ray_parts`.

  Args:
    address: Address of a cluster, as `ray.init` takes it ('auto': the one of this
      machine); None: Ray is started on this machine, and ends with this context.
    actors: How many processes compute; None: one for each `cpus` cores of all machines,
      or for each `gpus` GPUs.
    cpus: Clients computed at the same time by an actor without a GPU.
    gpus: GPUs of an actor, or a share of one; 0: it has none.
    optimize_graphs: See `local`.

  Returns:
    The open context.

  Raises:
    ValueError: If an argument is out of range, or Ray is not installed.
    ConnectionError: If there is no such cluster.
  """
  checks.at_least(1, cpus=cpus)
  checks.at_least(0, gpus=gpus)
  if actors is not None:
    checks.at_least(1, actors=actors)
  check_ray(address)
  # Only here: Ray is not everybody's.
  from tff_ssl.execution import ray_parts

  settings = ray_parts.Settings(cpus, gpus, optimize_graphs)
  return ray_parts.RayContext(address, actors, settings)


def check_ray(address: str | None) -> None:
  """Refuses what Ray itself would try for minutes, and a Python without Ray.

  Args:
    address: See `ray`.

  Raises:
    ValueError: If Ray is not installed, or this is no address.
    ConnectionError: If nothing answers there.
  """
  if importlib.util.find_spec('ray') is None:
    raise ValueError(
      "Ray is not installed; it must be, by `pip install 'ray==2.60.*'` "
      '(docs/installing.md).'
    )
  if address in (None, 'auto'):
    return
  host, _, port = str(address).rpartition(':')
  if not host or not port.isdecimal():
    raise ValueError(
      f'The address of Ray is {address!r}; it must be auto, or host:port.'
    )
  try:
    socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
  except (OSError, OverflowError) as error:
    raise ConnectionError(f'No Ray answers at {address}: {error}') from error
