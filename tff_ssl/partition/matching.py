"""Deals test examples to clients in the proportions of their training examples.

A client's own test data have the label histogram of its training data. To apply the
partition's rule to the test examples is not the same: what is drawn depends on how many
examples there are, and the clients of two draws are not the same clients.
"""

import numpy as np

from tff_ssl.partition import clients as clients_lib
from tff_ssl.partition import draws
from tff_ssl.partition import flat


def deal_matching(
  partition: clients_lib.Partition,
  labels: np.ndarray,
  other_labels: np.ndarray,
  rng: np.random.Generator,
) -> clients_lib.Partition:
  """Deals examples to clients by the class shares of an earlier partition.

  Args:
    partition: Client id -> positions into the examples that were dealt.
    labels: int [n], theirs; -1 for none.
    other_labels: int [m], of the examples to deal; -1 for none.
    rng: Source of which ones.

  Returns:
    The same clients, in the same order, with positions into the other examples, maybe
    none. Of each class a client has the share that it has of the class in `partition`,
    to a whole number; examples without a label, or of a class that no client holds,
    are nobody's.
  """
  held = flat.flatten(partition)
  dealt = np.flatnonzero(
    np.isin(other_labels, labels[held.together]) & (other_labels >= 0)
  )
  classes, sizes = np.unique(other_labels[dealt], return_counts=True)
  # Of each class, how many each client has.
  own, owners = labels[held.together], held.owners
  counts = np.zeros([len(classes), len(held)])
  for row, label in zip(counts, classes, strict=True):
    row[:] = np.bincount(owners[own == label], minlength=len(held))
  shares = counts / np.sum(counts, axis=1, keepdims=True)
  received = draws.apportion(sizes, shares).T
  drawn = draws.deal(other_labels[dealt], received, rng)
  return flat.FlatPartition(held.client_ids, dealt[drawn.together], drawn.sizes)


def match_sources(
  partition: clients_lib.Partition,
  source: np.ndarray,
  other: clients_lib.Partition,
  num_examples: int,
  rng: np.random.Generator,
) -> np.ndarray:
  """Gives other examples sources, in the proportions of their clients' own.

  Args:
    partition: Client id -> positions into the examples whose sources are known.
    source: int [n], theirs.
    other: Some of the clients, with positions into the other examples.
    num_examples: How many of these there are.
    rng: Source of which has which.

  Returns:
    int64 [num_examples]. Of a client's examples each source has the share that it has
    in `partition`, to a whole number; -1 for examples of no client, and for those of a
    client that holds none there.
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
