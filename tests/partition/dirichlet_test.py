"""Clients of a fixed size with Dirichlet class proportions (Hsu et al., 2019)."""

import time

import numpy as np
import pytest

from tests.worlds import dealt


def _labels(classes, per_class, seed=0):
  labels = np.repeat(np.arange(classes, dtype=np.int32), per_class)
  return np.random.default_rng(seed).permutation(labels)


def _histograms(rule, labels, seed=0):
  return dealt.histograms(f'dirichlet:{rule}', labels, seed)


@pytest.mark.parametrize('seed', range(25))
def test_alpha_zero_gives_clients_of_one_class(seed):
  found = _histograms('alpha=0,examples=4', _labels(5, 42, seed), seed)
  # 42 = 10 * 4 + 2: 50 clients of one class, and of the 10 that remain 2 clients more.
  np.testing.assert_array_equal(np.sum(found, axis=1), [4] * 52)
  assert np.max(np.sum(found, axis=0)) <= 42
  # Of 2 examples of each class 4 are 2 classes.
  assert np.count_nonzero(found, axis=1).tolist() == [1] * 50 + [2] * 2


@pytest.mark.parametrize(('examples', 'clients'), [(8, 6_250), (16, 3_125)])
def test_alpha_zero_has_the_clients_of_table_1_of_dcco(examples, clients):
  # CIFAR-100: 100 classes of 500.
  rule = f'dirichlet:alpha=0,examples={examples}'
  assert len(dealt.build(rule, np.repeat(np.arange(100), 500))) == clients


def test_alpha_zero_with_fewer_clients_has_none_of_several_classes():
  found = _histograms('alpha=0,examples=4,clients=6', _labels(3, 10))
  np.testing.assert_array_equal(np.count_nonzero(found, axis=1), [1] * 6)


def test_alpha_large_is_near_the_global_labels():
  labels = np.repeat(np.arange(4), [400, 300, 200, 100])
  found = _histograms('alpha=1e6,examples=200,clients=2', labels) / 200
  # Five standard deviations of a binomial proportion of 200 draws.
  most = 5 * np.sqrt(0.25 / 200)
  np.testing.assert_allclose(found, [[0.4, 0.3, 0.2, 0.1]] * 2, atol=most)


def test_proportions_have_the_moments_of_the_dirichlet_distribution():
  # With two balanced classes q ~ Beta(alpha / 2, alpha / 2), of variance
  # 1 / (4 (alpha + 1)); the counts of m draws are beta-binomial, of variance
  # m (m + alpha) / (4 (alpha + 1)). A tenth of the examples is dealt, so that no
  # class runs out.
  alpha, m, clients = 0.5, 6, 4000
  labels = _labels(2, 5 * m * clients)
  counts = _histograms(f'alpha={alpha},examples={m},clients={clients}', labels)[:, 1]
  expected = m * (m + alpha) / (4 * (alpha + 1))
  assert np.mean(counts) == pytest.approx(m / 2, abs=5 * np.sqrt(expected / clients))
  assert np.var(counts) == pytest.approx(expected, rel=0.08)


def test_twelve_thousand_clients_take_seconds():
  start = time.process_time()
  partition = dealt.build('dirichlet:alpha=0.1,examples=4', _labels(100, 500))
  assert time.process_time() - start < 10
  assert len(partition) == 12_500
