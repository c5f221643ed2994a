import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tff_ssl.reporting import significance

# Demsar, JMLR 2006, table 6: AUC of C4.5 and its variants on 14 data sets. The last but
# one is printed with 0.975 twice, which the paper ranks 2 and 3.
_DEMSAR = pd.DataFrame(
  [
    (0.763, 0.768, 0.771, 0.798),
    (0.599, 0.591, 0.590, 0.569),
    (0.954, 0.971, 0.968, 0.967),
    (0.628, 0.661, 0.654, 0.657),
    (0.882, 0.888, 0.886, 0.898),
    (0.936, 0.931, 0.916, 0.931),
    (0.661, 0.668, 0.609, 0.685),
    (0.583, 0.583, 0.563, 0.625),
    (0.775, 0.838, 0.866, 0.875),
    (1.000, 1.000, 1.000, 1.000),
    (0.940, 0.962, 0.965, 0.962),
    (0.619, 0.666, 0.614, 0.669),
    (0.972, 0.981, 0.9751, 0.975),
    (0.957, 0.978, 0.946, 0.970),
  ],
  columns=['C4.5', 'C4.5+m', 'C4.5+cf', 'C4.5+m+cf'],
)


def test_ranks_and_their_critical_difference_are_those_of_demsar():
  found = significance.ranks(_DEMSAR)
  published = {'C4.5': 3.143, 'C4.5+m': 2.0, 'C4.5+cf': 2.893, 'C4.5+m+cf': 1.964}
  assert found.means == pytest.approx(published, abs=5e-4)
  assert found.critical == pytest.approx(1.25, abs=5e-3)
  assert found.seeds == 14


def test_friedmans_p_is_that_of_his_formula_with_ties():
  found = significance.ranks(_DEMSAR)
  rows, k = _DEMSAR.shape
  squares = sum((rank - (k + 1) / 2) ** 2 for rank in found.means.values())
  plain = 12 * rows / (k * (k + 1)) * squares
  assert plain == pytest.approx(9.28, abs=5e-3)
  ties = sum(
    int(count) ** 3 - int(count)
    for _, row in _DEMSAR.iterrows()
    for count in row.value_counts()
  )
  corrected = plain / (1 - ties / (rows * k * (k**2 - 1)))
  assert found.p == pytest.approx(stats.chi2.sf(corrected, k - 1))


def test_critical_differences_have_the_published_factors():
  # Demsar, table 5 a, for 2 to 10 methods.
  published = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)
  for k, factor in enumerate(published, start=2):
    expected = factor * math.sqrt(k * (k + 1) / (6 * 7))
    assert significance.critical_difference(7, k) == pytest.approx(expected, rel=1e-3)


def test_methods_that_are_equal_in_every_seed_are_not_told_apart():
  found = significance.ranks(pd.DataFrame(np.ones([5, 3]), columns=[*'abc']))
  assert found.p == 1
  assert found.means == {'a': 2, 'b': 2, 'c': 2}


def _values():
  return pd.DataFrame(np.random.default_rng(0).normal(size=(6, 3)), columns=[*'abc'])


def test_differences_are_of_seeds_with_students_interval():
  values = _values()
  found = significance.differences(values)
  pairs = list(itertools.combinations('abc', 2))
  assert [(each.method, each.other) for each in found] == pairs
  plain = [stats.ttest_rel(values[a], values[b]).pvalue for a, b in pairs]
  assert [each.p for each in found] == pytest.approx(significance.holm(plain))
  for each in found:
    paired = values[each.method] - values[each.other]
    # The quantile of Student's t for 0.975 and 5 degrees of freedom, from a table.
    reach = 2.5706 * np.std(paired, ddof=1) / math.sqrt(6)
    assert each.mean == pytest.approx(np.mean(paired))
    assert each.high - each.mean == pytest.approx(reach, rel=1e-4)
    assert each.mean - each.low == pytest.approx(reach, rel=1e-4)


def test_one_method_is_the_reference_of_all_others():
  found = significance.differences(_values(), 'b')
  assert [(each.method, each.other) for each in found] == [('a', 'b'), ('c', 'b')]


@pytest.mark.parametrize(('difference', 'p'), [(0.0, 1.0), (0.25, 0.0)])
def test_a_difference_that_never_varies_is_certain(difference, p):
  first = np.arange(5.0)
  values = pd.DataFrame({'a': first + difference, 'b': first})
  (found,) = significance.differences(values)
  assert (found.mean, found.low, found.high, found.p) == (difference,) * 3 + (p,)


def test_holm_steps_down_and_is_monotone():
  # Holm's factors 4, 3, 2, 1 by size: 0.04, 0.06, 0.06 (of 0.05), 0.06 (of 0.04).
  assert significance.holm([0.025, 0.01, 0.04, 0.02]) == pytest.approx(
    [0.06, 0.04, 0.06, 0.06]
  )
  assert significance.holm([0.9, 0.8]) == [1, 1]
