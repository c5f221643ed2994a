r"""Runs TFF's worker on this machine, for runs that are driven from another machine.

  python -m binaries.worker --port=7001 --i_trust_this_network

The worker computes what runs with `--runtime=hosts --worker_addresses=HOST:7001,...`
send it, with the same settings as a worker that a run starts itself. It ends with this
program: on SIGTERM, Ctrl-C, or however else this program ends.

TFF's worker listens on all addresses of its machine, has no authentication and executes
whatever it is sent. It cannot listen on localhost only: a firewall must keep others
from its port (docs/hosts.md shows this for systemd and docker).
"""

import os
import signal
import threading

from absl import flags

from binaries.flags import paths
from binaries.flags import program
from binaries.flags import trust
from tff_ssl.execution import worker_process

_PORT = flags.DEFINE_integer(
  'port', None, 'Port to listen on.', lower_bound=1, upper_bound=65535
)
_CONCURRENCY = flags.DEFINE_integer(
  'concurrency',
  None,
  'Computations executed at the same time; by default the number of cores.',
  lower_bound=1,
)
_INTRA_OP_THREADS = flags.DEFINE_integer(
  'intra_op_threads', 1, 'Threads of one TensorFlow operation.', lower_bound=1
)
_LOG = paths.define('log_path', None, "File for the worker's output.")
_POLL_SECONDS = 0.5


def main() -> None:
  """Starts the worker, and waits until it or this program ends.

  Raises:
    ValueError: If there is no port, or nobody vouches that strangers cannot reach it.
    OSError: If the port is taken, or the worker ends by itself.
  """
  if _PORT.value is None:
    raise ValueError('--port is not given; it must be that of --worker_addresses.')
  if not trust.TRUSTED.value:
    raise ValueError(
      f"TFF's worker listens on port {_PORT.value} of all addresses of this machine "
      'and executes whatever anyone sends it; --i_trust_this_network must be given, '
      'to confirm that no stranger can reach it (docs/hosts.md).'
    )
  worker = worker_process.Worker(
    _CONCURRENCY.value or len(os.sched_getaffinity(0)),
    _INTRA_OP_THREADS.value,
    _LOG.value,
    _PORT.value,
  )
  stop = threading.Event()
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: stop.set())
  try:
    if worker.wait_until_it_listens(stop.is_set):
      print(f'TFF worker {worker.pid} listens on port {_PORT.value}', flush=True)
    while worker.is_alive() and not stop.wait(_POLL_SECONDS):
      pass
    if not stop.is_set():
      raise ChildProcessError(worker.describe_death())
  finally:
    worker.stop()


if __name__ == '__main__':
  program.run(main)
