"""Positions of a partition in one array are checked, and each client is named."""

import numpy as np
import pytest

from tff_ssl.partition import flat


def test_clients_one_after_another():
  partition = {'b': np.array([4, 1], np.int32), 'a': np.array([]), 'c': [0, 3]}
  clients = flat.flatten_checked(partition, 5)
  assert clients.client_ids == ('b', 'a', 'c')
  np.testing.assert_array_equal(clients.together, [4, 1, 0, 3])
  np.testing.assert_array_equal(clients.starts, [0, 2, 2, 4])
  for client_id, expected in {'b': [4, 1], 'a': [], 'c': [0, 3]}.items():
    np.testing.assert_array_equal(clients.of(client_id), expected)
    assert clients.of(client_id).dtype == np.int64


def test_positions_cannot_be_written_to():
  own = np.array([0, 1])
  clients = flat.flatten_checked({'a': own}, 2)
  with pytest.raises(ValueError, match='read-only'):
    clients.of('a')[0] = 1
  own[0] = 1
  np.testing.assert_array_equal(clients.of('a'), [0, 1])


@pytest.mark.parametrize(
  ('held', 'message'),
  [
    ([0, 5], r"client 'b' go from 0 to 5: they must lie in \[0, 5\)"),
    ([-1], r"client 'b' go from -1 to -1"),
    ([2**64 - 1], r'from 18446744073709551615 to'),
    ([0.5], r"client 'b' are float64 \[1\]: they must be integers \[n\]"),
    ([True], r"client 'b' are bool \[1\]"),
    ([[0]], r"client 'b' are int64 \[1, 1\]"),
    (np.zeros([0, 2], np.int64), r"client 'b' are int64 \[0, 2\]"),
  ],
)
def test_the_client_at_fault_is_named(held, message):
  with pytest.raises(ValueError, match=message):
    flat.flatten_checked({'a': [0], 'b': held, 'c': [1]}, 5)


def test_partitions_without_clients_are_refused():
  with pytest.raises(ValueError, match='no client'):
    flat.flatten_checked({}, 5)


@pytest.mark.parametrize(
  ('count', 'message'),
  [
    (2, "no client 'x': the clients are '0', '1'$"),
    (5, "no client 'x': the clients are '0', '1', '2' and 2 more$"),
  ],
)
def test_unknown_client(count, message):
  clients = flat.flatten_checked({str(k): [k] for k in range(count)}, count)
  with pytest.raises(ValueError, match=message):
    clients.of('x')
