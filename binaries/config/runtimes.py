"""What executes the rounds of a run."""

import dataclasses
from typing import ClassVar

from tff_ssl.computing import kinds
from tff_ssl.settings import roles


@dataclasses.dataclass(frozen=True)
class Runtime(kinds.Kind):
  """What executes TFF's computations, and how a round is laid out.

  Attributes:
    packs: TFF values into which the simulated clients of a round are packed; none: one
      per core; 0: one per client.
    parts: Parts in which the clients of a round are computed; none: 8 with hosts, and
      otherwise the round is not divided. Rounding of the numbers depends on it, but on
      neither runtime nor hosts.
  """

  kind: ClassVar[str] = ''
  packs: kinds.Natural | None = roles.neutral(None)
  parts: kinds.Count | None = roles.neutral(None)


@dataclasses.dataclass(frozen=True)
class InProcess(Runtime):
  """This process, on the GPUs that TensorFlow sees, or otherwise on the CPU."""

  kind: ClassVar[str] = 'in_process'


@dataclasses.dataclass(frozen=True)
class Worker(Runtime):
  """TFF's worker, another process; its numbers differ in their last digits.

  Attributes:
    address: host:port of a worker that runs elsewhere; none: it is started here.
    trust: Whether TFF's workers may be reached over the network: they execute whatever
      anyone sends them, and nothing is encrypted.
  """

  kind: ClassVar[str] = 'worker'
  address: str | None = roles.free(None, path=True)
  trust: bool = roles.free(False, path=True)


@dataclasses.dataclass(frozen=True)
class Hosts(Runtime):
  """Workers on many hosts, any of which may die (docs/hosts.md).

  Attributes:
    addresses: host:port of each worker.
    timeout: Seconds after which a host that does not answer is given up. Hosts answer
      while they compute, however long that takes.
    trust: Whether TFF's workers may be reached over the network: they execute whatever
      anyone sends them, and nothing is encrypted.
  """

  kind: ClassVar[str] = 'hosts'
  addresses: tuple[str, ...] = roles.free((), path=True)
  timeout: kinds.Positive = roles.free(30.0)
  trust: bool = roles.free(False, path=True)


RUNTIMES: dict[str, type[Runtime]] = {
  InProcess.kind: InProcess,
  Worker.kind: Worker,
  Hosts.kind: Hosts,
}
