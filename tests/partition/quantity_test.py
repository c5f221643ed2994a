"""Clients of unequal sizes with IID labels."""

import numpy as np
import pytest

from tff_ssl.partition import quantity


def _build(num_examples=1000, seed=0, **fields):
  config = quantity.QuantityConfig(**fields)
  return quantity.build(config, num_examples, np.random.default_rng(seed))


def _sizes(**fields):
  return np.array([len(held) for held in _build(**fields).values()])


def test_alpha_zero_gives_one_client_all_but_the_least():
  assert sorted(_sizes(clients=4, alpha=0, min_examples=3)) == [3, 3, 3, 991]


def test_shares_have_the_variance_of_the_dirichlet_distribution():
  # A share of K has mean 1/K and variance (1/K)(1 - 1/K) / (alpha K + 1).
  alpha, clients, total = 0.5, 4, 1000
  shares = np.array(
    [
      len(_build(total, seed, alpha=alpha, clients=clients, min_examples=0)['client_0'])
      for seed in range(2000)
    ]
  )
  expected = 0.25 * 0.75 / (alpha * clients + 1)
  assert np.var(shares / total) == pytest.approx(expected, rel=0.12)
  assert np.mean(shares / total) == pytest.approx(
    0.25, abs=5 * (expected / 2000) ** 0.5
  )


def test_power_law_has_its_closed_form():
  # 2 : 1 of 3.
  sizes = _sizes(num_examples=750, clients=2, power=1, min_examples=0)
  assert sizes.tolist() == [500, 250]
  sizes = _sizes(num_examples=490, clients=3, power=2, min_examples=0)
  # 36 : 9 : 4 of 49.
  assert sizes.tolist() == [360, 90, 40]


def test_labels_are_iid():
  labels = np.repeat(np.arange(2), 5000)
  partition = _build(10_000, clients=3, power=1)
  for held in partition.values():
    # Five standard deviations of a proportion of so many draws.
    assert np.mean(labels[held]) == pytest.approx(0.5, abs=2.5 / np.sqrt(len(held)))
