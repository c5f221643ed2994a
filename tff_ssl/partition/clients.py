"""Partitions: client ids and the positions of each client's examples."""

import collections
from collections.abc import Sequence

import numpy as np

# Client id -> int64 positions into the training examples. No position belongs to
# two clients, ids are in lexicographic order, positions in ascending order.
Partition = collections.OrderedDict[str, np.ndarray]


def from_positions(
  positions: Sequence[np.ndarray], prefix: str = 'client'
) -> Partition:
  """Names a list of clients.

  Args:
    positions: For each client the positions of its examples, int [n_k].
    prefix: What the ids begin with.

  Returns:
    The partition; ids are zero-padded, so that their lexicographic order is the
    order of the list.
  """
  digits = len(str(max(len(positions) - 1, 0)))
  return collections.OrderedDict(
    (f'{prefix}_{k:0{digits}d}', np.sort(np.asarray(held, np.int64)))
    for k, held in enumerate(positions)
  )


def at_most(partition: Partition, examples: int, rng: np.random.Generator) -> Partition:
  """Leaves every client some of its examples.

  Args:
    partition: Of all examples.
    examples: The most that a client keeps, at least 1.
    rng: Source of which ones.

  Returns:
    The partition with the same clients, of which those that hold more keep `examples`
    drawn at random.
  """
  check_count('examples that a client keeps at most', examples)
  return collections.OrderedDict(
    (name, np.sort(rng.permutation(held)[:examples]))
    for name, held in partition.items()
  )


def check_count(field: str, value: int | None, minimum: int = 1) -> None:
  """Checks an optional whole number of a partition's configuration.

  Args:
    field: The name to use in the error.
    value: The number, or None where it was not given.
    minimum: The least allowed.

  Raises:
    ValueError: The value is neither None nor a whole number of at least `minimum`.
  """
  if value is None:
    return
  if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
    raise ValueError(
      f'{field} is {value!r}; it must be a whole number of at least {minimum}.'
    )


def check_labels(kind: str, labels: np.ndarray) -> None:
  """Checks that every example has a label, for partitions that need one.

  Args:
    kind: The partition's name, for the error.
    labels: int [n], -1 where an example is unlabelled.

  Raises:
    ValueError: Some example is unlabelled.
  """
  unlabelled = int(np.sum(labels < 0))
  if unlabelled:
    raise ValueError(
      f'A {kind} partition needs the label of every example, but {unlabelled} of '
      f'{len(labels)} examples are unlabelled; use "iid" or "case".'
    )


def resolve_count(
  kind: str, num_examples: int, examples: int, clients: int | None
) -> int:
  """Number of clients of a fixed size.

  Args:
    kind: The partition's name, for the error.
    num_examples: Examples there are.
    examples: Examples of one client.
    clients: Clients asked for, or None for as many as can be filled.

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
