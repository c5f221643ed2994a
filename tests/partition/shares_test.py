"""Dirichlet shares of every class for a few large clients."""

import numpy as np
import pytest

from tff_ssl.partition import shares


def _build(labels, seed=0, **fields):
  config = shares.SharesConfig(**fields)
  return shares.build(config, labels, np.random.default_rng(seed))


_LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 100))


@pytest.mark.parametrize('alpha', [0, 0.1, 1e6])
def test_every_example_belongs_to_one_client(alpha):
  partition = _build(_LABELS, alpha=alpha, clients=5)
  dealt = np.sort(np.concatenate(list(partition.values())))
  np.testing.assert_array_equal(dealt, np.arange(1000))


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


def test_min_examples_is_kept_or_an_error():
  partition = _build(_LABELS, alpha=0.1, clients=5, min_examples=100)
  assert min(len(held) for held in partition.values()) >= 100
  with pytest.raises(ValueError, match='min_examples=201'):
    _build(_LABELS, alpha=0.1, clients=5, min_examples=201)


def test_min_examples_zero_allows_empty_clients():
  partition = _build(_LABELS, alpha=0, clients=20, min_examples=0)
  assert len(partition) == 20
  empty = [held for held in partition.values() if not len(held)]
  assert empty
  assert empty[0].dtype == np.int64


def test_unlabelled_examples_are_an_error():
  with pytest.raises(ValueError, match='A shares partition needs the label'):
    _build(np.array([0, -1]), alpha=1, clients=1)
