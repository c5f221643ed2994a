r"""Pretrains an encoder with DCCO, or with one of the baselines that it compares with.

  python -m binaries.dcco --task=digits --run_dir=runs/digits
  python -m binaries.dcco --task=cifar10 --data_dir=~/tensorflow_datasets \
      --partition=dirichlet:alpha=0,examples=4 --clients_per_round=128 --rounds=1000 \
      --run_dir=runs/cifar10

The methods: `dcco` (of CCO, VICReg, the spectral loss or LeJEPA); `fedsc` (the spectral
loss, with the other clients' correlation matrix of the previous round); `fedavg` (with
the loss within each client); `centralized_steps` (batches with as many examples as a
round, drawn from all; with --objective=supervised from scratch, on a share of the
labels).
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
class CentralizedSteps(methods.Method):
  """A step of the server's optimizer on as many examples as a round, drawn from all."""

  kind: ClassVar[str] = 'centralized_steps'
  family: ClassVar[str] = 'statistics'
  unused: ClassVar[tuple[str, ...]] = (
    *methods.Method.unused,
    *methods.FEDERATED,
    'clients',
  )
  federated: ClassVar[bool] = False


@dataclasses.dataclass(frozen=True)
class Dcco(methods.Method):
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
class FedSC(methods.Method):
  """The spectral loss with the others' correlations of the previous round (FedSC)."""

  kind: ClassVar[str] = 'fedsc'
  family: ClassVar[str] = 'statistics'
  objective: ClassVar[str | None] = 'spectral'
  steps: ClassVar[bool] = True


def _row(
  method: methods.Method, objective: objectives.Objective
) -> run_config.RunConfig:
  """The DCCO paper's server (section 4)."""
  clients = (
    training.StepClients() if method.steps else training.SgdClients(learning_rate=1.0)
  )
  return run_config.RunConfig(
    method,
    objective,
    encoder=encoders.ResNet('resnet8', norm='group'),
    clients=clients,
    server=training.Server(kind='adam', learning_rate=2e-3, schedule='cosine'),
  )


def _fedsc() -> run_config.RunConfig:
  """FedSC: at DCCO's rate it collapses, because the matrices are a round old."""
  row = _row(FedSC(), objectives.Spectral())
  server = dataclasses.replace(row.server, learning_rate=3e-4)
  return dataclasses.replace(row, server=server)


PROGRAM = programs.Program(
  'dcco',
  programs.rows(
    _row(Dcco(), objectives.Cco()),
    _row(Dcco(), objectives.Vicreg()),
    _row(Dcco(), objectives.Spectral()),
    _row(Dcco(), objectives.Lejepa()),
    _fedsc(),
    _row(methods.FedAvg(), objectives.Cco()),
    _row(methods.FedAvg(), objectives.Lejepa()),
    _row(methods.FedAvg(), objectives.Simclr(temperature=0.1)),
    _row(CentralizedSteps(), objectives.Cco()),
    _row(CentralizedSteps(), objectives.Lejepa()),
    _row(CentralizedSteps(), objectives.Supervised(labels=0.1)),
  ),
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('dcco')
