"""Partitions in one array: as a dict of arrays is read, at a fraction of its memory."""

import collections

import numpy as np
import pytest

from tff_ssl.partition import describe
from tff_ssl.partition import flat
from tff_ssl.partition import ids
from tff_ssl.partition import partitions as partitions_lib

SIZES = np.array([2, 0, 3, 1])
HELD = [[4, 1], [], [0, 7, 3], [5]]


def partitions():
  """Returns a partition in one array, and the same as a dict."""
  found = partitions_lib.from_positions([np.array(own, np.int64) for own in HELD])
  names = ['client_0', 'client_1', 'client_2', 'client_3']
  as_dict = collections.OrderedDict(
    (name, np.array(sorted(own), np.int64))
    for name, own in zip(names, HELD, strict=True)
  )
  return found, as_dict


def test_reads_like_a_dictionary():
  found, expected = partitions()
  assert list(found) == list(expected)
  assert len(found) == 4
  assert 'client_2' in found
  assert 'client_9' not in found
  for name, own in found.items():
    np.testing.assert_array_equal(own, expected[name])
    np.testing.assert_array_equal(found[name], expected[name])
    assert own.dtype == np.int64
  assert [list(own) for own in found.values()] == [[1, 4], [], [0, 3, 7], [5]]
  np.testing.assert_array_equal(found.sizes, SIZES)
  np.testing.assert_array_equal(found.owners, [0, 0, 2, 2, 2, 3])
  with pytest.raises(KeyError, match='client_4'):
    found['client_4']
  with pytest.raises(ValueError, match='read-only'):
    found['client_0'][0] = 5


def test_any_other_partition_becomes_one():
  found, as_dict = partitions()
  made = flat.flatten(as_dict)
  assert flat.flatten(found) is found
  assert made.client_ids == found.client_ids == list(as_dict)
  np.testing.assert_array_equal(made.together, found.together)
  np.testing.assert_array_equal(made.starts, found.starts)
  assert len(flat.flatten({})) == 0
  assert flat.flatten({'a': [], 'b': [3]}).together.dtype == np.int64


def test_sizes_that_do_not_fit_are_refused():
  with pytest.raises(ValueError, match='are 1 sizes with sum 2; there must be 2, one'):
    flat.FlatPartition(('a', 'b'), np.arange(2), np.array([2]))
  with pytest.raises(ValueError, match='with sum 2, the number of positions'):
    flat.FlatPartition(('a', 'b'), np.arange(2), np.array([1, 2]))


@pytest.mark.parametrize('count', [1, 2, 10, 11, 100, 1001])
def test_numbered_ids_are_those_of_a_list(count):
  digits = len(str(count - 1))
  expected = [f'client_{k:0{digits}d}' for k in range(count)]
  found = ids.Numbered('client', count)
  assert found == expected == sorted(found)
  assert found != [*expected[:-1], 'client_x']
  assert found[-1] == expected[-1]
  assert found[1:3] == tuple(expected[1:3])
  assert [found.index(name) for name in expected] == list(range(count))
  assert ids.in_order(found) is found
  with pytest.raises(IndexError):
    found[count]


@pytest.mark.parametrize(
  'name',
  ['client_1', 'client_100', 'client_1 ', 'client_٠١', 'case_01', '', 3, 'client_'],
)
def test_unknown_ids_have_no_position(name):
  found = ids.Numbered('client', 100)
  assert name not in found
  assert found.place('client_99') == 99
  with pytest.raises(ValueError, match='there is no client'):
    found.index(name)


@pytest.mark.parametrize('own', [('a', 'b', 'd'), ('d', 'a', 'b')])
def test_listed_ids_are_found_in_any_order(own):
  found = ids.Listed(own)
  assert [found.place(name) for name in own] == [0, 1, 2]
  assert [found.place(name) for name in ('', 'c', 'e', None)] == [None] * 4
  assert ids.in_order(found) == ['a', 'b', 'd']
  assert found.ascending == (own == ('a', 'b', 'd'))


def test_an_id_twice_is_refused():
  with pytest.raises(ValueError, match='names a client twice'):
    ids.in_order(['b', 'a', 'b'])


def test_the_report_of_a_partition_has_the_bytes_of_a_dicts(tmp_path, monkeypatch):
  # In parts of two clients, and at once.
  labels = np.array([0, 2, -1, 1, 1, 2, 0, 0])
  found, as_dict = partitions()
  written = []
  for partition, rows in ((found, 2), (as_dict, 2**16)):
    monkeypatch.setattr(describe, '_ROWS', rows)
    report = describe.describe(partition, labels, 3)
    report.write_csv(tmp_path / 'partition.csv')
    written.append((report.line(), (tmp_path / 'partition.csv').read_bytes()))
  assert written[0] == written[1]
  assert written[0][1] == (
    b'client_id,size,label_0,label_1,label_2\n'
    b'client_0,2,0,1,1\nclient_1,0,0,0,0\nclient_2,3,2,1,0\nclient_3,1,0,0,1\n'
  )
  assert [path.name for path in tmp_path.iterdir()] == ['partition.csv']


def test_at_most_draws_what_it_drew_of_a_dict():
  found, as_dict = partitions()
  kept = partitions_lib.at_most(found, 2, np.random.default_rng(5))
  rng = np.random.default_rng(5)
  for name, own in as_dict.items():
    np.testing.assert_array_equal(kept[name], np.sort(rng.permutation(own)[:2]))
    assert kept[name].dtype == np.int64
  with pytest.raises(ValueError, match='examples is 0; it must be at least 1'):
    partitions_lib.at_most(found, 0, rng)


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


def test_no_client_and_an_unknown_client_are_refused():
  with pytest.raises(ValueError, match='no client'):
    flat.flatten_checked({}, 5)
  for count, known in ((2, "'0', '1'"), (5, "'0', '1', '2' and 2 more")):
    clients = flat.flatten_checked({str(k): [k] for k in range(count)}, count)
    with pytest.raises(ValueError, match=f"no client 'x': the clients are {known}$"):
      clients.of('x')
