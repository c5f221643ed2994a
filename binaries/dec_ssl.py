r"""Pretrains an encoder with decentralized self-supervised learning (Dec-SSL).

  python -m binaries.dec_ssl --method=featarc --objective=simclr --task=cifar10 \
      --data_dir=~/tensorflow_datasets --partition=skew:beta=0,clients=5 \
      --clients=epochs=5,batch_size=256,learning_rate=1e-3 --rounds=100 \
      --run_dir=runs/featarc

With `featarc` the server keeps --method=clusters models. Each client takes the model
whose features are nearest to its own and trains it; an alignment loss keeps it near
that model (--method=alignment_weight). `align_only` has one model, `cluster_only` no
alignment loss. `clients.csv` in the run folder has each client's cluster and distances
by round. Every cluster's encoder is evaluated (`clusters/...`). With
--evaluation=personal or --evaluation=export_clients, so is each client's encoder, which
is its cluster's, on test examples that are dealt to the clients like the training
examples. The largest cluster's encoder is exported.

The methods, over any objective: `fedavg`, which is Dec-SSL itself.

Without a server, `star`, `ring`, `tree` (binary), `complete`, `random_graph` (with
--method=edge_probability) and `graph` (any, with --method=path=FILE.csv): each client
keeps its own model, trains it, and averages it with its neighbours' models. The mean of
all models is evaluated, and with --evaluation=personal, --evaluation=personal_clients
or --evaluation=export_clients each client's own encoder too. The run folder has the
graph, in `graph.png` and `graph.csv`. Each round reports how far the models are from
their mean (`consensus_distance`).
"""

from binaries import experiment
from binaries import fedavg_ssl
from binaries.config import programs
from binaries.config import run_config
from binaries.launching import program
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import personal

# The objectives that have predictions for FeatARC to align.
_ALIGNED: tuple[objectives.Objective, ...] = (
  objectives.Simclr(),
  objectives.Simsiam(),
  objectives.Byol(),
  objectives.Cco(),
  objectives.Vicreg(),
  objectives.Lejepa(),
  objectives.Uniformity(),
)
_OF_ANY: tuple[methods.Method, ...] = (
  personal.ClusterOnly(),
  methods.FedAvg(),
  personal.Star(),
  personal.Ring(),
  personal.Tree(),
  personal.Complete(),
  personal.RandomGraph(),
  personal.Graph(),
)


def _clients(objective: objectives.Objective) -> learning.Clients:
  """Appendix C.1: Adam at 1e-3, but SGD for SimSiam and BYOL, and AdamW for MAE.

  It names no momentum of SGD: 0.9 is from SimSiam. It gives no further details of
  AdamW: they are from MAE (He et al. 2022, Table 8).
  """
  if objective.batch_norm:
    return learning.SgdClients(
      learning_rate=0.03, momentum=0.9, epochs=5, batch_size=256
    )
  if isinstance(objective, objectives.Mae):
    return learning.AdamClients(
      kind='adamw',
      learning_rate=1e-3,
      weight_decay=0.05,
      beta_2=0.95,
      epochs=5,
      batch_size=256,
    )
  return learning.AdamClients(kind='adam', learning_rate=1e-3, epochs=5, batch_size=256)


def _row(
  method: methods.Method, objective: objectives.Objective
) -> run_config.RunConfig:
  """Appendix C.1: five sources of equal size, all in every round, five local epochs.

  The partition is the one that separates classes. Deviations: group norm, where the
  paper leaves batch norm on the clients (FedBN), so that one model can be evaluated; a
  constant rate, because the paper does not name the steps of its schedule; and the
  views of the other programs.
  """
  return run_config.RunConfig(
    method,
    objective,
    partition='skew:beta=0,clients=5',
    clients_per_round=5,
    participation=1.0 if isinstance(method, personal.Decentralized) else None,
    encoder=encoders.default(objective, objective.batch_norm),
    clients=_clients(objective),
  )


PROGRAM = programs.Program(
  'dec_ssl',
  programs.rows(
    *(_row(personal.Featarc(), objective) for objective in _ALIGNED),
    *(_row(personal.AlignOnly(), objective) for objective in _ALIGNED),
    *(
      _row(method, objective)
      for method in _OF_ANY
      for objective in (objectives.Simclr(), *fedavg_ssl.OBJECTIVES)
    ),
  ),
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('dec_ssl')
