"""Tests of packed and separate clients, as a program gives them to a process."""

import collections

from absl import logging
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import tiny
from tff_ssl.aggregators import aggregations
from tff_ssl.federated import packs
from tff_ssl.simulation import client_data
from tff_ssl.simulation import simulated_clients
from tff_ssl.simulation import spilled_examples


def _packs(datasets):
  """Returns the example ids of each client of each pack."""
  read = [dataset.get_single_element() for dataset in datasets]
  return [
    [
      ids.tolist()
      for ids in np.split(
        pack[packs.EXAMPLES]['example_id'].numpy(),
        np.cumsum(pack[packs.SIZES].numpy())[:-1],
      )
    ]
    for pack in read
  ]


def _uneven():
  data = tiny.arrays()
  return client_data.ArrayClientData(
    data['image'],
    data['example_id'],
    {'c': np.arange(4), 'a': np.array([8]), 'b': np.arange(4, 7)},
    label=data['label'],
  )


def test_packs_hold_all_clients_in_any_order():
  clients = simulated_clients.Clients(_uneven(), num_packs=2)
  assert clients.element_spec.singles == 1
  for names in ('cab', 'bca'):
    packed = _packs(clients.cohort([*names]))
    assert packed == [[[10, 11, 12, 13]], [[18], [14, 15, 16]]]


@pytest.mark.parametrize('num_packs', [0, 2])
def test_members_are_in_the_order_of_their_data(num_packs):
  clients = simulated_clients.Clients(_uneven(), num_packs=num_packs)
  cohort = clients.cohort_with_members(['c', 'b', 'a'])
  assert cohort.members == ([['c'], ['a', 'b']] if num_packs else [['a'], ['b'], ['c']])
  first = {'a': 18, 'b': 14, 'c': 10}
  if num_packs:
    ids = [[client[0] for client in pack] for pack in _packs(cohort.data)]
  else:
    ids = [[int(next(iter(dataset))['example_id'])] for dataset in cohort.data]
  assert ids == [[first[name] for name in names] for names in cohort.members]


def test_large_states_go_in_more_packs():
  clients = simulated_clients.Clients(_uneven(), num_packs=1)
  cohort = clients.cohort_with_members(['c', 'b', 'a'], bytes_per_client=40 * 2**20)
  assert sorted(map(len, cohort.members)) == [1, 1, 1]


def test_a_client_s_index_is_its_place_among_all():
  clients = simulated_clients.Clients(_uneven(), num_packs=1)
  assert [clients.index(name) for name in 'abc'] == [0, 1, 2]
  for name in ('', 'aa', 'd'):
    with pytest.raises(ValueError, match=f"there is no client '{name}'"):
      clients.index(name)


def test_any_client_data_can_be_packed():
  arrays = _uneven()
  other = tff.simulation.datasets.ClientData.from_clients_and_tf_fn(
    arrays.client_ids, arrays.serializable_dataset_fn
  )
  clients = simulated_clients.Clients(other, num_packs=2)
  assert isinstance(clients.element_spec, packs.PackSpec)
  expected = simulated_clients.Clients(arrays, num_packs=2).cohort(arrays.client_ids)
  for got, wanted in zip(clients.cohort(arrays.client_ids), expected, strict=True):
    tf.nest.map_structure(
      np.testing.assert_array_equal,
      got.get_single_element(),
      wanted.get_single_element(),
    )


def test_without_packs_each_client_is_a_value():
  data = tiny.clients()
  clients = simulated_clients.Clients(data, num_packs=0)
  assert clients.element_spec == data.element_type_structure
  ids = [
    [int(example['example_id']) for example in dataset]
    for dataset in clients.cohort(['bob', 'alice'])
  ]
  assert ids == [[10, 11, 12, 13], [14, 15, 16, 17, 18]]


@pytest.mark.parametrize('num_packs', [0, 2])
def test_a_round_needs_a_client(num_packs):
  with pytest.raises(ValueError, match='cohort is empty; it must hold at least one'):
    simulated_clients.Clients(tiny.clients(), num_packs=num_packs).cohort([])


def test_packs_default_to_cores(monkeypatch):
  monkeypatch.setattr('os.sched_getaffinity', lambda _: {0, 3, 5})
  clients = simulated_clients.Clients(_uneven())
  assert len(clients.cohort(['a', 'b', 'c'])) == 3


def test_one_line_says_that_clients_are_not_packed(monkeypatch):
  said = []
  monkeypatch.setattr(logging, 'warning', lambda text, *_: said.append(text))
  secure = aggregations.secure(1.0, 8)
  clients = simulated_clients.Clients(tiny.clients(), secure)
  assert clients.element_spec == tiny.clients().element_type_structure
  assert len(clients.cohort(['alice', 'bob'])) == 2
  assert len(said) == 1
  assert 'not packed' in said[0]
  simulated_clients.Clients(tiny.clients(), secure, num_packs=0)
  simulated_clients.Clients(tiny.clients(), aggregations.plain())
  assert len(said) == 1


def test_invalid_values_are_named():
  with pytest.raises(ValueError, match='num_packs is 2; it must be None or 0'):
    simulated_clients.Clients(tiny.clients(), aggregations.secure(1.0, 8), num_packs=2)
  with pytest.raises(ValueError, match='num_packs is -1'):
    simulated_clients.Clients(tiny.clients(), num_packs=-1)
  with pytest.raises(ValueError, match="there is no client 'carol'"):
    simulated_clients.Clients(tiny.clients(), num_packs=1).cohort(['carol'])


@pytest.mark.parametrize(('spared', 'expected'), [(0, 1), (1, 2)])
def test_bytes_decide_how_many_packs(monkeypatch, spared, expected):
  """What is too large for one value goes in more."""
  clients = simulated_clients.Clients(tiny.clients(labelled=True), num_packs=1)
  # Nine examples: 64 bytes of image, 8 of example_id, 4 of label.
  monkeypatch.setattr(packs, 'MAX_BYTES', 9 * (64 + 8 + 4) - spared)
  assert len(clients.cohort(['alice', 'bob'])) == expected


@pytest.mark.parametrize('num_packs', [0, 1])
def test_a_client_too_large_for_a_message_is_lent_as_files(monkeypatch, num_packs):
  clients = simulated_clients.Clients(tiny.clients(labelled=True), num_packs=num_packs)
  sent = clients.cohort(['alice', 'bob'])
  lent = []
  dataset = spilled_examples.dataset
  monkeypatch.setattr(
    spilled_examples, 'dataset', lambda x: lent.append(x) or dataset(x)
  )
  monkeypatch.setattr(packs, 'MAX_BYTES', 5 * 76 - 1)  # Bob has five images.
  files = clients.cohort(['alice', 'bob'])
  assert len(lent) == 1
  if num_packs:
    # They no longer fit into one value.
    found = [x['examples']['example_id'] for pack in files for x in pack]
    assert sorted(np.concatenate(found)) == list(range(10, 19))
    return
  for got, wanted in zip(files, sent, strict=True):
    assert got.element_spec == wanted.element_spec
    for a, b in zip(got, wanted, strict=True):
      tf.nest.map_structure(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize(
  'ids', [[[0, 1, 1], [2]], [[0, 1], [2, 1]]], ids=['of a client', 'of two clients']
)
def test_two_examples_of_a_cohort_with_one_id_are_an_error(ids):
  data = tff.simulation.datasets.TestClientData(
    {
      str(k): collections.OrderedDict(
        image=np.zeros([len(own), 8, 8, 1], np.uint8), example_id=np.array(own)
      )
      for k, own in enumerate(ids)
    }
  )
  clients = simulated_clients.Clients(data, num_packs=2)
  with pytest.raises(ValueError, match='example_id is 1 for 2 examples of a cohort'):
    clients.cohort(['0', '1'])
  assert clients.cohort(['1'])


@pytest.mark.parametrize('num_packs', [0, 2])
def test_batches_and_foreign_aggregations_are_refused(num_packs):
  batched = tff.simulation.datasets.TestClientData(
    {'a': collections.OrderedDict(tiny.arrays())}
  ).preprocess(lambda dataset: dataset.batch(2))
  with pytest.raises(ValueError, match='must be single examples'):
    simulated_clients.Clients(batched, num_packs=num_packs)
  with pytest.raises(ValueError, match='aggregation is a SumFactory; it must be'):
    simulated_clients.Clients(_uneven(), tff.aggregators.SumFactory(), num_packs)
