import itertools

import numpy as np
import pytest

from tff_ssl.evaluation import label_fractions


def _labels():
  # 200 of class 0, 40 of class 1, 3 of class 2 and 57 without a label, shuffled.
  labels = np.repeat([0, 1, 2, -1], [200, 40, 3, 57])
  return np.random.default_rng(0).permutation(labels)


@pytest.mark.parametrize(
  'fraction, counts',
  [(0.01, [2, 1, 1]), (0.1, [20, 4, 1]), (0.5, [100, 20, 2]), (1.0, [200, 40, 3])],
)
def test_each_class_keeps_its_share_and_at_least_one(fraction, counts):
  labels = _labels()
  positions = label_fractions.label_fraction(labels, fraction, seed=3)
  assert np.all(np.diff(positions) > 0)
  np.testing.assert_array_equal(np.bincount(labels[positions]), counts)


def test_subsets_are_nested_and_fixed_by_the_seed():
  labels = _labels()
  subsets = [
    set(label_fractions.label_fraction(labels, fraction, seed=3))
    for fraction in (0.01, 0.05, 0.1, 0.37, 1.0)
  ]
  for inner, outer in itertools.pairwise(subsets):
    assert inner < outer
  assert subsets[2] == set(label_fractions.label_fraction(labels, 0.1, seed=3))
  assert subsets[2] != set(label_fractions.label_fraction(labels, 0.1, seed=4))


def test_groups_are_kept_or_dropped_as_a_whole():
  groups = np.repeat(np.arange(60), 3)
  labels = np.repeat(np.arange(60) % 2, 3)
  previous: set[int] = set()
  for fraction, per_class in ((0.1, 3), (0.5, 15)):
    positions = label_fractions.label_fraction(labels, fraction, seed=0, groups=groups)
    kept = np.unique(groups[positions])
    np.testing.assert_array_equal(np.bincount(kept % 2), [per_class, per_class])
    assert positions.size == 3 * kept.size
    assert previous <= set(kept)
    previous = set(kept)


def test_unlabelled_members_of_a_kept_group_are_left_out():
  labels, groups = np.array([0, -1, 1, 1]), np.array([9, 9, 4, 4])
  positions = label_fractions.label_fraction(labels, 1.0, seed=0, groups=groups)
  np.testing.assert_array_equal(positions, [0, 2, 3])


def test_class_that_leads_in_no_group_is_kept_by_one():
  # Class 1 is the minority of every group it is in: groups 0 to 4 of 20.
  groups = np.repeat(np.arange(20), 3)
  labels = np.zeros([60], int)
  labels[np.arange(5) * 3] = 1
  subsets = [
    set(label_fractions.label_fraction(labels, fraction, seed=0, groups=groups))
    for fraction in (0.05, 0.2, 1.0)
  ]
  assert any(labels[p] == 1 for p in subsets[0])
  assert len(subsets[0]) == 6  # One group for each class.
  assert subsets[0] <= subsets[1] <= subsets[2] and len(subsets[2]) == 60
  for seed in range(1, 8):
    positions = label_fractions.label_fraction(labels, 0.05, seed, groups=groups)
    assert len(positions) <= 6 and 1 in labels[positions]


@pytest.mark.parametrize(
  'arguments, message',
  [
    (([0, 1], 0.0, 0), 'fraction is 0.0'),
    (([0, 1], 1.5, 0), 'fraction is 1.5'),
    (([0, 1], float('nan'), 0), 'fraction is nan'),
    (([0, 1], 0.5, -1), 'seed is -1'),
    (([-1, -1], 0.5, 0), 'None of the 2 examples has a label'),
    (([0, 1], 0.5, 0, [1]), '1 groups for 2 labels'),
  ],
)
def test_refuses_bad_input(arguments, message):
  with pytest.raises(ValueError, match=message):
    label_fractions.label_fraction(*arguments)
