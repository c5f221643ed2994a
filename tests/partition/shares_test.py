"""Dirichlet shares of every class for a few large clients."""

import numpy as np
import pytest

from tff_ssl.partition import shares


def _build(labels, seed=0, **fields):
  config = shares.SharesConfig(**fields)
  return shares.build(config, labels, np.random.default_rng(seed))


_LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 100))


def test_alpha_zero_gives_each_class_to_one_client():
  partition = _build(_LABELS, alpha=0, clients=3)
  owned = [set(_LABELS[held]) for held in partition.values()]
  assert sum(len(classes) for classes in owned) == 10


def test_alpha_large_gives_equal_shares():
  partition = _build(_LABELS, alpha=1e8, clients=5)
  for held in partition.values():
    np.testing.assert_allclose(np.bincount(_LABELS[held]), np.full(10, 20), atol=1)


def test_share_has_the_variance_of_the_dirichlet_distribution():
  # A share of K clients has mean 1/K, variance (1/K)(1 - 1/K) / (alpha K + 1).
  alpha, clients, classes = 0.5, 4, 2000
  labels = np.repeat(np.arange(classes), 50)
  partition = _build(labels, alpha=alpha, clients=clients)
  share = np.bincount(labels[partition['client_0']], minlength=classes) / 50
  expected = 0.25 * 0.75 / (alpha * clients + 1)
  assert np.var(share) == pytest.approx(expected, rel=0.12)
  assert np.mean(share) == pytest.approx(
    0.25, abs=5 * np.sqrt(expected / classes) + 0.002
  )


def test_min_examples_is_kept():
  partition = _build(_LABELS, alpha=0.1, clients=5, min_examples=100)
  assert min(len(held) for held in partition.values()) >= 100


def test_min_examples_zero_allows_empty_clients():
  partition = _build(_LABELS, alpha=0, clients=20, min_examples=0)
  assert len(partition) == 20
  empty = [held for held in partition.values() if not len(held)]
  assert empty
  assert empty[0].dtype == np.int64


def _histograms(partition, labels, classes=10):
  return np.stack(
    [np.bincount(labels[h], minlength=classes) for h in partition.values()]
  )


@pytest.mark.parametrize('seed', range(25))
@pytest.mark.parametrize('alpha', [0, 0.02, 1])
def test_balanced_clients_have_the_same_size_and_no_example_twice(alpha, seed):
  labels = np.repeat(np.arange(7), [31, 5, 60, 1, 22, 40, 17])
  fields = {'alpha': alpha, 'clients': 5, 'balanced': True}
  partition = _build(labels, seed, **fields)
  # 176 = 5 * 35 + 1.
  assert [len(held) for held in partition.values()] == [35] * 5
  assert len(np.unique(np.concatenate(list(partition.values())))) == 175
  smaller = _histograms(_build(labels, seed, examples=11, **fields), labels, 7)
  np.testing.assert_array_equal(np.sum(smaller, axis=1), 11)
  share = np.array([31, 5, 60, 1, 22, 40, 17]) * 55 / 176
  assert np.max(np.abs(np.sum(smaller, axis=0) - share)) <= 1


@pytest.mark.parametrize('seed', range(25))
def test_balanced_with_alpha_zero_gives_disjoint_classes(seed):
  histograms = _histograms(
    _build(_LABELS, seed, alpha=0, clients=5, balanced=True), _LABELS
  )
  np.testing.assert_array_equal(np.sum(histograms > 0, axis=0), 1)
  np.testing.assert_array_equal(np.sum(histograms > 0, axis=1), 2)


@pytest.mark.parametrize('seed', range(25))
def test_balanced_near_alpha_zero_is_as_at_it(seed):
  partition = _build(_LABELS, seed, alpha=1e-9, clients=5, balanced=True)
  histograms = _histograms(partition, _LABELS)
  # Near ties may leave some of a class elsewhere.
  assert np.sum(np.max(histograms, axis=0)) >= 900


def test_balanced_with_a_large_alpha_is_iid():
  partition = _build(_LABELS, alpha=1e9, clients=5, balanced=True)
  np.testing.assert_allclose(_histograms(partition, _LABELS), 20, atol=1)
