"""Sources of examples, mixed over clients: from one source per client to IID.

Wang et al. (Dec-SSL, ICLR 2023), Section C.2: the data are divided into N partitions by
some source of heterogeneity, here clusters of features, rotations or styles, and then
the partitions are dealt to K clients by a Dirichlet distribution or by skewness. That
is `shares` and `skew`, with sources instead of classes. Without either, client k is
source k.
"""

from typing import Protocol

import numpy as np

from tff_ssl.partition import clients as clients_lib
from tff_ssl.partition import draws
from tff_ssl.partition import shares
from tff_ssl.partition import skew


class Mixed(Protocol):
  """What a configuration says about sources and clients.

  Attributes:
    clients: Number of clients, K.
    sources: Number of sources, N; None: as many as clients.
    alpha: Concentration of each source's shares over clients: 0 gives clients with
      disjoint sources (with as many clients as sources, client k is source k), a large
      value gives IID clients. None: 0.
    beta: Fraction of each source that is spread evenly over the clients; the rest goes
      to clients that share no source, or as few as numbers allow. 0 is like alpha = 0.
      At most one of alpha and beta is given.
  """

  @property
  def clients(self) -> int:
    """Number of clients."""

  @property
  def sources(self) -> int | None:
    """Number of sources, or None."""

  @property
  def alpha(self) -> float | None:
    """Concentration, or None."""

  @property
  def beta(self) -> float | None:
    """Fraction spread evenly, or None."""


def check(kind: str, config: Mixed) -> None:
  """Checks a configuration.

  Args:
    kind: The partition's name, for the error.
    config: The configuration.

  Raises:
    ValueError: A number is out of range, or both alpha and beta are given.
  """
  clients_lib.check_count(f'clients of a {kind} partition', config.clients)
  clients_lib.check_count(f'sources of a {kind} partition', config.sources)
  if config.alpha is not None and config.beta is not None:
    raise ValueError(
      f'A {kind} partition has alpha={config.alpha} and beta={config.beta}; at most '
      'one of them can be given, because each says how sources are mixed.'
    )
  if config.alpha is not None:
    draws.check_alpha(kind, config.alpha)
  if config.beta is not None and not 0 <= config.beta <= 1:
    raise ValueError(
      f'beta of a {kind} partition is {config.beta}; it must be a number in [0, 1].'
    )


def num_sources(config: Mixed) -> int:
  """Returns the number of sources."""
  return config.clients if config.sources is None else config.sources


def is_mixed(config: Mixed) -> bool:
  """Returns whether clients are not simply one source each."""
  return bool(config.alpha or config.beta) or num_sources(config) != config.clients


def deal(
  config: Mixed, source: np.ndarray, rng: np.random.Generator, balanced: bool = False
) -> clients_lib.Partition:
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
  if not is_mixed(config):
    return clients_lib.from_positions(
      [np.flatnonzero(source == k) for k in range(config.clients)]
    )
  if config.beta is not None:
    return skew.build(skew.SkewConfig(config.beta, config.clients), source, rng)
  return shares.build(
    shares.SharesConfig(config.alpha or 0.0, config.clients, balanced=balanced),
    source,
    rng,
  )
