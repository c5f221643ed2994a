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
    parts: Parts in which the clients of a round are computed; none: 8 with ray, and
      otherwise the round is not divided. Rounding of the numbers depends on it, but not
      on the runtime.
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
  """TFF's worker, another process; its numbers differ in their last digits."""

  kind: ClassVar[str] = 'worker'


@dataclasses.dataclass(frozen=True)
class Ray(Runtime):
  """Actors of Ray on one or many machines, any of which may die (docs/machines.md).

  Attributes:
    address: Of a cluster, or auto for this machine's; none: Ray runs here, for this
      run.
    actors: Processes that compute; none: as many as the machines have room for.
    cpus: Packs that an actor without a GPU computes at the same time.
    gpus: GPUs of an actor, or a share of one; 0: none.
  """

  kind: ClassVar[str] = 'ray'
  address: str | None = roles.free(None, path=True)
  actors: kinds.Count | None = roles.free(None)
  cpus: kinds.Count = roles.free(1)
  gpus: kinds.NotNegative = roles.free(0.0)


@dataclasses.dataclass(frozen=True)
class Sites(Runtime):
  """Sites that hold their own data and send sums, by messages (docs/sites.md).

  Attributes:
    mailbox: Folder of the messages.
    keys: Folder of the coordinator's own key and of the sites' public ones.
    names: The sites, as in north/south; none: all whose public keys are there.
    fewest: Sites that a round must have; none: all of them.
    deadline: Seconds after which a site that has not answered is left out.
    masked: Whether sites mask their sums in pairs, so that only totals can be read.
    clients: Clients that each site has at least, on which the ledger of a private run
      relies; none: any number.
    classes: Names of classes by which sites that have labels judge the encoder, as in
      benign/malignant; none: it is judged without labels alone.
  """

  kind: ClassVar[str] = 'sites'
  mailbox: str | None = roles.free(None, path=True)
  keys: str | None = roles.free(None, path=True)
  names: tuple[str, ...] | None = None
  fewest: kinds.Count | None = roles.free(None)
  deadline: kinds.Positive = roles.free(600.0)
  masked: bool = False
  clients: kinds.Count | None = None
  classes: tuple[str, ...] | None = roles.neutral(None)


RUNTIMES: dict[str, type[Runtime]] = {
  InProcess.kind: InProcess,
  Worker.kind: Worker,
  Ray.kind: Ray,
  Sites.kind: Sites,
}
