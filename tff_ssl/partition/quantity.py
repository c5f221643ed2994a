"""Clients of unequal sizes whose labels are IID.

Li, Diao, Chen, He, "Federated Learning on Non-IID Data Silos: An Experimental Study"
(ICDE 2022), Section 4.3, quantity skew: the clients' shares of the data are
q ~ Dir(alpha), and the examples are dealt at random. The sizes may also follow a power
law, size_k ~ k^-power, like the sizes of users' data.

Deviations:
  The paper's code draws q again until each client has ten examples, which does not end
    for many clients or a small alpha. Here each client first receives `min_examples`,
    and q shares out the rest.
"""

import dataclasses

import numpy as np
from scipy import special

from tff_ssl.computing import kinds
from tff_ssl.partition import draws
from tff_ssl.partition import partitions


@dataclasses.dataclass(frozen=True)
class QuantityConfig(kinds.Kind):
  """How sizes differ; exactly one of alpha and power is given.

  Attributes:
    clients: Number of clients.
    alpha: Concentration of the Dirichlet distribution over clients: 0 gives one client
      everything beyond the others' `min_examples`, a large value gives equal sizes.
    power: Exponent of the power law over clients; the first client is the largest. 0
      gives equal sizes.
    min_examples: Minimum number of examples of a client.
  """

  clients: kinds.Count
  alpha: kinds.NotNegative | None = None
  power: kinds.NotNegative | None = None
  min_examples: kinds.Natural = 1

  def __post_init__(self) -> None:
    super().__post_init__()
    if (self.alpha is None) == (self.power is None):
      raise ValueError(
        f'A quantity partition has alpha={self.alpha} and power={self.power}; exactly '
        'one of them must be given, as in "quantity:alpha=0.5,clients=10".'
      )
    if self.alpha is not None:
      draws.check_alpha('quantity', self.alpha)


def build(
  config: QuantityConfig, num_examples: int, rng: np.random.Generator
) -> partitions.Partition:
  """Deals examples to clients of unequal sizes uniformly at random.

  Args:
    config: How sizes differ.
    num_examples: Number of all examples.
    rng: Source of the sizes and of the shuffle.

  Returns:
    The partition; every example belongs to a client.

  Raises:
    ValueError: There are too few examples.

  Source: Li et al. (2022), Section 4.3.
  """
  # Checks that there are enough examples for all clients.
  partitions.resolve_count(
    'quantity', num_examples, max(config.min_examples, 1), config.clients
  )
  rest = num_examples - config.clients * config.min_examples
  shared = draws.apportion(np.array([rest]), _proportions(config, rng)[np.newaxis])
  order = rng.permutation(num_examples)
  return partitions.from_sizes(order, shared[0] + config.min_examples)


def _proportions(config: QuantityConfig, rng: np.random.Generator) -> np.ndarray:
  """The clients' shares of the remaining data, float64 [clients]."""
  if config.power is not None:
    weights = np.arange(1, config.clients + 1) ** -float(config.power)
    return weights / np.sum(weights)
  if config.alpha == 0:
    return np.eye(config.clients)[rng.integers(config.clients)]
  concentration = np.full(config.clients, config.alpha)
  return special.softmax(draws.log_dirichlet(concentration, 1, rng)[0])
