"""Labels: which training examples keep theirs (1 %, 10 %, 100 %), and their range."""

import numpy as np

from tff_ssl.computing import checks


def label_fraction(
  labels: np.ndarray,
  fraction: float,
  seed: int,
  groups: np.ndarray | None = None,
  draw: int = 0,
) -> np.ndarray:
  """Draws a stratified subset of the labelled examples.

  Of each class, `fraction` of the labelled examples is drawn, rounded half up, but at
  least one. With the same seed and draw, subsets are nested: 10 % contain the examples
  of 1 %.

  With groups (cases), whole groups are drawn. A group counts for the class of most of
  its labelled examples (the lowest class on a tie). Of a class that leads in no group,
  one group with such an example is drawn.

  Args:
    labels: int [N]; -1 for no label. Such examples are never drawn.
    fraction: Share of the labelled examples (or groups) of each class, in (0, 1].
    seed: Non-negative integer; the same seed gives the same subset.
    groups: int [N] group of each example, or None for each example by itself.
    draw: Number of the draw: 0, 1, ... are independent draws with one seed.

  Returns:
    Positions of the drawn examples, int64, increasing.

  Raises:
    ValueError: `fraction`, `seed` or `draw` is out of range, `groups` has another
      length than `labels`, or no example has a label.
  """
  labels = np.asarray(labels)
  if not 0 < fraction <= 1:
    raise ValueError(f'fraction is {fraction}; it must be in (0, 1].')
  checks.at_least(0, seed=seed, draw=draw)
  if groups is not None and len(groups) != len(labels):
    raise ValueError(
      f'There are {len(groups)} groups for {len(labels)} labels; each label needs one.'
    )
  positions = np.flatnonzero(labels >= 0)
  if not positions.size:
    raise ValueError(
      f'None of the {len(labels)} examples has a label; label_fraction needs one.'
    )
  members = positions if groups is None else np.asarray(groups)[positions]
  _, unit = np.unique(members, return_inverse=True)
  classes, class_index = np.unique(labels[positions], return_inverse=True)
  leading = _leading_class(unit, class_index)
  chosen = np.zeros([leading.size], bool)
  for c, name in enumerate(classes):
    # One stream per class: its draw does not depend on the size of other classes.
    random = np.random.default_rng([seed, int(name), *([draw] if draw else [])])
    order = random.permutation(np.unique(unit[class_index == c]))
    # Subsets are nested because all are prefixes of one order.
    led = order[leading[order] == c]
    chosen[led[: int(np.floor(fraction * led.size + 0.5))]] = True
    chosen[led[:1] if led.size else order[:1]] = True
  return positions[chosen[unit]].astype(np.int64)


def check(what: str, labels: np.ndarray, num_classes: int, num_examples: int) -> None:
  """Refuses labels on which no classifier can be trained.

  Args:
    what: Name of the method, for the message.
    labels: int [N].
    num_classes: Number of classes.
    num_examples: Number of examples.

  Raises:
    ValueError: There is no example, their number is not N, or a label is not in
      [0, num_classes).
  """
  if len(labels) != num_examples or not num_examples:
    raise ValueError(
      f'{what} got {num_examples} examples and {len(labels)} labels; it needs the same '
      'number of each, and at least one.'
    )
  if np.min(labels) < 0 or np.max(labels) >= num_classes:
    raise ValueError(
      f'{what} got labels {np.min(labels)} to {np.max(labels)}; they must be in '
      f'[0, {num_classes}).'
    )


def _leading_class(unit: np.ndarray, class_index: np.ndarray) -> np.ndarray:
  """Returns the most frequent class of each unit, the lowest on a tie."""
  pairs, counts = np.unique(np.stack([unit, class_index]), axis=1, return_counts=True)
  # By unit, then by falling count, then by class: the first row of a unit leads it.
  order = np.lexsort([pairs[1], -counts, pairs[0]])
  _, first = np.unique(pairs[0][order], return_index=True)
  return pairs[1][order][first]
