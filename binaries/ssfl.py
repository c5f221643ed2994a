r"""Pretrains personal encoders with SSFL: Global-, LA-, MAML-, BiLevel- or Per-SSFL.

  python -m binaries.ssfl --method=per --task=cifar10 --data_dir=~/tensorflow_datasets \
      --partition=shares:alpha=0.1,clients=10 --batch_size=32 \
      --accumulate=8 --client_learning_rate=0.03 --client_momentum=0.9 \
      --client_schedule=cosine --rounds=800 --run_dir=runs/per
  python -m binaries.ssfl ... --run_dir=runs/per --export_clients=client_3

The methods, all over SimSiam: `global`, FedAvg; `la`, the same, from which each client
takes one step before it is evaluated; `maml`, trained for that step; `bilevel`, with
personal weights kept near the global ones; `per`, with personal predictions kept near
the global ones.

With the global encoder, each client's own is evaluated, on test examples dealt to
the clients as the training examples were. Given again on a run that has finished, the
command takes other --personal_methods and --export_clients.
"""

from binaries.experiment import running
from binaries.flags import common
from binaries.methods import choice


def main() -> None:
  """Runs an experiment, or goes on with it."""
  running.run('ssfl')


if __name__ == '__main__':
  common.run(main, choice.flags_of('ssfl'))
