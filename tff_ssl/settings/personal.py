"""Methods whose clients have models of their own: FedEMA, SSFL, Dec-SSL."""

import dataclasses
from typing import ClassVar, Literal

from tff_ssl.computing import field_rules
from tff_ssl.computing import kinds
from tff_ssl.settings import methods
from tff_ssl.settings import roles


@dataclasses.dataclass(frozen=True)
class Sharing(methods.Method):
  """A method whose clients keep networks (FedEMA paper, section 4).

  Attributes:
    averaged: Which of a client's encoders is sent and averaged.
    replaced: Which of a client's encoders the global one replaces.
    first_target: A client's target network in its first round: a copy of the global
      networks, which follows the online ones by EMA; or the online networks themselves
      (as in the authors' code), so that its second begins with a trained target.
  """

  family: ClassVar[str] = 'stateful'
  objective: ClassVar[str | None] = 'byol'
  averaged: Literal['online', 'target'] = 'online'
  replaced: Literal['online', 'target', 'both', 'none'] = 'online'
  first_target: Literal['copy', 'online'] = 'copy'


@dataclasses.dataclass(frozen=True)
class FedByol(Sharing):
  """FedAvg of BYOL, whose target networks stay on their client."""

  kind: ClassVar[str] = 'fed_byol'


@dataclasses.dataclass(frozen=True)
class _DivergenceAware(Sharing):
  """A method that measures how far clients are from the global model.

  Attributes:
    divergence_of: Divergence: how far the global networks are from a client's own
      (global, as in the papers), or how far the client's last training moved its own
      (training, as in the authors' code).
    divergence_norm: Norm of the divergence; none: l2, but conv_mean with a scaler or
      the divergence of training. Without convolutions it must be l2.
  """

  unused: ClassVar[tuple[str, ...]] = methods.LABELS
  divergence_of: Literal['global', 'training'] = 'global'
  divergence_norm: Literal['l2', 'conv_mean'] | None = None


@dataclasses.dataclass(frozen=True)
class FedU(_DivergenceAware):
  """FedU (Zhuang et al., ICCV 2021): far clients keep their predictor.

  Attributes:
    divergence_norm: Norm of the divergence; without convolutions it must be l2, for
      which the threshold of 0.4 is not meant.
    threshold: Least divergence at which a client keeps its predictor; 0.4 in the paper.
    threshold_quantile: Share of the clients that take the global predictor, namely
      those with the smallest divergences, in place of the threshold; none: by it.
  """

  kind: ClassVar[str] = 'fedu'
  rules = (
    field_rules.Rule(
      'threshold',
      lambda own: own.threshold_quantile is not None,
      'threshold_quantile is {threshold_quantile}; leave one of them out.',
    ),
    field_rules.Rule(
      'replaced',
      lambda own: own.replaced == 'none',
      'it must be online, target or both, because near clients take the global '
      'predictor.',
    ),
  )
  divergence_norm: Literal['l2', 'conv_mean'] = 'conv_mean'
  threshold: kinds.NotNegative = 0.4
  threshold_quantile: kinds.Inner | None = None


@dataclasses.dataclass(frozen=True)
class FedEMA(_DivergenceAware):
  """FedEMA (Zhuang et al., ICLR 2022): clients keep a share mu of their networks.

  Attributes:
    tau: mu in a client's second round, by which the autoscaler sets lambda (0.7 in the
      paper, section 4.3).
    scaler: A constant lambda, in place of the autoscaler's.
    autoscaler: When a client's lambda is set: when it takes part again, or in the round
      of its first training by a second exchange, as in the paper. Both are the same if
      all clients are in each round.
    constant_mu: A constant mu; none: it follows from the divergence.
    ema_on: The networks to which mu applies.
  """

  kind: ClassVar[str] = 'fedema'
  rules = (
    field_rules.Rule(
      'tau',
      lambda own: not own.has_autoscaler,
      'leave it, or scaler and constant_mu out, with which there is no autoscaler.',
    ),
    field_rules.Rule(
      'scaler',
      lambda own: own.constant_mu is not None,
      'constant_mu is {constant_mu}; leave one of them out.',
    ),
    field_rules.Rule(
      'autoscaler',
      lambda own: not own.has_autoscaler,
      'it must be returning with scaler or constant_mu, where there is no autoscaler.',
    ),
    field_rules.Rule(
      'autoscaler',
      lambda own: own.divergence_of == 'training',
      'it must be returning with divergence_of=training, where a client needs no '
      'global model for its lambda.',
    ),
  )
  tau: kinds.Fraction = 0.7
  scaler: kinds.NotNegative | None = None
  autoscaler: Literal['returning', 'first_round'] = 'returning'
  constant_mu: kinds.Fraction | None = None
  ema_on: Literal['both', 'encoder', 'predictor'] = 'both'

  @property
  def used_norm(self) -> str:
    """The norm of the divergence: the one given, or the one that fits lambda."""
    authors = self.scaler or self.divergence_of == 'training'
    return self.divergence_norm or ('conv_mean' if authors else 'l2')

  @property
  def has_autoscaler(self) -> bool:
    """Whether each client's lambda is measured."""
    return self.scaler is None and self.constant_mu is None


@dataclasses.dataclass(frozen=True)
class Personal(methods.Method):
  """A method whose clients have their own models."""

  unused: ClassVar[tuple[str, ...]] = (*methods.LABELS, *methods.START)


@dataclasses.dataclass(frozen=True)
class _Personalised(Personal):
  """A method of SSFL."""

  family: ClassVar[str] = 'personalised'


@dataclasses.dataclass(frozen=True)
class LA(_Personalised):
  """Local adaptation of the FedAvg model: a step on a client's examples (SSFL, 3.2)."""

  kind: ClassVar[str] = 'la'


@dataclasses.dataclass(frozen=True)
class Maml(_Personalised):
  """MAML-SSFL: the global model is trained for the step of its clients (SSFL, 3.2)."""

  kind: ClassVar[str] = 'maml'


@dataclasses.dataclass(frozen=True)
class Bilevel(_Personalised):
  """BiLevel-SSFL: own models near the global one (SSFL, 3.2).

  Attributes:
    proximity_weight: lambda, weight of the distance from the global model.
  """

  kind: ClassVar[str] = 'bilevel'
  proximity_weight: kinds.NotNegative = 0.1


@dataclasses.dataclass(frozen=True)
class Per(_Personalised):
  """Per-SSFL: own models whose views agree with the global model's (SSFL, 3.3).

  Attributes:
    consensus_weight: lambda, weight of the agreement; one of 10 to 0.001 in the paper.
  """

  kind: ClassVar[str] = 'per'
  unused: ClassVar[tuple[str, ...]] = (
    *_Personalised.unused,
    'clients.proximal_weight',
  )
  consensus_weight: kinds.NotNegative = 0.1


@dataclasses.dataclass(frozen=True)
class _DecSsl(Personal):
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
  clusters: ClassVar[int] = 1
  alignment_weight: kinds.NotNegative = 1.0


@dataclasses.dataclass(frozen=True)
class ClusterOnly(_DecSsl):
  """FeatARC without alignment: cluster models.

  Attributes:
    clusters: C, number of cluster models.
  """

  kind: ClassVar[str] = 'cluster_only'
  alignment_weight: ClassVar[float] = 0.0
  clusters: kinds.Count = 2


# What FeatARC and its parts have in common.
Clustered = Featarc | AlignOnly | ClusterOnly


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
