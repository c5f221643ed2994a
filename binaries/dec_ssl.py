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

import dataclasses
from typing import ClassVar

from binaries import experiment
from binaries import fedavg_ssl
from binaries.config import encoders
from binaries.config import methods
from binaries.config import objectives
from binaries.config import programs
from binaries.config import roles
from binaries.config import run_config
from binaries.config import training
from binaries.launching import program
from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class _DecSsl(methods.Personal):
  """A method of Dec-SSL: cluster models, or none at a server."""

  family: ClassVar[str] = 'without_server'


@dataclasses.dataclass(frozen=True)
class Featarc(_DecSsl):
  """FeatARC: cluster models, and features aligned to them (Dec-SSL, section 5).

  Attributes:
    clusters: C, number of cluster models.
    alignment_weight: lambda, weight of the distance from the cluster's features.
  """

  kind: ClassVar[str] = 'featarc'
  clusters: kinds.Count = 2
  alignment_weight: kinds.NotNegative = 1.0


@dataclasses.dataclass(frozen=True)
class AlignOnly(_DecSsl):
  """FeatARC with one cluster: features aligned to the global model.

  Attributes:
    alignment_weight: lambda, weight of the distance from the global features.
  """

  kind: ClassVar[str] = 'align_only'
  alignment_weight: kinds.NotNegative = 1.0


@dataclasses.dataclass(frozen=True)
class ClusterOnly(_DecSsl):
  """FeatARC without alignment: cluster models.

  Attributes:
    clusters: C, number of cluster models.
  """

  kind: ClassVar[str] = 'cluster_only'
  clusters: kinds.Count = 2


@dataclasses.dataclass(frozen=True)
class Decentralized(_DecSsl):
  """Neighbours in a graph average, without a server (Dec-SSL, appendix)."""

  unused: ClassVar[tuple[str, ...]] = (
    *_DecSsl.unused,
    'aggregation',
    'server',
    methods.WEIGHTING,
    'clients_per_round',
  )


@dataclasses.dataclass(frozen=True)
class Star(Decentralized):
  """A graph with one node in the middle."""

  kind: ClassVar[str] = 'star'


@dataclasses.dataclass(frozen=True)
class Ring(Decentralized):
  """A graph in which each node has two neighbours."""

  kind: ClassVar[str] = 'ring'


@dataclasses.dataclass(frozen=True)
class Tree(Decentralized):
  """A binary tree."""

  kind: ClassVar[str] = 'tree'


@dataclasses.dataclass(frozen=True)
class Complete(Decentralized):
  """A graph in which all nodes are neighbours."""

  kind: ClassVar[str] = 'complete'


@dataclasses.dataclass(frozen=True)
class RandomGraph(Decentralized):
  """A random graph; disconnected ones are drawn again from the run's seed.

  Attributes:
    edge_probability: Probability of each edge.
  """

  kind: ClassVar[str] = 'random_graph'
  edge_probability: kinds.Share = 0.7


@dataclasses.dataclass(frozen=True)
class Graph(Decentralized):
  """A graph from a file.

  Attributes:
    path: CSV file of the adjacency matrix, 0 and 1, with the clients in their order.
  """

  kind: ClassVar[str] = 'graph'
  path: str | None = roles.path()


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
  ClusterOnly(),
  methods.FedAvg(),
  Star(),
  Ring(),
  Tree(),
  Complete(),
  RandomGraph(),
  Graph(),
)


def _clients(objective: objectives.Objective) -> training.Clients:
  """Appendix C.1: Adam at 1e-3, but SGD for SimSiam and BYOL, and AdamW for MAE.

  It names no momentum of SGD: 0.9 is from SimSiam. It gives no further details of
  AdamW: they are from MAE (He et al. 2022, Table 8).
  """
  if objective.batch_norm:
    return training.SgdClients(
      learning_rate=0.03, momentum=0.9, epochs=5, batch_size=256
    )
  if isinstance(objective, objectives.Mae):
    return training.AdamClients(
      kind='adamw',
      learning_rate=1e-3,
      weight_decay=0.05,
      beta_2=0.95,
      epochs=5,
      batch_size=256,
    )
  return training.AdamClients(kind='adam', learning_rate=1e-3, epochs=5, batch_size=256)


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
    participation=1.0 if isinstance(method, Decentralized) else None,
    encoder=encoders.suited(objective, objective.batch_norm),
    clients=_clients(objective),
  )


PROGRAM = programs.Program(
  'dec_ssl',
  programs.rows(
    *(_row(Featarc(), objective) for objective in _ALIGNED),
    *(_row(AlignOnly(), objective) for objective in _ALIGNED),
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
