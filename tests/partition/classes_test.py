"""A fixed number of classes for each client (FedEMA)."""

import numpy as np
import pytest

from tests.worlds import dealt

_LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 43))


def _histograms(per_client, clients):
  return dealt.histograms(f'classes:per_client={per_client},clients={clients}', _LABELS)


@pytest.mark.parametrize('clients', [5, 7, 40])
@pytest.mark.parametrize('per_client', [2, 3, 10])
def test_each_client_has_its_classes_and_shares_them_evenly(clients, per_client):
  histograms = _histograms(per_client, clients)
  held = histograms > 0
  np.testing.assert_array_equal(np.sum(held, axis=1), per_client)
  holders = np.sum(held, axis=0)
  assert np.ptp(holders) <= 1
  for counts, count in zip(histograms.T, holders, strict=True):
    assert set(counts[counts > 0]) <= {43 // count, -(-43 // count)}
  np.testing.assert_array_equal(np.sum(histograms, axis=0), 43)


def test_classes_in_excess_belong_to_nobody():
  # No example twice: as many of each of six classes as there are.
  histograms = _histograms(2, 3)
  assert sorted(np.sum(histograms, axis=0)) == [0] * 4 + [43] * 6
