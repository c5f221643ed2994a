"""Methods: the algorithm that minimises an objective, with its own settings.

Each kind says which fields of a run it does not use; everything else of a run is the
same for all methods (`run_config`).
"""

import dataclasses
from typing import ClassVar

from tff_ssl.computing import field_rules
from tff_ssl.computing import kinds
from tff_ssl.settings import roles

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
    family: Group of methods that one module of a program builds.
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
class FedProx(Method):
  """FedAvg with a proximal term (Li et al., MLSys 2020): clients.proximal_weight."""

  kind: ClassVar[str] = 'fedprox'


@dataclasses.dataclass(frozen=True)
class FedBN(Method):
  """FedAvg in which batch norm stays on the client (Li et al., ICLR 2021)."""

  kind: ClassVar[str] = 'fedbn'
  unused: ClassVar[tuple[str, ...]] = (
    *LABELS,
    *PERSONAL,
    *START,
  )


@dataclasses.dataclass(frozen=True)
class Scaffold(Method):
  """SCAFFOLD (Karimireddy et al., ICML 2020)."""

  kind: ClassVar[str] = 'scaffold'


@dataclasses.dataclass(frozen=True)
class LDawa(Method):
  """L-DAWA (Rehman et al., ICCV 2023)."""

  kind: ClassVar[str] = 'l_dawa'


@dataclasses.dataclass(frozen=True)
class FedU2(Method):
  """FedU2 (Liao et al., CVPR 2024): encodings spread out, updates at one rate.

  Attributes:
    uniformity_weight: lambda, weight of the uniform regulariser.
    tau: How far the regulariser keeps its marginals; the smaller, the less of the
      sphere a client need cover.
    unified: Whether the server weighs clients by the unified aggregator; otherwise by
      their examples, as FedAvg does.
    sketch_size: Numbers of the sketch of its update that a client sends.
  """

  kind: ClassVar[str] = 'fedu2'
  rules = (
    field_rules.Rule(
      'sketch_size',
      lambda own: not own.unified,
      'leave it out with unified=false, where it does nothing.',
    ),
    field_rules.Rule(
      'tau',
      lambda own: not own.uniformity_weight,
      'leave it out with uniformity_weight=0, where it does nothing.',
    ),
  )
  uniformity_weight: kinds.NotNegative = 0.01
  tau: kinds.Positive = 1.0
  unified: bool = True
  sketch_size: kinds.Count = 4096


@dataclasses.dataclass(frozen=True)
class Orchestra(Method):
  """Orchestra (Lubana et al., ICML 2022): clusters that all clients share.

  Attributes:
    clusters: G, global clusters.
    local_clusters: L, most clusters of a client.
  """

  kind: ClassVar[str] = 'orchestra'
  objective: ClassVar[str | None] = 'orchestra'
  clusters: kinds.Count = 128
  local_clusters: kinds.Count = 16


@dataclasses.dataclass(frozen=True)
class SSD(Method):
  """SSD (Fang et al., ICCV 2025): clients in dimensions of their own."""

  kind: ClassVar[str] = 'ssd'
  objective: ClassVar[str | None] = 'ssd'


@dataclasses.dataclass(frozen=True)
class Centralized(Method):
  """Clients' training on as many examples per round, drawn from all."""

  kind: ClassVar[str] = 'centralized'
  unused: ClassVar[tuple[str, ...]] = (
    *Method.unused,
    *FEDERATED,
    'server',
    WEIGHTING,
    'clients.proximal_weight',
  )
  federated: ClassVar[bool] = False


@dataclasses.dataclass(frozen=True)
class FedCA(Method):
  """FedCA (Zhang et al., 2020): a dictionary of representations at the server.

  Attributes:
    dictionary_size: m, representations of its examples that a client shares with all.
    alignment_run: Folder of a finished run on public data, whose encoder is the base
      model.
  """

  kind: ClassVar[str] = 'fedca'
  family: ClassVar[str] = 'stateful'
  objective: ClassVar[str | None] = 'fedca'
  unused: ClassVar[tuple[str, ...]] = (
    *LABELS,
    *PERSONAL,
    *START,
  )
  dictionary_size: kinds.Natural = 16
  alignment_run: str | None = roles.path()


@dataclasses.dataclass(frozen=True)
class Dcco(Method):
  """Two rounds of aggregation: encoding statistics, then updates (DCCO, section 3).

  Attributes:
    stale_statistics: Whether the statistics are those of the previous round, which
      saves the first aggregation.
  """

  kind: ClassVar[str] = 'dcco'
  family: ClassVar[str] = 'statistics'
  objective: ClassVar[str | None] = 'cco'
  steps: ClassVar[bool] = True
  stale_statistics: bool = False


@dataclasses.dataclass(frozen=True)
class FedSC(Method):
  """The spectral loss with the others' correlations of the previous round (FedSC)."""

  kind: ClassVar[str] = 'fedsc'
  family: ClassVar[str] = 'statistics'
  objective: ClassVar[str | None] = 'spectral'
  steps: ClassVar[bool] = True


@dataclasses.dataclass(frozen=True)
class CentralizedSteps(Method):
  """A step of the server's optimizer on as many examples as a round, drawn from all."""

  kind: ClassVar[str] = 'centralized_steps'
  family: ClassVar[str] = 'statistics'
  unused: ClassVar[tuple[str, ...]] = (
    *Method.unused,
    *FEDERATED,
    'clients',
  )
  federated: ClassVar[bool] = False


@dataclasses.dataclass(frozen=True)
class _WithServerLabels(Method):
  """A method whose server has labels, and takes the average unchanged."""

  family: ClassVar[str] = 'labels_at_server'
  unused: ClassVar[tuple[str, ...]] = (
    *PERSONAL,
    *START,
    'server',
    WEIGHTING,
  )


@dataclasses.dataclass(frozen=True)
class _Grouped(_WithServerLabels):
  """A method that may average clients' models in groups.

  Attributes:
    grouped: Whether clients are averaged in groups of two and three, or all in one.
    server_weight: Weight of the server's model in a group, in clients; 0 and one group:
      FedAvg.
  """

  grouped: bool = True
  server_weight: kinds.NotNegative = 1.0


@dataclasses.dataclass(frozen=True)
class Fedsup(_Grouped):
  """FedSup: a teacher trained on the server's labels, groups of clients."""

  kind: ClassVar[str] = 'fedsup'
  objective: ClassVar[str | None] = 'fedsup'


@dataclasses.dataclass(frozen=True)
class Fedrgd(_Grouped):
  """FedRGD (Zhang et al., 2021): FixMatch, and groups with the server's model.

  Attributes:
    server_weight: Weight of the server's model in a group, in clients; without it the
      labels reach no model.
  """

  kind: ClassVar[str] = 'fedrgd'
  objective: ClassVar[str | None] = 'fixmatch'
  server_weight: kinds.Positive = 1.0


@dataclasses.dataclass(frozen=True)
class Fedmatch(_WithServerLabels):
  """FedMatch (Jeong et al., ICLR 2021): consistency with helper clients.

  Attributes:
    helpers: H, helper models that a client receives.
    helper_interval: Rounds between rounds with helpers.
  """

  kind: ClassVar[str] = 'fedmatch'
  objective: ClassVar[str | None] = 'fedmatch'
  helpers: kinds.Count = 2
  helper_interval: kinds.Count = 10


@dataclasses.dataclass(frozen=True)
class ServerFinetuned(_WithServerLabels):
  """FedAvg of any objective, fine-tuned in each round on the server's labels."""

  kind: ClassVar[str] = 'server_finetuned'


@dataclasses.dataclass(frozen=True)
class LabelledOnly(_WithServerLabels):
  """Training on the server's labels alone, from scratch."""

  kind: ClassVar[str] = 'labelled_only'
  objective: ClassVar[str | None] = 'supervised'
  unused: ClassVar[tuple[str, ...]] = (
    *_WithServerLabels.unused,
    'clients',
    'clients_per_round',
    'participation',
    'aggregation',
  )
  has_clients: ClassVar[bool] = False
