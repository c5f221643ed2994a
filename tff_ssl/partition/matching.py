"""Test examples for clients, in the proportions of their training examples.

A client's own test data have the label histogram of its training data. To apply the
partition's rule to the test examples is not the same: what is drawn depends on how many
examples there are, and the clients of two draws are not the same clients.
"""

import numpy as np

from tff_ssl.partition import clients as clients_lib
from tff_ssl.partition import draws


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
  dealt = np.flatnonzero(
    np.isin(other_labels, labels[np.concatenate(list(partition.values()))])
    & (other_labels >= 0)
  )
  classes, sizes = np.unique(other_labels[dealt], return_counts=True)
  held = np.array(
    [[np.sum(labels[own] == c) for own in partition.values()] for c in classes],
    np.float64,
  ).reshape(len(classes), len(partition))
  shares = held / np.sum(held, axis=1, keepdims=True)
  received = draws.apportion(sizes, shares).T
  drawn = draws.deal(other_labels[dealt], received, rng)
  return clients_lib.Partition(
    (client_id, dealt[positions])
    for client_id, positions in zip(partition, drawn.values(), strict=True)
  )


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
