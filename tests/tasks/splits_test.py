"""Stratified splits by case."""

import numpy as np
import pytest

from tasks import splits


def test_a_case_is_never_cut_and_every_label_gives_its_fraction():
  # 100 cases of label 0, 10 of label 1, each with 1 to 3 images.
  cases = np.repeat(np.arange(110), np.arange(110) % 3 + 1)
  labels = (cases >= 100).astype(np.int32)
  held_out = splits.hold_out_cases(cases, labels, 0.2, seed=0)
  test_cases = np.unique(cases[held_out])
  assert not np.intersect1d(test_cases, cases[~held_out]).size
  assert np.sum(test_cases < 100) == 20
  assert np.sum(test_cases >= 100) == 2


def test_the_seed_determines_the_split():
  cases = np.arange(50)
  labels = np.zeros(50, np.int32)
  first, same, other = (
    splits.hold_out_cases(cases, labels, 0.2, seed) for seed in (0, 0, 1)
  )
  np.testing.assert_array_equal(first, same)
  assert not np.array_equal(first, other)


def test_rare_labels_are_in_both_splits_where_they_can_be():
  held_out = splits.hold_out_cases(
    np.arange(3), np.array([0, 0, 1], np.int32), 0.2, seed=0
  )
  assert np.sum(held_out[:2]) == 1
  assert not held_out[2]


def test_single_cases_cannot_be_split():
  with pytest.raises(ValueError, match='2 cases cannot be split'):
    splits.hold_out_cases(np.arange(2), np.arange(2, dtype=np.int32), 0.2, seed=0)
