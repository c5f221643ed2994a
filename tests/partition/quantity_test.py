"""Clients of unequal sizes with IID labels."""

import numpy as np
import pytest

from tests.worlds import dealt


def _sizes(rule, num_examples=1000, seed=0):
  labels = np.zeros(num_examples, int)
  return dealt.histograms(f'quantity:{rule}', labels, seed)[:, 0]


def test_alpha_zero_gives_one_client_all_but_the_least():
  assert sorted(_sizes('clients=4,alpha=0,min_examples=3')) == [3, 3, 3, 991]


def test_shares_have_the_variance_of_the_dirichlet_distribution():
  # A share of K has mean 1/K and variance (1/K)(1 - 1/K) / (alpha K + 1).
  alpha, clients, total = 0.5, 4, 1000
  rule = f'alpha={alpha},clients={clients},min_examples=0'
  shares = np.array([_sizes(rule, total, seed)[0] for seed in range(2000)])
  expected = 0.25 * 0.75 / (alpha * clients + 1)
  assert np.var(shares / total) == pytest.approx(expected, rel=0.12)
  assert np.mean(shares / total) == pytest.approx(
    0.25, abs=5 * (expected / 2000) ** 0.5
  )


def test_power_law_has_its_closed_form():
  # 2 : 1 of 3.
  sizes = _sizes('clients=2,power=1,min_examples=0', 750)
  assert sizes.tolist() == [500, 250]
  sizes = _sizes('clients=3,power=2,min_examples=0', 490)
  # 36 : 9 : 4 of 49.
  assert sizes.tolist() == [360, 90, 40]


def test_labels_are_iid():
  found = dealt.histograms('quantity:clients=3,power=1', np.repeat(np.arange(2), 5000))
  for first, second in found:
    # Five standard deviations of a proportion of so many draws.
    most = 2.5 / np.sqrt(first + second)
    assert second / (first + second) == pytest.approx(0.5, abs=most)
