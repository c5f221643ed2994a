"""Deals test examples to clients in the proportions of their training examples.

A client's own test data have the label histogram of its training data. Applying the
partition's rule to the test examples would not do this: draws depend on how many
examples there are, and the clients of two draws are not the same clients.
"""

import numpy as np

from tff_ssl.partition import draws
from tff_ssl.partition import flat
from tff_ssl.partition import partitions


def deal_matching(
  partition: partitions.Partition,
  labels: np.ndarray,
  other_labels: np.ndarray,
  rng: np.random.Generator,
) -> partitions.Partition:
  """Deals examples to clients by the class shares of an earlier partition.

  Args:
    partition: Client id -> positions into the examples that were dealt.
    labels: int [n], their labels; -1 for none.
    other_labels: int [m], labels of the examples to deal; -1 for none.
    rng: Source of the draws.

  Returns:
    The same clients, in the same order, with positions into the other examples, maybe
    none. A client's share of each class is its share in `partition`, rounded to whole
    examples. Examples without a label, or of a class that no client holds, belong to no
    client.
  """
  held = flat.flatten(partition)
  dealt = np.flatnonzero(
    np.isin(other_labels, labels[held.together]) & (other_labels >= 0)
  )
  classes, sizes = np.unique(other_labels[dealt], return_counts=True)
  # How many examples of each class each client has.
  own, owners = labels[held.together], held.owners
  counts = np.zeros([len(classes), len(held)])
  for row, label in zip(counts, classes, strict=True):
    row[:] = np.bincount(owners[own == label], minlength=len(held))
  shares = counts / np.sum(counts, axis=1, keepdims=True)
  received = draws.apportion(sizes, shares).T
  drawn = draws.deal(other_labels[dealt], received, rng)
  return flat.FlatPartition(held.client_ids, dealt[drawn.together], drawn.sizes)


def match_sources(
  partition: partitions.Partition,
  source: np.ndarray,
  other: partitions.Partition,
  num_examples: int,
  rng: np.random.Generator,
) -> np.ndarray:
  """Gives other examples sources, in the proportions of their clients' examples.

  Args:
    partition: Client id -> positions into the examples whose sources are known.
    source: int [n], their sources.
    other: Some of the clients, with positions into the other examples.
    num_examples: How many other examples there are.
    rng: Source of the draws.

  Returns:
    int64 [num_examples]. A source's share of a client's examples is its share in
    `partition`, rounded to whole examples. Examples of no client, or of a client
    without examples in `partition`, have -1.
  """
  result = np.full(num_examples, -1, np.int64)
  for client_id, positions in other.items():
    own = source[partition[client_id]]
    if len(own):
      present, counts = np.unique(own, return_counts=True)
      shares = draws.apportion(
        np.array([len(positions)]), counts[np.newaxis] / len(own)
      )[0]
      result[positions] = rng.permutation(np.repeat(present, shares))
  return result
