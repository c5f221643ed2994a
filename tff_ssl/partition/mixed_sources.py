"""Sources of examples, mixed over clients: from one source per client to IID.

Wang et al. (Dec-SSL, ICLR 2023), Section C.2: the data are divided into N partitions by
some source of heterogeneity, here clusters of features, rotations or styles, and then
the partitions are dealt to K clients by a Dirichlet distribution or by skewness. That
is `shares` and `skew`, with sources instead of classes. Without either, client k is
source k.
"""

import dataclasses
from typing import ClassVar

import numpy as np

from tff_ssl.computing import kinds
from tff_ssl.partition import draws
from tff_ssl.partition import partitions
from tff_ssl.partition import shares
from tff_ssl.partition import skew


@dataclasses.dataclass(frozen=True)
class MixedConfig(kinds.Kind):
  """How sources are mixed over clients.

  Attributes:
    clients: Number of clients, the paper's K; 1 is all data in one client.
    sources: Number of sources, N; None: as many as clients.
    alpha: Concentration of each source's shares over clients: 0 gives clients with
      disjoint sources (with as many clients as sources, client k is source k), a large
      value gives IID clients. None: 0.
    beta: Fraction of each source that is spread evenly over the clients; the rest goes
      to clients that share no source, or as few as numbers allow. 0 is like alpha = 0.
      At most one of alpha and beta is given.
  """

  clients: kinds.Count
  sources: kinds.Count | None = None
  alpha: kinds.NotNegative | None = None
  beta: kinds.Fraction | None = None

  # The partition's name, for errors.
  kind: ClassVar[str] = 'mixed'

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.alpha is not None and self.beta is not None:
      raise ValueError(
        f'A {self.kind} partition has alpha={self.alpha} and beta={self.beta}; at most '
        'one of them can be given, because each says how sources are mixed.'
      )
    if self.alpha is not None:
      draws.check_alpha(self.kind, self.alpha)
    if self.beta is not None and not 0 <= self.beta <= 1:
      raise ValueError(
        f'beta of a {self.kind} partition is {self.beta}; it must be a number in '
        '[0, 1].'
      )

  @property
  def num_sources(self) -> int:
    """The number of sources."""
    return self.clients if self.sources is None else self.sources

  @property
  def is_mixed(self) -> bool:
    """Whether clients are not simply one source each."""
    return bool(self.alpha or self.beta) or self.num_sources != self.clients


def deal(
  config: MixedConfig,
  source: np.ndarray,
  rng: np.random.Generator,
  balanced: bool = False,
) -> partitions.Partition:
  """Deals sources to clients.

  Args:
    config: How sources are mixed.
    source: int [n], the source of each example, in [0, N).
    rng: Source of every draw; nothing is drawn if client k is source k.
    balanced: Whether clients by alpha are of equal size (see `shares`).

  Returns:
    The partition. Every example belongs to a client; only balanced clients leave some
    over, fewer than there are clients.

  Raises:
    ValueError: There are too few examples for all clients, or none of many draws gave
      each of them an example.
  """
  if not config.is_mixed:
    return partitions.from_positions(
      [np.flatnonzero(source == k) for k in range(config.clients)]
    )
  if config.beta is not None:
    return skew.build(skew.SkewConfig(config.beta, config.clients), source, rng)
  return shares.build(
    shares.SharesConfig(config.alpha or 0.0, config.clients, balanced=balanced),
    source,
    rng,
  )
