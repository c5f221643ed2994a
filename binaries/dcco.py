r"""Pretrains an encoder with DCCO, or with one of the baselines that it compares with.

  python -m binaries.dcco --task=digits --run_dir=runs/digits
  python -m binaries.dcco --task=cifar10 --data_dir=~/tensorflow_datasets \
      --partition=dirichlet:alpha=0,examples=4 --clients_per_round=128 --rounds=1000 \
      --run_dir=runs/cifar10

The algorithms: `dcco`, with the loss CCO, VICReg or spectral (`--loss`); `fedsc` (the
spectral loss, with the other clients' correlation matrix of the previous round);
`fedavg_cco` and `fedavg_nt_xent` (FedAvg with the loss within each client);
`centralized_cco` (batches with as many examples as a round, drawn from all);
`centralized_supervised`
(from scratch, on a share of the labels; `supervised` for short).
"""

from binaries.experiment import running
from binaries.flags import common
from binaries.methods import choice


def main() -> None:
  """Runs an experiment, or resumes it."""
  running.run('dcco')


if __name__ == '__main__':
  common.run(main, choice.flags_of('dcco'))
