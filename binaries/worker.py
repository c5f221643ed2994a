r"""Runs TFF's worker on this machine, for runs that are driven from another machine.

  python -m binaries.worker --port=7001 --trust

The worker computes what runs with `--runtime=hosts:addresses=HOST:7001/...` send
it, with the same settings as a worker that a run starts itself. It ends with this
program: on SIGTERM, Ctrl-C, or however else this program ends.

TFF's worker listens on all addresses of its machine, has no authentication and executes
whatever it is sent. It cannot listen on localhost only: a firewall must keep others
from its port (docs/hosts.md shows this for systemd).
"""

import dataclasses
import os
import signal
import threading
from typing import Annotated

from binaries.launching import program
from tff_ssl.computing import kinds
from tff_ssl.execution import worker_process

_POLL_SECONDS = 0.5


@dataclasses.dataclass(frozen=True)
class Options:
  """A worker of this machine.

  Attributes:
    port: The port to listen on, as in the addresses of --runtime=hosts.
    trust: Whether it is certain that no stranger can reach the port.
    concurrency: Computations executed at the same time; none: the number of cores.
    intra_op_threads: Threads of one TensorFlow operation.
    log_path: File for the worker's output.
  """

  port: Annotated[int, kinds.Range(1, 65535)]
  trust: bool = False
  concurrency: kinds.Count | None = None
  intra_op_threads: kinds.Count = 1
  log_path: str | None = None


def main(options: Options) -> None:
  """Starts the worker, and waits until it or this program ends.

  Args:
    options: The worker.

  Raises:
    ValueError: If nobody vouches that strangers cannot reach it.
    OSError: If the port is taken, or the worker ends by itself.
  """
  if not options.trust:
    raise ValueError(
      f"TFF's worker listens on port {options.port} of all addresses of this machine "
      'and executes whatever anyone sends it; --trust must be given, to confirm that '
      'no stranger can reach it (docs/hosts.md).'
    )
  worker = worker_process.Worker(
    options.concurrency or len(os.sched_getaffinity(0)),
    options.intra_op_threads,
    options.log_path,
    options.port,
  )
  stop = threading.Event()
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: stop.set())
  try:
    if worker.wait_until_it_listens(stop.is_set):
      print(f'TFF worker {worker.pid} listens on port {options.port}', flush=True)
    while worker.is_alive() and not stop.wait(_POLL_SECONDS):
      pass
    if not stop.is_set():
      raise ChildProcessError(worker.describe_death())
  finally:
    worker.stop()


if __name__ == '__main__':
  program.run('worker')
