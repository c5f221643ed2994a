"""Sources mixed over clients."""

import numpy as np
import pytest

from tff_ssl.partition import mixed_sources


def _config(clients=5, sources=None, **fields):
  return mixed_sources.MixedConfig(clients, sources, **fields)


_SOURCE = np.random.default_rng(0).permutation(np.repeat(np.arange(5), 40))


def _table(config, seed, source=_SOURCE, **fields):
  """Examples of each source at each client; checks that no example is at two."""
  partition = mixed_sources.deal(config, source, np.random.default_rng(seed), **fields)
  together = np.concatenate(list(partition.values()))
  assert len(np.unique(together)) == len(together)
  count = source.max() + 1
  return np.stack([np.bincount(source[p], minlength=count) for p in partition.values()])


@pytest.mark.parametrize('fields', [{}, {'alpha': 0}, {'beta': 0}, {'sources': 5}])
def test_unmixed_client_k_is_source_k(fields):
  config = _config(**fields)
  assert not config.is_mixed
  np.testing.assert_array_equal(_table(config, 0), 40 * np.eye(5))


@pytest.mark.parametrize('seed', range(25))
def test_alpha_mixes_from_disjoint_to_iid(seed):
  distance = []
  for alpha in (1e-9, 0.1, 1e9):
    table = _table(_config(alpha=alpha), seed, balanced=True)
    np.testing.assert_array_equal(np.sum(table, axis=1), 40)
    np.testing.assert_array_equal(np.sum(table, axis=0), 40)
    distance.append(np.mean(np.sum(np.abs(table / 40 - 0.2), axis=1)))
  # Of one source of five: 0.8 + 4 * 0.2.
  assert distance[0] == pytest.approx(1.6, abs=0.05)
  assert 0.05 < distance[1] <= 1.6
  assert distance[2] == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize('seed', range(25))
def test_beta_spreads_a_fraction_evenly(seed):
  table = _table(_config(beta=0.5), seed)
  # 4 of each source, and the other 20 of one's own.
  np.testing.assert_array_equal(np.sort(table, axis=1), [[4, 4, 4, 4, 24]] * 5)
  np.testing.assert_array_equal(np.sum(table, axis=0), 40)
  np.testing.assert_array_equal(_table(_config(beta=1), seed), 8)


@pytest.mark.parametrize('seed', range(25))
def test_fewer_sources_than_clients_are_divided(seed):
  for config in (_config(10, 5), _config(10, 5, beta=0)):
    assert config.is_mixed
    table = _table(config, seed, balanced=True)
    np.testing.assert_array_equal(np.sum(table > 0, axis=1), 1)
    np.testing.assert_array_equal(np.sum(table, axis=1), 20)
