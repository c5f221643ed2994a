"""What executes the rounds of a run: this process, a worker, or actors of Ray."""

import contextlib
import os
import pathlib

from binaries.config import run_config
from binaries.config import runtimes
from tff_ssl.computing import graph_constants
from tff_ssl.execution import contexts
from tff_ssl.settings import parts as registered

# TFF sends the arguments of a part in one message. Protocol buffers allow 2 GiB, and a
# worker 1.9 GB, which is 10,000 MiB modulo 2^32; the data need room too.
_MOST_BYTES = 1_500_000_000


def check(config: run_config.RunConfig) -> None:
  """Refuses a run on Ray if it is not installed, or not there."""
  if isinstance(config.runtime, runtimes.Ray):
    contexts.check_ray(config.runtime.address)


def as_rows(config: run_config.RunConfig) -> bool:
  """Returns whether values of clients are rows, of arrays that actors hold."""
  return isinstance(config.runtime, runtimes.Ray)


def open_rounds(
  config: run_config.RunConfig, log_path: pathlib.Path
) -> contextlib.AbstractContextManager[contexts.Context | None]:
  """Opens the context that executes the rounds of a run, or none if none is needed."""
  own = config.runtime
  if not config.method.federated:
    return contextlib.nullcontext()
  if isinstance(own, runtimes.Ray):
    return contexts.ray(own.address, own.actors, own.cpus, own.gpus)
  return open_context(config, log_path)


def open_context(
  config: run_config.RunConfig, log_path: pathlib.Path | None = None
) -> contexts.Context:
  """Opens the context that executes TFF's computations, other than rounds in actors.

  Args:
    config: The run.
    log_path: File for the output of a worker that is started; None: no file.
  """
  if isinstance(config.runtime, runtimes.Worker):
    return contexts.local(log_path=log_path)
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
  if not isinstance(config.runtime, runtimes.Worker):
    return None
  return _MOST_BYTES * (config.runtime.parts or 1)


def num_packs(config: run_config.RunConfig) -> int | None:
  """Returns the number of a round's TFF values: by default one per core and part."""
  packs, parts = config.runtime.packs, config.runtime.parts
  if config.aggregation.kind in registered.AGGREGATIONS:
    # It acts on each client.
    return packs or 0
  if parts is None or packs is not None:
    return packs
  return parts * len(os.sched_getaffinity(0))
