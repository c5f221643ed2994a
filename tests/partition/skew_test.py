"""Skewness beta of Dec-SSL: an even share, and classes of one's own."""

import numpy as np
import pytest

from tff_ssl.partition import describe
from tff_ssl.partition import skew

# Ten classes of 40, 41, ..., 49 examples, in any order.
_SIZES = np.arange(40, 50)
_LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), _SIZES))


def _build(beta, clients, labels=_LABELS, seed=0):
  config = skew.SkewConfig(beta=beta, clients=clients)
  return skew.build(config, labels, np.random.default_rng(seed))


def _histograms(partition, labels=_LABELS):
  return describe.describe(partition, labels, 10).histograms


@pytest.mark.parametrize(
  ('clients', 'own'), [(5, [2] * 5), (3, [4, 3, 3]), (10, [1] * 10)]
)
def test_beta_zero_gives_disjoint_classes(clients, own):
  held = _histograms(_build(0, clients)) > 0
  np.testing.assert_array_equal(np.sum(held, axis=0), 1)
  assert np.sum(held, axis=1).tolist() == own


@pytest.mark.parametrize('clients', [3, 5, 12])
def test_beta_one_gives_everyone_the_same_of_each_class(clients):
  histograms = _histograms(_build(1, clients))
  for column, size in zip(histograms.T, _SIZES, strict=True):
    assert set(column) <= {size // clients, -(-size // clients)}
  # The larger shares of the classes do not pile up on the same clients.
  assert np.ptp(np.sum(histograms, axis=1)) <= 1


@pytest.mark.parametrize('seed', range(25))
def test_with_more_clients_than_classes_each_has_one_class_of_its_own(seed):
  beta, clients = 0.4, 13 + seed
  even = np.rint(beta * _SIZES)
  histograms = _histograms(_build(beta, clients, seed=seed))
  np.testing.assert_array_equal(np.sum(histograms, axis=0), _SIZES)
  spread = even / clients
  own = histograms > spread + 1
  np.testing.assert_array_equal(np.sum(own, axis=1), 1)
  owners = np.sum(own, axis=0)
  assert set(owners) <= {clients // 10, -(-clients // 10)}
  # What is not spread evenly is shared evenly by the owners, to one example each.
  expected = spread + own * (_SIZES - even) / owners
  assert np.max(np.abs(histograms - expected)) < 2


def test_beta_between_adds_an_even_share_to_classes_of_ones_own():
  # Of 50 examples of each of 4 classes, 0.4 * 50 = 20 are spread over 2 clients, 10
  # each; the other 30 belong to the client whose class it is.
  labels = np.repeat(np.arange(4), 50)
  histograms = _histograms(_build(0.4, 2, labels), labels)[:, :4]
  np.testing.assert_array_equal(np.sort(histograms), [[10, 10, 40, 40]] * 2)
  np.testing.assert_array_equal(np.sum(histograms, axis=0), 50)


def test_distance_to_the_global_labels_falls_with_beta():
  # Balanced classes, a fraction 1 - beta of each client's data from C / K of C classes:
  # the distance is (1 - beta) * 2 (1 - 1 / K).
  labels = np.repeat(np.arange(10), 100)
  for beta in (0, 0.25, 0.5, 1):
    report = describe.describe(_build(beta, 5, labels), labels, 10)
    assert report.mean_emd == pytest.approx((1 - beta) * 2 * (1 - 1 / 5))
