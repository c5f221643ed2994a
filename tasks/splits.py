"""Train and test splits that never cut a case in two."""

import numpy as np


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
  label_ids, label_of = np.unique(labels, return_inverse=True)
  counts = np.zeros((len(case_ids), len(label_ids)), np.int64)
  np.add.at(counts, (case_of, label_of), 1)
  case_label = np.argmax(counts, axis=1)
  rng = np.random.default_rng(seed)
  held_out = np.zeros(len(case_ids), bool)
  for label in range(len(label_ids)):
    members = rng.permutation(np.flatnonzero(case_label == label))
    count = min(max(round(fraction * len(members)), 1), len(members) - 1)
    held_out[members[: max(count, 0)]] = True
  if not np.any(held_out):
    raise ValueError(
      f'The {len(case_ids)} {what} cannot be split into {into}: at least one label '
      f'must have two {what}.'
    )
  return held_out[case_of]
