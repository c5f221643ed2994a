r"""Pretrains an encoder with FedAvg over any objective, or centrally with the same.

  python -m binaries.fedavg_ssl --task=cifar10 --data_dir=~/tensorflow_datasets \
      --objective=simsiam --partition=shares:alpha=0.1,clients=5 --participation=1 \
      --clients=epochs=5,batch_size=128,learning_rate=0.3,momentum=0.9 \
      --clients=schedule=cosine --rounds=100 --run_dir=runs/simsiam

The algorithms: `fedavg`; `fedprox` (with --clients=proximal_weight); `fedbn` (batch
norm stays on the client); `scaffold`; `l_dawa`; `fed_ssl` (FedAvg in which BYOL's
target, or MoCo's key networks and queue, stay on their client between rounds);
`centralized` (local training on as many examples per round, drawn from all).
The objective `supervised` has all labels: federated, it is Dec-SL, and the probes of
its encoder are Dec-SLRep. `fedu2` takes SimCLR, SimSiam and BYOL; `orchestra` and `ssd`
have an objective of their own.

Optimizers, rates, batches and views of its rows are ours (docs/recipes.md); heads,
temperatures and weights are those of the objectives' papers.
"""

import dataclasses
from typing import ClassVar

from binaries import experiment
from binaries.config import encoders
from binaries.config import methods
from binaries.config import objectives
from binaries.config import programs
from binaries.config import run_config
from binaries.config import training
from binaries.launching import program
from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class FedProx(methods.Method):
  """FedAvg with a proximal term (Li et al., MLSys 2020): clients.proximal_weight."""

  kind: ClassVar[str] = 'fedprox'


@dataclasses.dataclass(frozen=True)
class FedBN(methods.Method):
  """FedAvg in which batch norm stays on the client (Li et al., ICLR 2021)."""

  kind: ClassVar[str] = 'fedbn'
  unused: ClassVar[tuple[str, ...]] = (
    *methods.LABELS,
    *methods.PERSONAL,
    *methods.START,
  )


@dataclasses.dataclass(frozen=True)
class Scaffold(methods.Method):
  """SCAFFOLD (Karimireddy et al., ICML 2020)."""

  kind: ClassVar[str] = 'scaffold'


@dataclasses.dataclass(frozen=True)
class LDawa(methods.Method):
  """L-DAWA (Rehman et al., ICCV 2023)."""

  kind: ClassVar[str] = 'l_dawa'


@dataclasses.dataclass(frozen=True)
class FedU2(methods.Method):
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
  uniformity_weight: kinds.NotNegative = 0.01
  tau: kinds.Positive = 1.0
  unified: bool = True
  sketch_size: kinds.Count = 4096


@dataclasses.dataclass(frozen=True)
class Orchestra(methods.Method):
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
class SSD(methods.Method):
  """SSD (Fang et al., ICCV 2025): clients in dimensions of their own."""

  kind: ClassVar[str] = 'ssd'
  objective: ClassVar[str | None] = 'ssd'


@dataclasses.dataclass(frozen=True)
class Centralized(methods.Method):
  """Clients' training on as many examples per round, drawn from all."""

  kind: ClassVar[str] = 'centralized'
  unused: ClassVar[tuple[str, ...]] = (
    *methods.Method.unused,
    *methods.FEDERATED,
    'server',
    methods.WEIGHTING,
    'clients.proximal_weight',
  )
  federated: ClassVar[bool] = False


# The objectives that any method of averaging minimises.
OBJECTIVES: tuple[objectives.Objective, ...] = (
  objectives.Simsiam(),
  objectives.Simclr(),
  objectives.MocoV1(),
  objectives.MocoV2(),
  objectives.Byol(),
  objectives.Swav(),
  objectives.Dino(),
  objectives.Cco(),
  # Summed over 256 dimensions, the distance of two views outweighs their variance 256
  # times: at any rate encodings shrink to a point, whose loss is the least.
  objectives.Vicreg(mean_distance=True),
  objectives.Spectral(),
  objectives.Lejepa(),
  objectives.Uniformity(),
  objectives.Mae(),
  objectives.Supervised(),
)
_METHODS: tuple[methods.Method, ...] = (
  methods.FedAvg(),
  FedProx(),
  FedBN(),
  methods.FedSSL(),
  Scaffold(),
  LDawa(),
  Centralized(),
)


# Those that FedU2's paper regularises.
_DISPERSED: tuple[objectives.Objective, ...] = (
  objectives.Simclr(),
  objectives.Simsiam(),
  objectives.Byol(),
)


def _has_sgd(objective: objectives.Objective) -> bool:
  """Returns whether clients have SGD and the views of papers."""
  # By Adam, DINO's encodings of bright shapes on black collapse.
  is_dino = isinstance(objective, objectives.Dino)
  return objective.batch_norm or objective.labelled or is_dino


def _clients(
  method: methods.Method, objective: objectives.Objective
) -> training.Clients:
  """Adam in small batches, or SGD with momentum.

  Adam's steps have the same length whatever a loss sums over: at the rate of SGD that
  suits SimCLR, encodings of CCO collapse. In batches of 128 the clients of FedAvg take
  too few steps between two averages (docs/recipes.md). SCAFFOLD needs plain SGD.
  """
  if isinstance(method, Scaffold):
    rate = 1.0 if objective.batch_norm else 0.1
    if isinstance(objective, objectives.Cco | objectives.Vicreg):
      rate = 0.003
    return training.SgdClients(learning_rate=rate, batch_size=128)
  if _has_sgd(objective):
    rate = 0.3 if objective.batch_norm else 0.03
    return training.SgdClients(learning_rate=rate, momentum=0.9, batch_size=128)
  rate, batch_size = (4e-3, 256) if isinstance(method, Centralized) else (2e-3, 32)
  return training.AdamClients(
    kind='adam', learning_rate=rate, schedule='cosine', batch_size=batch_size
  )


def _row(
  method: methods.Method, objective: objectives.Objective
) -> run_config.RunConfig:
  """Five clients that differ, as in Dec-SSL."""
  # Without batch norm, clients of FedBN have nothing to keep.
  batch_norm = objective.batch_norm or isinstance(method, FedBN)
  return run_config.RunConfig(
    method,
    objective,
    partition='shares:alpha=0.1,clients=5',
    clients_per_round=5,
    encoder=encoders.suited(objective, batch_norm),
    augmentation='byol_no_blur' if _has_sgd(objective) else 'small',
    clients=_clients(method, objective),
  )


PROGRAM = programs.Program(
  'fedavg_ssl',
  programs.rows(
    *(
      _row(method, objective)
      for method in _METHODS
      for objective in OBJECTIVES
      # Its transformer has no batch norm for clients to keep.
      if not (isinstance(method, FedBN) and isinstance(objective, objectives.Mae))
    ),
    *(_row(FedU2(), objective) for objective in _DISPERSED),
    _row(Orchestra(), objectives.Orchestra()),
    _row(SSD(), objectives.Ssd()),
  ),
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('fedavg_ssl')
