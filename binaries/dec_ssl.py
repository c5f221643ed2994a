r"""Pretrains an encoder with decentralized self-supervised learning (Dec-SSL).

  python -m binaries.dec_ssl --method=featarc --objective=simclr --task=cifar10 \
      --data_dir=~/tensorflow_datasets --partition=skew:beta=0,clients=5 \
      --local_epochs=5 --batch_size=256 --client_learning_rate=1e-3 --rounds=100 \
      --run_dir=runs/featarc

With `featarc` the server keeps --clusters models, of which each client takes the one
whose features are nearest to its own, trains it, and is held near it by an alignment
loss (--alignment_weight); `align_only` has one model, `cluster_only` no such loss. The
run folder has each client's cluster and distances, by round, in `clients.csv`. Every
cluster's encoder is evaluated (`clusters/...`); with --personal_methods or
--export_clients also each client's, which is its cluster's, on test examples dealt to
the clients as the training examples were. What is exported is the largest cluster's.

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
