r"""Pretrains an encoder with decentralized self-supervised learning (Dec-SSL).

  python -m binaries.dec_ssl --method=fedavg --objective=simclr --task=cifar10 \
      --data_dir=~/tensorflow_datasets --partition=skew:beta=0,clients=5 \
      --local_epochs=5 --batch_size=256 --client_learning_rate=1e-3 --rounds=100 \
      --run_dir=runs/dec_ssl

The methods, over any objective: `fedavg`, which is Dec-SSL itself.

Without a server, `star`, `ring`, `tree` (binary), `complete`, `random_graph` (with
--edge_probability) and `graph` (any, with --graph=FILE.csv): each client keeps a model
of its own, trains it, and averages it with its neighbours'; the mean of all models is
evaluated, and with --personal_methods, --personal_clients or --export_clients each
client's own encoder too. The run folder has the graph, in `graph.png` and `graph.csv`,
and each round tells how far the models are from their mean (`consensus_distance`).
"""

from binaries.experiment import running
from binaries.flags import common
from binaries.methods import choice


def main() -> None:
  """Runs an experiment, or goes on with it."""
  running.run('dec_ssl')


if __name__ == '__main__':
  common.run(main, choice.flags_of('dec_ssl'))
