"""A part of a large data set, for a cheap look: at most so many examples of a split.

Holders of examples (clients, or cases) are taken with all that they hold or not at all;
an example that nobody else's belongs to is its own. Each label, that of most of a
holder's examples, has the share in the part that it has in the whole, and so have
examples without one. Within a label the names decide, hashed with a seed: not the order
of the files, nor a run's own seed, so that ten runs and their evaluations have the same
examples.
"""

from collections.abc import Sequence
import dataclasses
import hashlib
from typing import Any, NamedTuple

import numpy as np

from tasks import intake
from tasks import splits
from tasks import task_types

# The option that limits each split.
_OPTIONS = {'train': 'examples', 'test': 'test_examples', 'validation': 'test_examples'}


class Limits(NamedTuple):
  """How many examples are taken.

  Attributes:
    examples: Of the training split; None: all.
    test_examples: Of the test split, and at most of a validation split of the data;
      None: all.
  """

  examples: int | None = None
  test_examples: int | None = None

  def of(self, split: str) -> int | None:
    """Returns the limit of a split, by its name."""
    return getattr(self, _OPTIONS[split])


ALL = Limits()


def take(task: task_types.Task, limits: Limits, seed: int) -> task_types.Task:
  """Returns a task with a part of its examples, and lines that say so.

  Args:
    task: The whole task.
    limits: How many examples are taken.
    seed: Same seed, same examples.

  Raises:
    ValueError: A split has fewer examples, or no holder that fits into the limit.
  """
  if limits == ALL:
    return task
  parts, report = dict[str, Any](), [*task.report]
  for split, examples in task.splits().items():
    if limits.of(split) is not None:
      names, has_clients = task.names_of_holders(examples), examples.client is not None
      own = np.full(len(names), split)
      taken, found = of_splits(names, examples.label, own, limits, seed, has_clients)
      parts[split] = examples.take(np.flatnonzero(taken))
      report += [finding.sentence for finding in found]
  return dataclasses.replace(task, **parts, report=(*report,))


def of_splits(
  names: Sequence[str],
  labels: np.ndarray,
  split: np.ndarray,
  limits: Limits,
  seed: int,
  has_clients: bool,
) -> tuple[np.ndarray, list[intake.Finding]]:
  """Chooses examples before they are read.

  Args:
    names: The name of each example's holder.
    labels: int [n], -1 for none.
    split: Name of each example's split, str [n].
    limits: How many examples are taken.
    seed: Same seed, same examples.
    has_clients: Whether a holder is called a client, and not a case.

  Returns:
    bool [n], whether each is taken, and what must be said of it.

  Raises:
    ValueError: See `take`.
  """
  is_taken, findings = np.ones(len(names), bool), []
  for part in dict.fromkeys(split.tolist()):
    limit, own = limits.of(part), np.flatnonzero(split == part)
    if limit is not None:
      if part == 'validation':
        limit = min(limit, len(own))
      of_part = [names[place] for place in own]
      is_taken[own] = chosen(of_part, labels[own], limit, seed, part)
      said = f'{np.sum(is_taken[own]):,} of {len(own):,} {part} examples'
      if (whole := len({*of_part})) < len(own):
        kept = {names[place] for place in own[is_taken[own]]}
        holders = 'clients' if has_clients else 'cases'
        said += f', {len(kept):,} of {whole:,} {holders}'
      findings.append(intake.Finding(_OPTIONS[part], (), said))
  return is_taken, findings


def chosen(
  names: Sequence[str], labels: np.ndarray, limit: int, seed: int, split: str
) -> np.ndarray:
  """Chooses examples of a split: holders in their order, as far as they fit.

  Args:
    names: The name of each example's holder.
    labels: int [n], -1 for none.
    limit: How many examples are taken at most; so many, unless holders have several.
    seed: Same seed, same examples.
    split: Name of the split.

  Returns:
    bool [n], whether an example is taken.

  Raises:
    ValueError: See `take`.
  """
  if limit > len(names):
    raise ValueError(
      f'{_OPTIONS[split]} of --data is {limit:,}; it must be at most {len(names):,}, '
      f'which the {split} split has.'
    )
  number = {name: k for k, name in enumerate(sorted({*names}))}
  holder = np.array([number[name] for name in names])
  sizes = np.bincount(holder)
  is_in, left = np.zeros(len(number), bool), limit
  for k in _order([*number], splits.labels_of_cases(holder, labels), sizes, seed):
    if sizes[k] <= left:
      is_in[k], left = True, left - sizes[k]
  if not np.any(is_in):
    raise ValueError(
      f'{_OPTIONS[split]} of --data is {limit:,}; it must be at least '
      f'{np.min(sizes):,}, as many as the smallest holder of {split} examples has: '
      'each is taken as a whole.'
    )
  return is_in[holder]


def _order(
  names: Sequence[str], labels: np.ndarray, sizes: np.ndarray, seed: int
) -> list[int]:
  """Returns holders in an order of which each beginning has all labels by their shares.

  A holder's place is the share of its label's examples before it, and half of its own.
  """
  hashed = [_hash(name, seed) for name in names]
  place = np.empty(len(names))
  for label in np.unique(labels):
    members = sorted(np.flatnonzero(labels == label).tolist(), key=hashed.__getitem__)
    own = sizes[members]
    place[members] = (np.cumsum(own) - own / 2) / np.sum(own)
  return sorted(range(len(names)), key=lambda k: (place[k], hashed[k]))


def _hash(name: str, seed: int) -> bytes:
  content = name.encode('utf-8', 'surrogatepass')
  return hashlib.blake2b(
    content, digest_size=16, key=f'examples {seed}'.encode()
  ).digest()
