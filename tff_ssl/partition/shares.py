"""A few large clients, each with its Dirichlet share of every class.

The split of SSFL and of FedML: for each class c, p_c ~ Dir(alpha * 1) over the
clients, and client k receives the share p_ck of the class. Sizes differ, unless clients
are `balanced`: then every client has the same number of examples, and class
proportions as near to its draw as the totals of the classes allow (see `balance`).
Dec-SSL's clients are balanced: "evenly split" (Wang et al., ICLR 2023, Section C.1).

This alpha is not the alpha of `dirichlet`: here the concentration is alpha for each
client, there it sums to alpha over the classes.

Deviations:
  alpha = 0 is the limit: each class goes to one client, uniform at random. For balanced
    clients, the classes are laid end to end in random order and cut into clients. They
    have disjoint classes if whole classes fill them, as 2 of CIFAR-10's fill each of 5.
  Dec-SSL does not say how it splits a Dirichlet draw evenly.
"""

import dataclasses

import numpy as np
from scipy import special

from tff_ssl.computing import kinds
from tff_ssl.partition import balance
from tff_ssl.partition import draws
from tff_ssl.partition import partitions

_MAX_DRAWS = 1000


@dataclasses.dataclass(frozen=True)
class SharesConfig(kinds.Kind):
  """Shares of each class for a given number of clients.

  Attributes:
    alpha: Concentration; 0 gives each class to one client, a large value is IID.
    clients: Number of clients.
    min_examples: The shares are drawn again until every client has this many; 0 allows
      clients without examples. Not for balanced clients.
    balanced: Whether all clients have the same number of examples.
    examples: That number; None: as many as possible, so that fewer examples than
      clients are left over. The dealt examples have the class proportions of all
      examples.
  """

  alpha: kinds.NotNegative
  clients: kinds.Count
  min_examples: kinds.Natural = 1
  balanced: bool = False
  examples: kinds.Count | None = None

  def __post_init__(self) -> None:
    super().__post_init__()
    draws.check_alpha('shares', self.alpha)
    if self.balanced and self.min_examples != 1:
      raise ValueError(
        f'A shares partition has min_examples={self.min_examples} and balanced=true, '
        'with which all clients have the same number of examples; leave out one of '
        'the two.'
      )
    if self.examples is not None and not self.balanced:
      raise ValueError(
        f'A shares partition has examples={self.examples}, which sets the size of '
        'balanced clients; it needs balanced=true.'
      )


def build(
  config: SharesConfig, labels: np.ndarray, rng: np.random.Generator
) -> partitions.Partition:
  """Gives each client a share of every class.

  Args:
    config: Concentration and number of clients.
    labels: int [n], none of them -1.
    rng: Source of every draw.

  Returns:
    The partition; every example belongs to a client, unless clients are balanced.

  Raises:
    ValueError: An example is unlabelled, none of many draws gave every client
      `config.min_examples` examples, or there are too few for balanced clients.

  Source: SSFL, Experiments, "Dataset" (uniform prior); `min_require_size` of FedML.
  """
  partitions.check_labels('shares', labels)
  class_sizes = np.unique(labels, return_counts=True)[1]
  if config.balanced:
    return draws.deal(labels, _balanced(config, class_sizes, rng), rng)
  partitions.resolve_count('shares', len(labels), config.min_examples, config.clients)
  for _ in range(_MAX_DRAWS):
    if config.alpha == 0:
      owners = rng.integers(config.clients, size=len(class_sizes))
      shares = np.eye(config.clients)[owners]
    else:
      concentration = np.full(config.clients, config.alpha)
      logits = draws.log_dirichlet(concentration, len(class_sizes), rng)
      shares = special.softmax(logits, axis=1)
    received = draws.apportion(class_sizes, shares).T
    if np.min(np.sum(received, axis=1)) >= config.min_examples:
      return draws.deal(labels, received, rng)
  raise ValueError(
    f'None of {_MAX_DRAWS} draws with alpha={config.alpha} gave each of '
    f'{config.clients} clients min_examples={config.min_examples} of the '
    f'{len(labels)} examples; lower min_examples, raise alpha, or take balanced=true.'
  )


def _balanced(
  config: SharesConfig, class_sizes: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
  """Examples of each class that clients of one size receive, [clients, classes]."""
  total = int(np.sum(class_sizes))
  examples = config.examples or total // config.clients
  partitions.resolve_count('shares', total, max(examples, 1), config.clients)
  dealt = np.array([config.clients * examples])
  of_classes = draws.apportion(dealt, class_sizes[np.newaxis] / total)[0]
  if config.alpha:
    concentration = np.full(config.clients, config.alpha)
    log_shares = draws.log_dirichlet(concentration, len(class_sizes), rng)
    return balance.fit(log_shares.T, of_classes)
  order = rng.permutation(len(class_sizes))
  received = np.zeros((config.clients, len(class_sizes)), np.int64)
  received[:, order] = draws.cut(of_classes[order], config.clients, examples)
  return received
