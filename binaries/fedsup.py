r"""Trains with labels only at the server: FedSup and the methods it compares with.

  python -m binaries.fedsup --method=fedsup --task=cifar10 --server_labels=0.1 \
      --partition=shares:alpha=0.1,clients=100 --clients_per_round=5 --rounds=100 \
      --run_dir=runs/fedsup

The methods: `fedsup` (--noconsistency, --stages and --averaging leave out parts of it);
`fixmatch`, `finetuned_simclr`, `finetuned_simsiam` and `finetuned_byol` on the clients,
with the average fine-tuned at the server; `fedrgd`; `fedmatch`; and the bounds:
`finetuned_supervised`, whose clients have all labels, and `labelled_only`, which has no
clients. `simclr`, `simsiam`, `byol` and `supervised` are short for the names with
`finetuned_`.

The server has a share of the training labels (--server_labels; 1 if the task comes with
unlabelled images, like stl10), or the labels of one hospital (--server_hospital, for
ham10000). An encoder is evaluated with only the server's labels: 1 in --label_fractions
means all of these.
"""

from binaries.experiment import server_experiment
from binaries.flags import common
from binaries.methods import choice


def main() -> None:
  """Runs a method, or resumes it."""
  server_experiment.run()


if __name__ == '__main__':
  common.run(main, choice.flags_of('fedsup'))
