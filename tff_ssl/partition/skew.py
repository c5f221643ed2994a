"""Skewness: a share of the data is spread evenly, the rest goes by class.

Wang, Zhang, Pang, Zhang, Torralba, "Does Decentralized Learning with Non-IID Unlabeled
Data Benefit from Self Supervision?" (Dec-SSL, ICLR 2023), Section C.2, after Hsieh et
al., "The Non-IID Data Quagmire of Decentralized Machine Learning" (ICML 2020): a client
has the fraction beta of its data from all classes equally, and 1 - beta from classes
that are exclusively its own.

Deviations:
  The even part is spread class by class, in shares that differ by at most one example,
    not by one shuffle of all examples: the same in expectation, without the noise.
  The paper gives each client floor(classes / clients) classes of its own. Here the
    remaining classes are own classes too, one each of as many clients, so that every
    example belongs to a client.
  With more clients than classes, floor(classes / clients) is 0. Here each client then
    has one class of its own, and the clients of a class share its exclusive part
    evenly. The numbers of clients of two classes differ by at most one.
"""

import dataclasses

import numpy as np

from tff_ssl.computing import kinds
from tff_ssl.partition import draws
from tff_ssl.partition import partitions


@dataclasses.dataclass(frozen=True)
class SkewConfig(kinds.Kind):
  """How much of the data is spread evenly.

  Attributes:
    beta: The paper's beta, the fraction that is spread evenly: 0 gives clients with
      disjoint classes, 1 IID clients.
    clients: Number of clients.
  """

  beta: kinds.Fraction
  clients: kinds.Count


def build(
  config: SkewConfig, labels: np.ndarray, rng: np.random.Generator
) -> partitions.Partition:
  """Gives each client its classes, and an even share of the rest.

  Args:
    config: The fraction and the number of clients.
    labels: int [n], none of them -1.
    rng: Source of the draws of each client's classes and of the examples to spread.

  Returns:
    The partition; every example belongs to a client.

  Raises:
    ValueError: An example is unlabelled, or there are too few examples for all clients.

  Source: Dec-SSL, Section C.2.
  """
  partitions.check_labels('skew', labels)
  partitions.resolve_count('skew', len(labels), 1, config.clients)
  class_sizes = np.unique(labels, return_counts=True)[1]
  even = np.rint(config.beta * class_sizes).astype(np.int64)
  everyone = np.ones((config.clients, len(class_sizes)), bool)
  received = draws.split_evenly(even, everyone)
  classes = rng.permutation(len(class_sizes))
  if config.clients <= len(classes):
    for client, own in enumerate(np.array_split(classes, config.clients)):
      received[client, own] += class_sizes[own] - even[own]
  else:
    owners = np.zeros((config.clients, len(classes)), bool)
    owners[np.arange(config.clients), np.resize(classes, config.clients)] = True
    received += draws.split_evenly(class_sizes - even, owners)
  draws.check_filled('skew', received)
  return draws.deal(labels, received, rng)
