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

from collections.abc import Iterator
import dataclasses

from binaries import experiment
from binaries.config import programs
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import parts


def _row(
  method: methods.Method, objective: objectives.Objective
) -> run_config.RunConfig:
  """The DCCO paper's server (section 4)."""
  clients = (
    learning.StepClients() if method.steps else learning.SgdClients(learning_rate=1.0)
  )
  return run_config.RunConfig(
    method,
    objective,
    encoder=encoders.ResNet('resnet8', norm='group'),
    clients=clients,
    server=learning.Server(kind='adam', learning_rate=2e-3, schedule='cosine'),
  )


def _fedsc() -> run_config.RunConfig:
  """FedSC: at DCCO's rate it collapses, because the matrices are a round old."""
  row = _row(methods.FedSC(), objectives.Spectral())
  server = dataclasses.replace(row.server, learning_rate=3e-4)
  return dataclasses.replace(row, server=server)


def _own_rows() -> Iterator[run_config.RunConfig]:
  """Yields the runs of losses of statistics from outside the checkout."""
  for part in parts.own(parts.OBJECTIVES):
    if part.options['of'] == 'statistics':
      for method in (methods.Dcco(), methods.CentralizedSteps()):
        yield _row(method, part.settings())


PROGRAM = programs.Program(
  'dcco',
  programs.rows(
    _row(methods.Dcco(), objectives.Cco()),
    _row(methods.Dcco(), objectives.Vicreg()),
    _row(methods.Dcco(), objectives.Spectral()),
    _row(methods.Dcco(), objectives.Lejepa()),
    _fedsc(),
    _row(methods.FedAvg(), objectives.Cco()),
    _row(methods.FedAvg(), objectives.Lejepa()),
    _row(methods.FedAvg(), objectives.Simclr(temperature=0.1)),
    _row(methods.CentralizedSteps(), objectives.Cco()),
    _row(methods.CentralizedSteps(), objectives.Lejepa()),
    _row(methods.CentralizedSteps(), objectives.Supervised(labels=0.1)),
  ),
  _own_rows,
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('dcco')
