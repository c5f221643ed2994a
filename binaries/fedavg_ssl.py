r"""Pretrains an encoder with FedAvg over any objective, or centrally with the same.

  python -m binaries.fedavg_ssl --task=cifar10 --data_dir=~/tensorflow_datasets \
      --objective=simsiam --partition=shares:alpha=0.1,clients=5 --participation=1 \
      --local_epochs=5 --batch_size=128 --client_learning_rate=0.3 \
      --client_momentum=0.9 --client_schedule=cosine --rounds=100 --run_dir=runs/simsiam

The algorithms: `fedavg`; `fedprox` (with --proximal_weight); `fedbn` (batch norm stays
on the client); `fed_ssl` (FedAvg in which BYOL's target, or MoCo's key networks and
queue, stay on their client between rounds); `centralized` (the same local training on
as many examples per round, drawn from all). The objective `supervised` has all labels:
federated, it is Dec-SL, and the probes of its encoder are Dec-SLRep.
"""

from binaries.experiment import running
from binaries.flags import common
from binaries.methods import choice


def main() -> None:
  """Runs an experiment, or resumes it."""
  running.run('fedavg_ssl')


if __name__ == '__main__':
  common.run(main, choice.flags_of('fedavg_ssl'))
