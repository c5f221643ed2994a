"""The seeds of a run's streams."""

import numpy as np
import pytest

from tff_ssl.computing import seeds


@pytest.mark.parametrize(
  ('seed', 'number', 'expected'),
  [
    (3, 1, [3, 1]),
    (2**31, 0, [-(2**31), 0]),
    (2**32 - 1, 2, [-1, 2]),
    # Both halves count: 2^62 + 5 is 2^30 times 2^32, and 5.
    (2**32, 0, [0, 1]),
    (2**62 + 5, 1, [5, 2**30 + 1]),
    (np.int64(2**63 - 1), 0, [-1, 2**31 - 1]),
  ],
)
def test_a_stream_has_all_bits_of_a_seed(seed, number, expected):
  found = seeds.stream(seed, number)
  assert found.dtype == np.int32
  assert found.tolist() == expected


@pytest.mark.parametrize('seed', [-1, 2**63])
def test_seeds_out_of_range_are_refused(seed):
  with pytest.raises(ValueError, match=rf'seed is {seed}; it must be at least 0'):
    seeds.stream(seed, 0)
