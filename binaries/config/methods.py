"""Methods: the algorithm that minimises an objective, with its own settings.

Each kind says which fields of a run it does not use; everything else of a run is the
same for all methods (`run_config`).
"""

import dataclasses
from typing import ClassVar

from tff_ssl.computing import kinds

# Fields of clients that average without a server's weights.
WEIGHTING = 'clients.weighting'
PERSONAL = (
  'evaluation.personal',
  'evaluation.personal_clients',
  'evaluation.export_clients',
)
FEDERATED = ('aggregation', 'runtime')
LABELS = ('labels',)
START = ('init_from',)


@dataclasses.dataclass(frozen=True)
class Method(kinds.Kind):
  """An algorithm.

  Attributes:
    kind: Name of the method.
    family: Module of `binaries.building` that builds it.
    objective: The objective for which it was made; none: it is for any.
    unused: Names of the fields of a run that it does not use.
    federated: Whether its rounds take cohorts of clients; otherwise they take batches
      drawn from all examples.
    steps: Whether clients take gradient steps on all of their examples, instead of
      training for epochs of batches.
    has_clients: Whether clients train.
  """

  kind: ClassVar[str] = ''
  family: ClassVar[str] = 'averaging'
  objective: ClassVar[str | None] = None
  unused: ClassVar[tuple[str, ...]] = (*LABELS, *PERSONAL)
  federated: ClassVar[bool] = True
  steps: ClassVar[bool] = False
  has_clients: ClassVar[bool] = True


@dataclasses.dataclass(frozen=True)
class FedAvg(Method):
  """Federated averaging (McMahan et al., AISTATS 2017)."""

  kind: ClassVar[str] = 'fedavg'
  unused: ClassVar[tuple[str, ...]] = LABELS


@dataclasses.dataclass(frozen=True)
class FedSSL(Method):
  """FedAvg in which target or key networks, and queues, stay on their client.

  Attributes:
    reset_target: Whether the target or key network that a client keeps starts each
      round as the global one; a queue is kept.
  """

  kind: ClassVar[str] = 'fed_ssl'
  reset_target: bool = False


@dataclasses.dataclass(frozen=True)
class Personal(Method):
  """A method whose clients have their own models."""

  unused: ClassVar[tuple[str, ...]] = (*LABELS, *START)
