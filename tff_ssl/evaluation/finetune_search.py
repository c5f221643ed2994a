"""The choice of rate and steps of fine-tuning, on held-out training labels.

No rate suits all encoders (see `finetune`), and test labels must not choose it.
"""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np

from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class Search(kinds.Kind):
  """How rate and steps are chosen: by the accuracy on held-out training labels.

  Each rate is tried once, with the configuration's steps, on the labelled images
  outside the validation part, and is tested at each stop. The final training on all
  labelled images uses the best rate and stop. That takes `1 + len(learning_rates)`
  times the steps (four by default), and an encoding of the validation part for each
  rate and stop. If few labels are held out, the trials are repeated for several parts:
  up to ten times the steps by default, in batches of correspondingly few labels.

  Attributes:
    learning_rates: The rates that are tried.
    stops: When a trial is tested, as increasing shares of the steps, the last 1. The
      final training ends at the chosen stop, at the rate that the cosine has there.
    share: Share of the labelled images (or cases) of each class that is held out,
      rounded half up: at least one, but none of a class that has only one.
    at_most: Maximum number of images (or cases) held out, drawn from those.
    few: If a part has fewer images (or cases), there are several parts, and scores are
      averaged.
    splits: Maximum number of parts. They hold different images (or cases) of each class
      as far as there are enough.
    fallback: The rate if no class has two labels, so that nothing can be held out.
  """

  learning_rates: tuple[kinds.Positive, ...] = (1e-3, 3e-3, 1e-2)
  stops: tuple[float, ...] = (0.5, 1.0)
  share: kinds.Inner = 0.2
  at_most: kinds.Count = 2000
  few: kinds.Count = 30
  splits: kinds.Count = 3
  fallback: kinds.Positive = 3e-3

  def __post_init__(self) -> None:
    super().__post_init__()
    if not self.learning_rates:
      raise ValueError('learning_rates is (); it must have at least one rate.')
    bounds = itertools.pairwise((0.0, *self.stops))
    if not all(a < b for a, b in bounds) or self.stops[-1:] != (1.0,):
      raise ValueError(
        f'stops is {self.stops}; it must be increasing shares of the steps in (0, 1], '
        'the last 1.'
      )


class Chosen(NamedTuple):
  """The choice of a search.

  Attributes:
    learning_rate: The rate.
    steps: The steps after which training stops.
    validated: Images (or cases) of all validation parts; 0: the rate is the fallback.
  """

  learning_rate: float
  steps: int
  validated: int


def parts(labels: np.ndarray, search: Search, seed: int) -> list[np.ndarray]:
  """Draws the validation parts: one, or several where it is small; none if it is empty.

  Args:
    labels: int [n], all with a class.
    search: Says how much is held out.
    seed: Non-negative integer.
  """
  size = hold_out(labels, search, seed).size
  if not size:
    return []
  number = min(search.splits, -(-search.few // size))
  return [hold_out(labels, search, seed, k) for k in range(number)]


def hold_out(
  labels: np.ndarray, search: Search, seed: int, number: int = 0
) -> np.ndarray:
  """Draws a validation part of labelled images (or cases).

  Args:
    labels: int [n], all with a class.
    search: Says how much is held out.
    seed: Non-negative integer.
    number: Number of the part, from 0. Each part takes the next images (or cases) of
      every class, and after the last image of a class continues with its first.

  Returns:
    int64, increasing positions: at least one of each class that has two labels or more,
    unless that is more than `at_most`; none of a class that has one.
  """
  random = np.random.default_rng([seed, len(labels)])
  drawn = []
  for name in np.unique(labels):
    members = random.permutation(np.flatnonzero(labels == name))
    wanted = max(1, int(np.floor(search.share * members.size + 0.5)))
    wanted = min(wanted, members.size - 1)
    drawn.append(np.roll(members, -number * wanted)[:wanted])
  positions = np.concatenate(drawn)
  if positions.size > search.at_most:
    positions = random.permutation(positions)[: search.at_most]
  return np.sort(positions)


def score(logits: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
  """Returns the accuracy, and minus the cross-entropy, which breaks ties.

  With few labels many rates have the same accuracy. Logits that are not finite have the
  lowest score.
  """
  logits = logits.astype(np.float64)
  highest = np.max(logits, axis=1, keepdims=True)
  log_sum = np.log(np.sum(np.exp(logits - highest), axis=1)) + highest[:, 0]
  entropy = np.mean(log_sum - logits[np.arange(len(labels)), labels])
  if not np.isfinite(entropy):
    return -1.0, -np.inf
  return float(np.mean(np.argmax(logits, axis=1) == labels)), float(-entropy)
