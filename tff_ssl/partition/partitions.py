"""Partitions: client ids and the positions of each client's examples."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tff_ssl.computing import checks
from tff_ssl.partition import flat
from tff_ssl.partition import ids

# Client id -> int64 positions into the training examples. No position belongs to
# two clients, ids are in lexicographic order, positions in ascending order.
Partition: TypeAlias = Mapping[str, np.ndarray]


def from_positions(positions: Sequence[np.ndarray]) -> flat.FlatPartition:
  """Names a list of clients.

  Args:
    positions: Positions of the examples of each client, int [n_k].

  Returns:
    The partition; ids are zero-padded, so that their lexicographic order is the
    order of the list.
  """
  sizes = np.array([len(held) for held in positions], np.int64)
  return from_sizes(np.concatenate([*positions, np.zeros(0, np.int64)]), sizes)


def from_sizes(
  together: np.ndarray, sizes: np.ndarray, prefix: str = 'client'
) -> flat.FlatPartition:
  """Names clients whose positions follow one another, client after client.

  Args:
    together: int [n_1 + ... + n_K].
    sizes: int [K], the number of positions of each client.
    prefix: What the ids begin with.
  """
  owners = np.repeat(np.arange(len(sizes)), sizes)
  return from_owners(owners, together, len(sizes), prefix)


def from_owners(
  owners: np.ndarray, positions: np.ndarray, clients: int, prefix: str = 'client'
) -> flat.FlatPartition:
  """Names clients, given the owner of each position.

  Args:
    owners: int [n], in [0, clients).
    positions: int [n].
    clients: Number of clients, including those without a position.
    prefix: What the ids begin with.
  """
  sizes = np.bincount(owners, minlength=clients)
  order = np.lexsort((positions, owners))
  together = positions.astype(np.int64, copy=False)[order]
  return flat.FlatPartition(ids.Numbered(prefix, clients), together, sizes)


def at_most(partition: Partition, examples: int, rng: np.random.Generator) -> Partition:
  """Limits how many of its examples each client keeps.

  Args:
    partition: The partition of all examples.
    examples: The most that a client keeps, at least 1.
    rng: Source of the draws.

  Returns:
    A partition with the same clients; those that hold more keep `examples`, drawn at
    random.
  """
  checks.at_least(1, examples=examples)
  full = flat.flatten(partition)
  sizes = np.minimum(full.sizes, examples)
  together = np.zeros(int(np.sum(sizes)), np.int64)
  ends = np.cumsum(sizes)
  # Written in place, client by client: no list of a million arrays.
  for held, size, end in zip(full.values(), sizes, ends, strict=True):
    together[end - size : end] = np.sort(rng.permutation(held.copy())[:examples])
  return flat.FlatPartition(full.client_ids, together, sizes)


def check_labels(kind: str, labels: np.ndarray) -> None:
  """Checks that every example has a label, for partitions that need one.

  Args:
    kind: The partition's name, for the error.
    labels: int [n], -1 for an unlabelled example.

  Raises:
    ValueError: Some example is unlabelled.
  """
  unlabelled = int(np.sum(labels < 0))
  if unlabelled:
    raise ValueError(
      f'A {kind} partition needs the label of every example, but {unlabelled} of '
      f'{len(labels)} examples are unlabelled; use iid:clients=5, or case.'
    )


def resolve_count(
  kind: str, num_examples: int, examples: int, clients: int | None
) -> int:
  """Number of clients of a fixed size.

  Args:
    kind: The partition's name, for the error.
    num_examples: Number of all examples.
    examples: Examples of one client.
    clients: Number of clients wanted; None for as many as can be filled.

  Returns:
    The number of clients.

  Raises:
    ValueError: There are too few examples.
  """
  count = num_examples // examples if clients is None else clients
  if count < 1 or count * examples > num_examples:
    raise ValueError(
      f'A {kind} partition of {max(count, 1)} clients with {examples} examples each '
      f'needs {max(count, 1) * examples} examples, but there are {num_examples}.'
    )
  return count
