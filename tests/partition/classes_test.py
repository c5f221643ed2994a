"""A fixed number of classes for each client (FedEMA)."""

import numpy as np
import pytest

from tff_ssl.partition import classes
from tff_ssl.partition import describe

_LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 43))


def _build(per_client, clients, labels=_LABELS, seed=0):
  config = classes.ClassesConfig(per_client=per_client, clients=clients)
  return classes.build(config, labels, np.random.default_rng(seed))


def _histograms(partition, labels=_LABELS):
  return describe.describe(partition, labels, 10).histograms


@pytest.mark.parametrize('clients', [5, 7, 40])
@pytest.mark.parametrize('per_client', [2, 3, 10])
def test_each_client_has_its_classes_and_shares_them_evenly(clients, per_client):
  histograms = _histograms(_build(per_client, clients))
  held = histograms > 0
  np.testing.assert_array_equal(np.sum(held, axis=1), per_client)
  holders = np.sum(held, axis=0)
  assert np.ptp(holders) <= 1
  for counts, count in zip(histograms.T, holders, strict=True):
    assert set(counts[counts > 0]) <= {43 // count, -(-43 // count)}
  np.testing.assert_array_equal(np.sum(histograms, axis=0), 43)


def test_five_clients_of_two_classes_are_disjoint():
  histograms = _histograms(_build(2, 5))
  np.testing.assert_array_equal(np.sum(histograms > 0, axis=0), 1)
  assert describe.describe(_build(2, 5), _LABELS, 10).mean_emd == pytest.approx(1.6)


def test_all_classes_are_iid():
  histograms = _histograms(_build(10, 4))
  assert set(histograms.flat) == {10, 11}
  # 430 = 2 * 107 + 2 * 108.
  assert sorted(np.sum(histograms, axis=1)) == [107, 107, 108, 108]


def test_classes_in_excess_belong_to_nobody():
  partition = _build(2, 3)
  dealt = np.concatenate(list(partition.values()))
  assert len(np.unique(dealt)) == len(dealt) == 6 * 43
  assert len(np.unique(_LABELS[dealt])) == 6
