"""A few large clients, each with its Dirichlet share of every class.

The split of SSFL and of FedML: for each class c, p_c ~ Dir(alpha * 1) over the
clients, and client k receives the share p_ck of the class. Sizes differ.

This alpha is not that of `dirichlet`: here the concentration is alpha for each
client, there it sums to alpha over the classes.

Deviations:
  alpha = 0 is the limit: each class goes to one client, uniform at random.
"""

import dataclasses

import numpy as np

from tff_ssl.partition import clients as clients_lib
from tff_ssl.partition import draws

_MAX_DRAWS = 1000


@dataclasses.dataclass(frozen=True)
class SharesConfig:
  """Shares of each class for a given number of clients.

  Attributes:
    alpha: Concentration; 0 gives each class to one client, a large one is IID.
    clients: Number of clients.
    min_examples: The shares are drawn again until every client has so many; 0
      allows clients without examples.
  """

  alpha: float
  clients: int
  min_examples: int = 1

  def __post_init__(self) -> None:
    draws.check_alpha('shares', self.alpha)
    clients_lib.check_count('clients of a shares partition', self.clients)
    clients_lib.check_count(
      'min_examples of a shares partition', self.min_examples, minimum=0
    )


def build(
  config: SharesConfig, labels: np.ndarray, rng: np.random.Generator
) -> clients_lib.Partition:
  """Gives each client a share of every class.

  Args:
    config: Concentration and number of clients.
    labels: int [n], none of them -1.
    rng: Source of every draw.

  Returns:
    The partition; every example belongs to a client.

  Raises:
    ValueError: An example is unlabelled, or no draw of many gave every client
      `config.min_examples` examples.

  Source: SSFL, Experiments, "Dataset" (uniform prior); `min_require_size` of FedML.
  """
  clients_lib.check_labels('shares', labels)
  class_sizes = np.unique(labels, return_counts=True)[1]
  for _ in range(_MAX_DRAWS):
    if config.alpha == 0:
      owners = rng.integers(config.clients, size=len(class_sizes))
      shares = np.eye(config.clients)[owners]
    else:
      concentration = np.full(config.clients, config.alpha)
      shares = draws.softmax(draws.log_dirichlet(concentration, len(class_sizes), rng))
    received = draws.apportion(class_sizes, shares).T
    if np.min(np.sum(received, axis=1)) >= config.min_examples:
      return draws.deal(labels, received, rng)
  raise ValueError(
    f'None of {_MAX_DRAWS} draws with alpha={config.alpha} gave each of '
    f'{config.clients} clients min_examples={config.min_examples} of the '
    f'{len(labels)} examples; allow fewer, or raise alpha.'
  )
