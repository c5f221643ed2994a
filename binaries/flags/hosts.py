"""Flags of rounds that many hosts compute, each for a part of the cohort.

    python -m binaries.dcco --runtime=hosts --worker_addresses=localhost:7001,b:7001 ...

Each host runs `python -m binaries.worker`; docs/hosts.md explains everything.
"""

import os
import pathlib

from absl import flags

from binaries.flags import common
from binaries.flags import trust
from tff_ssl.execution import contexts
from tff_ssl.execution import remote_hosts

# Independent of the hosts, so that a run's numbers are independent of them too.
_DEFAULT_PARTS = 8

ADDRESSES = flags.DEFINE_list(
  'worker_addresses', None, 'host:port of each worker, for --runtime=hosts.'
)
PARTS = flags.DEFINE_integer(
  'parts',
  None,
  'Number of parts in which the clients of a round are computed, several for each '
  f'host; with --runtime=hosts {_DEFAULT_PARTS} by default, otherwise the round is not '
  'divided. Rounding of the numbers depends on it, but on neither runtime nor hosts.',
  lower_bound=1,
)
TIMEOUT = flags.DEFINE_float(
  'host_timeout',
  remote_hosts.TIMEOUT,
  'Seconds after which a host that does not answer is given up; if no host answers, so '
  'is the run. Hosts answer while they compute, however long that takes.',
  lower_bound=1.0,
)
# Flags that any algorithm with a worker takes.
NAMES = ('worker_addresses', 'host_timeout', 'i_trust_this_network')
# These flags do not change the numbers of a run.
MAY_DIFFER = NAMES


def settle() -> None:
  """Gives `--runtime` and `--parts` the values that follow from other flags."""
  if common.WORKER_ADDRESS.value is not None:
    common.fill({common.RUNTIME.name: common.WORKER})
  if common.RUNTIME.value == common.HOSTS:
    common.fill({PARTS.name: _DEFAULT_PARTS})


def check() -> None:
  """Checks the flags of hosts.

  Raises:
    ValueError: If an address is missing, malformed, or not allowed, or a flag does
      nothing.
  """
  for name in ('worker_addresses', 'host_timeout'):
    common.refuse_stray(name, common.RUNTIME.name, (common.HOSTS,))
  common.refuse_stray(common.WORKER_ADDRESS.name, common.RUNTIME.name, (common.WORKER,))
  if common.RUNTIME.value == common.HOSTS:
    remote_hosts.check_addresses(ADDRESSES.value or [], trust.TRUSTED.value)
  elif common.WORKER_ADDRESS.value is not None:
    name = common.WORKER_ADDRESS.name
    remote_hosts.check_addresses(
      [common.WORKER_ADDRESS.value], trust.TRUSTED.value, name
    )


def open_context(log_path: pathlib.Path | None = None) -> contexts.Context:
  """Opens the context that executes TFF's computations, as `--runtime` says.

  Args:
    log_path: File for the output of a worker that is started; None: no file.
  """
  if common.RUNTIME.value == common.HOSTS:
    return contexts.hosts(ADDRESSES.value, TIMEOUT.value, trust.TRUSTED.value)
  if common.RUNTIME.value == common.IN_PROCESS:
    return contexts.in_process()
  address = common.WORKER_ADDRESS.value
  return contexts.local(worker_address=address, log_path=log_path)


def num_packs() -> int | None:
  """Returns the number of a round's TFF values: by default one per core and part."""
  if PARTS.value is None or common.PACKS.value is not None:
    return common.PACKS.value
  return PARTS.value * len(os.sched_getaffinity(0))
