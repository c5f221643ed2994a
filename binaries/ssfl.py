r"""Pretrains personal encoders with SSFL: Global-, LA-, MAML-, BiLevel- or Per-SSFL.

  python -m binaries.ssfl --method=per --task=cifar10 --data_dir=~/tensorflow_datasets \
      --partition=shares:alpha=0.1,clients=10 --batch_size=32 \
      --accumulate=8 --client_learning_rate=0.3 --client_momentum=0.9 \
      --client_schedule=cosine --rounds=800 --run_dir=runs/per
  python -m binaries.ssfl ... --run_dir=runs/per --export_clients=client_3

The methods, all over SimSiam: `global`, FedAvg; `la`, FedAvg, after which each client
takes one step before its evaluation; `maml`, trained for that step; `bilevel`, with
personal weights kept near the global weights; `per`, with personal predictions kept
near the global predictions.

Together with the global encoder, each client's own encoder is evaluated, on test
examples that are dealt to the clients like the training examples. On a finished run,
the same command takes other --personal_methods and --export_clients.
"""

from binaries.experiment import running
from binaries.flags import common
from binaries.methods import choice


def main() -> None:
  """Runs an experiment, or resumes it."""
  running.run('ssfl')


if __name__ == '__main__':
  common.run(main, choice.flags_of('ssfl'))
