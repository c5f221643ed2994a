import collections

import numpy as np
import pytest

from tff_ssl.partition import partitions


def _partition():
  return partitions.from_positions(
    [np.arange(0, 10), np.arange(10, 13), np.arange(13, 13)]
  )


def test_a_client_keeps_at_most_so_many_of_its_own():
  full = _partition()
  kept = partitions.at_most(full, 4, np.random.default_rng(0))
  assert list(kept) == list(full)
  assert [len(held) for held in kept.values()] == [4, 3, 0]
  for name, held in kept.items():
    assert set(held) <= set(full[name])
    assert list(held) == sorted(set(held))
    assert held.dtype == np.int64


def test_capped_clients_draw_examples_uniformly():
  kept = collections.Counter()
  for seed in range(2000):
    partition = partitions.at_most(_partition(), 4, np.random.default_rng(seed))
    kept.update(partition['client_0'].tolist())
  # Each of ten is kept with probability 0.4: a standard deviation is 22 of 800.
  assert all(abs(kept[position] - 800) < 110 for position in range(10))


def test_no_example_at_most_is_refused():
  with pytest.raises(ValueError, match='examples is 0; it must be at least 1'):
    partitions.at_most(_partition(), 0, np.random.default_rng(0))
