r"""Pretrains an encoder with decentralized self-supervised learning (Dec-SSL).

  python -m binaries.dec_ssl --method=fedavg --objective=simclr --task=cifar10 \
      --data_dir=~/tensorflow_datasets --partition=skew:beta=0,clients=5 \
      --local_epochs=5 --batch_size=256 --client_learning_rate=1e-3 --rounds=100 \
      --run_dir=runs/dec_ssl

The methods, over any objective: `fedavg`, which is Dec-SSL itself.
"""

from binaries.experiment import running
from binaries.flags import common
from binaries.methods import choice


def main() -> None:
  """Runs an experiment, or goes on with it."""
  running.run('dec_ssl')


if __name__ == '__main__':
  common.run(main, choice.flags_of('dec_ssl'))
