r"""Pretrains an encoder with decentralized self-supervised learning (Dec-SSL).

  python -m binaries.dec_ssl --method=featarc --objective=simclr --task=cifar10 \
      --data_dir=~/tensorflow_datasets --partition=skew:beta=0,clients=5 \
      --local_epochs=5 --batch_size=256 --client_learning_rate=1e-3 --rounds=100 \
      --run_dir=runs/featarc

With `featarc` the server keeps --clusters models. Each client takes the model whose
features are nearest to its own and trains it; an alignment loss keeps it near that
model (--alignment_weight). `align_only` has one model, `cluster_only` no alignment
loss. `clients.csv` in the run folder has each client's cluster and distances by round.
Every cluster's encoder is evaluated (`clusters/...`). With --personal_methods or
--export_clients, so is each client's encoder, which is its cluster's, on test examples
that are dealt to the clients like the training examples. The largest cluster's encoder
is exported.

The methods, over any objective: `fedavg`, which is Dec-SSL itself.

Without a server, `star`, `ring`, `tree` (binary), `complete`, `random_graph` (with
--edge_probability) and `graph` (any, with --graph=FILE.csv): each client keeps its own
model, trains it, and averages it with its neighbours' models. The mean of all models is
evaluated, and with --personal_methods, --personal_clients or --export_clients each
client's own encoder too. The run folder has the graph, in `graph.png` and `graph.csv`.
Each round reports how far the models are from their mean (`consensus_distance`).
"""

from binaries.experiment import running
from binaries.flags import common
from binaries.methods import choice


def main() -> None:
  """Runs an experiment, or resumes it."""
  running.run('dec_ssl')


if __name__ == '__main__':
  common.run(main, choice.flags_of('dec_ssl'))
