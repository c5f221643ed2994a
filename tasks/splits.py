"""Train and test splits that never cut a case in two.

Published data sets are split by label, once and for all (`hold_out_cases`). A user's
own data grow: who is added, or gets a label, must move nobody. There (`hold_out_named`)
a split is a function of names alone.
"""

from collections.abc import Sequence
import hashlib
import re
import unicodedata

import numpy as np

_LAST_NUMBER = re.compile(r'([0-9]{1,18})([^0-9]*)$')
# Of 2^64: the fractional parts of the golden ratio and of the root of 2. As no multiple
# of one is a multiple of the other, those held out first leave an even rest.
_STEPS = {'test': 0x9E3779B97F4A7C15, 'validation': 0x6A09E667F3BCC909}


def hold_out_cases(
  cases: np.ndarray,
  labels: np.ndarray,
  fraction: float,
  seed: int,
  what: str = 'cases',
  into: str = 'train and test',
) -> np.ndarray:
  """Chooses the test cases, the same fraction of the cases of every label.

  A case counts for its most frequent label (the lower of two equally frequent ones);
  unlabelled examples count as a label of their own. A label with one case has none in
  the test split; any other label has at least one in each split.

  Args:
    cases: int64 [n], the case of each example.
    labels: int32 [n], the label of each example, -1 for none.
    fraction: Fraction of the cases to hold out, between 0 and 1.
    seed: Same seed, same split.
    what: What to call cases in the error.
    into: What to call the two splits there.

  Returns:
    bool [n], whether an example is held out.

  Raises:
    ValueError: No case can be held out.
  """
  case_ids, case_of = np.unique(cases, return_inverse=True)
  case_label = labels_of_cases(case_of, labels)
  rng = np.random.default_rng(seed)
  held_out = np.zeros(len(case_ids), bool)
  for label in np.unique(labels):
    members = rng.permutation(np.flatnonzero(case_label == label))
    count = min(max(round(fraction * len(members)), 1), len(members) - 1)
    held_out[members[: max(count, 0)]] = True
  if not np.any(held_out):
    raise ValueError(
      f'The {len(case_ids)} {what} cannot be split into {into}: at least one label '
      f'must have two {what}.'
    )
  return held_out[case_of]


def labels_of_cases(case: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns the most frequent label of each case, the lower of two, int [m].

  Args:
    case: int [n], the number of each example's case, from 0 to m - 1.
    labels: int [n], -1 for none, which counts as a label of its own.
  """
  label_ids, label_of = np.unique(labels, return_inverse=True)
  # Not a table of all cases and labels, which may be a billion.
  pairs, counts = np.unique(case * len(label_ids) + label_of, return_counts=True)
  of_case, of_label = np.divmod(pairs, len(label_ids))
  order = np.lexsort((of_label, -counts, of_case))
  _, first = np.unique(of_case[order], return_index=True)
  return label_ids[of_label[order[first]]]


def hold_out_named(
  names: Sequence[str],
  fraction: float,
  seed: int,
  what: str,
  into: tuple[str, str] = ('train', 'test'),
) -> np.ndarray:
  """Chooses those to hold out by their names, so that no addition moves the others.

  A name has a fixed place between 0 and 1; whoever is below `fraction` is held out. So
  the size of the split varies: a little if names are numbered, and otherwise like a
  binomial variable. If nobody is below, the lowest is held out: who trains in a
  population is never held out in a larger one.

  If all are below, nobody can train: to be held out in a larger population, a name must
  be held out in each smaller one (and beside each other name), so that a rule with two
  splits of any population would hold out one name of any number.

  Args:
    names: The name of the holder of each example.
    fraction: Expected share of the names to hold out, between 0 and 1.
    seed: Same seed, same places.
    what: What names are of, in the errors.
    into: What to call the two splits; the second, `test` or `validation`, has places of
      its own.

  Returns:
    bool [n], whether an example is held out.

  Raises:
    ValueError: There are fewer than two names, or all of them are held out.
  """
  places = {name: _place(name, seed, into[1]) for name in dict.fromkeys(names)}
  if len(places) < 2:
    raise ValueError(
      f'The {len(places)} {what} cannot be split into {into[0]} and {into[1]}: there '
      'must be at least two.'
    )
  below = max(fraction, min(places.values()))
  held_out = {name for name, place in places.items() if place <= below}
  if len(held_out) == len(places):
    raise ValueError(
      f'The {len(places)} {what} cannot be split into {into[0]} and {into[1]}: by '
      f'their names all of them are {into[1]} {what}; add others, or give each a split.'
    )
  return np.array([name in held_out for name in names])


def _place(name: str, seed: int, split: str) -> float:
  """Returns the place of a name in [0, 1).

  Uniform, and independent for names that differ in more than their last number. Names
  that differ in it alone are multiples of an irrational number apart: of any n in a row
  a share f n is below f, to within one or two. Most names are such, in each folder.
  """
  text = unicodedata.normalize('NFC', name)
  number = 0
  if match := _LAST_NUMBER.search(text):
    number = int(match[1])
    text = f'{text[: match.start()]}#{match[2]}'
  digest = hashlib.blake2b(
    text.encode('utf-8', 'surrogatepass'), digest_size=8, key=f'{split} {seed}'.encode()
  )
  start = int.from_bytes(digest.digest(), 'big')
  return (start + number * _STEPS[split]) % 2**64 / 2**64
