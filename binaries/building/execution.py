"""What executes the rounds of a run: this process, a worker, or many hosts."""

import contextlib
import os
import pathlib

from binaries.config import run_config
from binaries.config import runtimes
from tff_ssl.computing import graph_constants
from tff_ssl.execution import contexts
from tff_ssl.execution import remote_hosts

# TFF sends the arguments of a part in one message. Protocol buffers allow 2 GiB, and a
# worker 1.9 GB, which is 10,000 MiB modulo 2^32; the data need room too.
_MOST_BYTES = 1_500_000_000


def check(config: run_config.RunConfig) -> None:
  """Checks the addresses of workers.

  Raises:
    ValueError: If an address is missing, malformed, or not allowed.
  """
  runtime = config.runtime
  if isinstance(runtime, runtimes.Hosts):
    remote_hosts.check_addresses(
      list(runtime.addresses), runtime.trust, 'addresses of --runtime'
    )
  elif isinstance(runtime, runtimes.Worker) and runtime.address is not None:
    remote_hosts.check_addresses(
      [runtime.address], runtime.trust, 'address of --runtime'
    )


def open_context(
  config: run_config.RunConfig, log_path: pathlib.Path | None = None
) -> contexts.Context:
  """Opens the context that executes TFF's computations.

  Args:
    config: The run.
    log_path: File for the output of a worker that is started; None: no file.
  """
  runtime = config.runtime
  if isinstance(runtime, runtimes.Hosts):
    return contexts.hosts(list(runtime.addresses), runtime.timeout, runtime.trust)
  if isinstance(runtime, runtimes.Worker):
    return contexts.local(worker_address=runtime.address, log_path=log_path)
  return contexts.in_process()


def tracing(config: run_config.RunConfig) -> contextlib.AbstractContextManager[None]:
  """Returns the context in which a run's computations are traced.

  Only this process knows what a reference to a constant means.

  Args:
    config: The run.
  """
  if isinstance(config.runtime, runtimes.InProcess):
    return graph_constants.by_reference()
  return contextlib.nullcontext()


def most_bytes(config: run_config.RunConfig) -> int | None:
  """Returns how large the clients' states of a round may be; None: they are not sent.

  Args:
    config: The run.
  """
  if isinstance(config.runtime, runtimes.InProcess):
    return None
  return _MOST_BYTES * (config.runtime.parts or 1)


def num_packs(config: run_config.RunConfig) -> int | None:
  """Returns the number of a round's TFF values: by default one per core and part."""
  packs, parts = config.runtime.packs, config.runtime.parts
  if parts is None or packs is not None:
    return packs
  return parts * len(os.sched_getaffinity(0))
