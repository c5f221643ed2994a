"""Many clients of one fixed size, non-IID by a Dirichlet distribution over labels.

Tzu-Ming Harry Hsu, Hang Qi, Matthew Brown, "Measuring the Effects of Non-Identical
Data Distribution for Federated Visual Classification" (2019): a client has class
proportions q ~ Dir(alpha * prior), where prior is the label distribution of all
examples, and draws the classes of its examples from q, without replacement; a class
that has run out is removed and q renormalised. DCCO's CIFAR-100 clients are of this
kind.

Deviations:
  The paper's prior is uniform over balanced classes; here it is the distribution of
    the labels, which for balanced classes is the same.
  alpha = 0 is the limit: a client has one class, drawn by prior from the classes
    that can still fill a client. The remainders of the classes, each too small for
    one more client, are cut into the last clients, which have as few classes as that
    allows. Of DCCO's 3,125 clients of 16 images of CIFAR-100, whose classes have 500
    each, only 3,100 have one class. Fewer examples than fill a client are left over.
"""

import dataclasses

import numpy as np
from scipy import special

from tff_ssl.computing import kinds
from tff_ssl.partition import draws
from tff_ssl.partition import partitions


@dataclasses.dataclass(frozen=True)
class DirichletConfig(kinds.Kind):
  """Clients of a fixed size.

  Attributes:
    alpha: Concentration; 0 gives clients of one class, but the last clients have what
      remains of several; a large value gives IID clients.
    examples: Examples of each client.
    clients: Number of clients; None for as many as can be filled.
  """

  alpha: kinds.NotNegative
  examples: kinds.Count
  clients: kinds.Count | None = None

  def __post_init__(self) -> None:
    super().__post_init__()
    draws.check_alpha('dirichlet', self.alpha)


def build(
  config: DirichletConfig, labels: np.ndarray, rng: np.random.Generator
) -> partitions.Partition:
  """Fills clients of a fixed size, each by its own class proportions.

  Args:
    config: Concentration and sizes.
    labels: int [n], none of them -1.
    rng: Source of every draw.

  Returns:
    The partition. If `config.clients` is None, it leaves out fewer than
    `config.examples` examples, which fill no client.

  Raises:
    ValueError: An example is unlabelled, or there are too few examples.

  Source: Hsu et al. (2019), Section 3.
  """
  partitions.check_labels('dirichlet', labels)
  class_sizes = np.unique(labels, return_counts=True)[1]
  count = partitions.resolve_count(
    'dirichlet', len(labels), config.examples, config.clients
  )
  fill = _fill_clients if config.alpha else _fill_one_class_clients
  received = fill(config, class_sizes, count, rng)
  return draws.deal(labels, received, rng)


def _fill_clients(
  config: DirichletConfig,
  class_sizes: np.ndarray,
  count: int,
  rng: np.random.Generator,
) -> np.ndarray:
  """Examples of each class that each client receives, int64 [clients, classes]."""
  concentration = config.alpha * class_sizes / np.sum(class_sizes)
  log_proportions = draws.log_dirichlet(concentration, count, rng)
  received = np.zeros((count, len(class_sizes)), np.int64)
  left = class_sizes.copy()
  for client in range(count):
    missing = config.examples
    while missing:
      available = np.flatnonzero(left)
      proportions = special.softmax(log_proportions[client, available])
      drawn = rng.multinomial(missing, proportions)
      # Examples drawn beyond what is left of a class are drawn again from the other
      # classes: the distribution is the same as for one example at a time.
      dealt = np.minimum(drawn, left[available])
      received[client, available] += dealt
      left[available] -= dealt
      missing -= int(np.sum(dealt))
  return received


def _fill_one_class_clients(
  config: DirichletConfig,
  class_sizes: np.ndarray,
  count: int,
  rng: np.random.Generator,
) -> np.ndarray:
  """Like `_fill_clients`, in the limit alpha = 0."""
  fillable = class_sizes // config.examples
  prior = class_sizes / np.sum(class_sizes)
  received = np.zeros((count, len(class_sizes)), np.int64)
  of_one_class = min(count, int(np.sum(fillable)))
  for client in range(of_one_class):
    weights = np.where(fillable > 0, prior, 0.0)
    chosen = rng.choice(len(prior), p=weights / np.sum(weights))
    received[client, chosen] = config.examples
    fillable[chosen] -= 1
  if count > of_one_class:
    left = class_sizes - np.sum(received, axis=0)
    order = rng.permutation(len(left))
    received[of_one_class:, order] = draws.cut(
      left[order], count - of_one_class, config.examples
    )
  return received
