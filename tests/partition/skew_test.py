"""Skewness beta of Dec-SSL: an even share, and classes of one's own."""

import numpy as np
import pytest

from tests.worlds import dealt

# Ten classes of 40, 41, ..., 49 examples, in any order.
_SIZES = np.arange(40, 50)
_LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), _SIZES))


@pytest.mark.parametrize(
  ('clients', 'own'), [(5, [2] * 5), (3, [4, 3, 3]), (10, [1] * 10)]
)
def test_beta_zero_gives_disjoint_classes(clients, own):
  held = dealt.histograms(f'skew:beta=0,clients={clients}', _LABELS) > 0
  np.testing.assert_array_equal(np.sum(held, axis=0), 1)
  assert np.sum(held, axis=1).tolist() == own


@pytest.mark.parametrize('clients', [3, 5, 12])
def test_beta_one_gives_everyone_the_same_of_each_class(clients):
  histograms = dealt.histograms(f'skew:beta=1,clients={clients}', _LABELS)
  for column, size in zip(histograms.T, _SIZES, strict=True):
    assert set(column) <= {size // clients, -(-size // clients)}
  # The larger shares of the classes do not pile up on the same clients.
  assert np.ptp(np.sum(histograms, axis=1)) <= 1


@pytest.mark.parametrize('seed', range(25))
def test_with_more_clients_than_classes_each_has_one_class_of_its_own(seed):
  beta, clients = 0.4, 13 + seed
  even = np.rint(beta * _SIZES)
  histograms = dealt.histograms(f'skew:beta={beta},clients={clients}', _LABELS, seed)
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
  histograms = dealt.histograms('skew:beta=0.4,clients=2', np.repeat(np.arange(4), 50))
  np.testing.assert_array_equal(np.sort(histograms), [[10, 10, 40, 40]] * 2)
  np.testing.assert_array_equal(np.sum(histograms, axis=0), 50)
