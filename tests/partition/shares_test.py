"""Dirichlet shares of every class for a few large clients."""

import numpy as np
import pytest

from tests.worlds import dealt

_LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 100))


def _histograms(rule, labels=_LABELS, seed=0):
  return dealt.histograms(f'shares:{rule}', labels, seed)


def test_alpha_zero_gives_each_class_to_one_client():
  assert np.count_nonzero(_histograms('alpha=0,clients=3')) == 10


def test_share_has_the_variance_of_the_dirichlet_distribution():
  # A share of K clients has mean 1/K, variance (1/K)(1 - 1/K) / (alpha K + 1).
  alpha, clients, classes = 0.5, 4, 2000
  labels = np.repeat(np.arange(classes), 50)
  share = _histograms(f'alpha={alpha},clients={clients}', labels)[0] / 50
  expected = 0.25 * 0.75 / (alpha * clients + 1)
  assert np.var(share) == pytest.approx(expected, rel=0.12)
  assert np.mean(share) == pytest.approx(
    0.25, abs=5 * np.sqrt(expected / classes) + 0.002
  )


def test_min_examples_is_kept():
  found = _histograms('alpha=0.1,clients=5,min_examples=100')
  assert np.min(np.sum(found, axis=1)) >= 100


def test_min_examples_zero_allows_empty_clients():
  partition = dealt.build('shares:alpha=0,clients=20,min_examples=0', _LABELS)
  assert len(partition) == 20
  empty = [held for held in partition.values() if not len(held)]
  assert empty
  assert empty[0].dtype == np.int64


@pytest.mark.parametrize('seed', range(25))
@pytest.mark.parametrize('alpha', [0, 0.02, 1])
def test_balanced_clients_have_the_same_size_and_no_example_twice(alpha, seed):
  sizes = np.array([31, 5, 60, 1, 22, 40, 17])
  labels, rule = (
    np.repeat(np.arange(7), sizes),
    f'alpha={alpha},clients=5,balanced=true',
  )
  partition = dealt.build(f'shares:{rule}', labels, seed)
  # 176 = 5 * 35 + 1.
  assert [len(held) for held in partition.values()] == [35] * 5
  assert len(np.unique(np.concatenate(list(partition.values())))) == 175
  smaller = _histograms(f'{rule},examples=11', labels, seed)
  np.testing.assert_array_equal(np.sum(smaller, axis=1), 11)
  assert np.max(np.abs(np.sum(smaller, axis=0) - sizes * 55 / 176)) <= 1


@pytest.mark.parametrize('seed', range(25))
def test_balanced_with_alpha_zero_gives_disjoint_classes(seed):
  held = _histograms('alpha=0,clients=5,balanced=true', seed=seed) > 0
  np.testing.assert_array_equal(np.sum(held, axis=0), 1)
  np.testing.assert_array_equal(np.sum(held, axis=1), 2)
  # Near it, near ties may leave some of a class elsewhere.
  near = _histograms('alpha=1e-9,clients=5,balanced=true', seed=seed)
  assert np.sum(np.max(near, axis=0)) >= 900
