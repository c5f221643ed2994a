r"""Pretrains an encoder with FedAvg over any objective, or centrally with the same.

  python -m binaries.fedavg_ssl --task=cifar10 --data_dir=~/tensorflow_datasets \
      --objective=simsiam --partition=shares:alpha=0.1,clients=5 --participation=1 \
      --clients=epochs=5,batch_size=128,learning_rate=0.3,momentum=0.9 \
      --clients=schedule=cosine --rounds=100 --run_dir=runs/simsiam

The algorithms: `fedavg`; `fedprox` (with --clients=proximal_weight); `fedbn` (batch
norm stays on the client); `fed_ssl` (FedAvg in which BYOL's target, or MoCo's key
networks and queue, stay on their client between rounds); `centralized` (the same local
training on as many examples per round, drawn from all). The objective `supervised` has
all labels: federated, it is Dec-SL, and the probes of its encoder are Dec-SLRep.
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
  objectives.Vicreg(),
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


def _clients(
  method: methods.Method, objective: objectives.Objective
) -> training.Clients:
  """SGD with momentum, as in the papers on other objectives than SimCLR.

  A tenth of these rates is too low for objectives with a predictor: SimSiam is then no
  better than an untrained encoder after a hundred epochs of digits
  (docs/stateful_clients.md).
  """
  predicts = objective.batch_norm
  if isinstance(method, Scaffold):
    rate = 1.0 if predicts else 0.1
    return training.SgdClients(learning_rate=rate, batch_size=128)
  rate = 0.3 if predicts else 0.03
  return training.SgdClients(learning_rate=rate, momentum=0.9, batch_size=128)


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
    )
  ),
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('fedavg_ssl')
