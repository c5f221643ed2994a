"""A fixed number of classes for each client.

Zhuang, Wen, Zhang, "Divergence-aware Federated Self-Supervised Learning" (FedEMA, ICLR
2022), Section 5.1: each of K clients has examples of l classes, for example 5 clients
with 2 of CIFAR-10's 10 classes each; l = all classes is IID. Li et al., "Federated
Learning on Non-IID Data Silos: An Experimental Study" (ICDE 2022), Section 4.1, call it
quantity-based label imbalance.

Deviations:
  A client's classes are drawn so that the numbers of clients that hold a class differ
    by at most one; if they were drawn independently, a class might have no client.
"""

import dataclasses

import numpy as np

from tff_ssl.computing import kinds
from tff_ssl.partition import draws
from tff_ssl.partition import partitions


@dataclasses.dataclass(frozen=True)
class ClassesConfig(kinds.Kind):
  """How many classes each client has.

  Attributes:
    per_client: Classes of each client, FedEMA's l; all classes give IID clients.
    clients: Number of clients. If `clients * per_client` is less than the number of
      classes, the examples of the remaining classes belong to no client.
  """

  per_client: kinds.Count
  clients: kinds.Count


def build(
  config: ClassesConfig, labels: np.ndarray, rng: np.random.Generator
) -> partitions.Partition:
  """Splits each class evenly among the clients that hold it.

  Args:
    config: Numbers of classes and of clients.
    labels: int [n], none of them -1.
    rng: Source of the draws of each client's classes and examples.

  Returns:
    The partition; every example of a class that some client holds belongs to one.

  Raises:
    ValueError: An example is unlabelled, there are too few classes, or a class has
      fewer examples than clients that hold it.

  Source: FedEMA, Section 5.1.
  """
  partitions.check_labels('classes', labels)
  partitions.resolve_count('classes', len(labels), config.per_client, config.clients)
  classes, class_sizes = np.unique(labels, return_counts=True)
  if config.per_client > len(classes):
    raise ValueError(
      f'A classes partition with per_client={config.per_client} needs at least as '
      f'many classes, but there are {len(classes)}.'
    )
  holders = _assign(config, len(classes), rng)
  holder_counts = np.sum(holders, axis=0)
  short = np.flatnonzero(class_sizes < holder_counts)
  if len(short):
    raise ValueError(
      f'Class {classes[short[0]]} has {class_sizes[short[0]]} examples for the '
      f'{holder_counts[short[0]]} clients of a classes partition that hold it; take '
      'fewer clients, or a smaller per_client.'
    )
  return draws.deal(labels, draws.split_evenly(class_sizes, holders), rng)


def _assign(
  config: ClassesConfig, num_classes: int, rng: np.random.Generator
) -> np.ndarray:
  """Which clients hold which classes, bool [clients, classes]."""
  holders = np.zeros((config.clients, num_classes), bool)
  held = np.zeros(num_classes, np.int64)
  for client in holders:
    # The classes that the fewest clients hold; ties are broken at random.
    chosen = np.lexsort((rng.random(num_classes), held))[: config.per_client]
    client[chosen] = True
    held[chosen] += 1
  return holders
