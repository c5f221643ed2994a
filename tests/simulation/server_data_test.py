"""What rounds of a server with data are given."""

import types

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tff_ssl.federated import packs
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import server_data


def _data() -> client_data.ArrayClientData:
  """Seven clients with one to three images."""
  ends = np.cumsum([0, 1, 3, 2, 1, 2, 3, 1])
  images = np.zeros((ends[-1], *tiny.IMAGE_SHAPE), np.uint8)
  clients = {f'client{k}': np.arange(ends[k], ends[k + 1]) for k in range(7)}
  return client_data.ArrayClientData(images, np.arange(ends[-1]), clients)


def _grouped(num_packs: int) -> server_data.Grouped:
  data = _data()
  cohorts = cohort_sampling.Cohorts(data.client_ids, 5, seed=1)
  return server_data.Grouped(data, cohorts, 2, seed=4, num_packs=num_packs)


def _groups_apart(round: int) -> dict[int, int]:
  """Returns the group of each example of a round, by its id."""
  found = {}
  for dataset in _grouped(0)(round):
    for example in dataset.as_numpy_iterator():
      found[int(example['example_id'])] = int(example['group'])
  return found


def test_clients_apart_name_their_group():
  datasets = _grouped(0)(3)
  groups = [{int(e['group']) for e in d.as_numpy_iterator()} for d in datasets]
  assert all(len(group) == 1 for group in groups)
  assert set.union(*groups) == {0, 1}
  assert sorted(np.bincount([group.pop() for group in groups])) == [2, 3]


@pytest.mark.parametrize('num_packs', [1, 2, 4])
def test_a_pack_is_of_one_group_and_the_groups_are_the_same(num_packs):
  grouped = _grouped(num_packs)
  assert isinstance(grouped.element_spec, packs.PackSpec)
  found, sizes = {}, []
  for pack in grouped(3):
    element = pack.get_single_element()
    examples = element[packs.EXAMPLES]
    sizes += element[packs.SIZES].numpy().tolist()
    (group,) = set(examples['group'].numpy().tolist())
    found.update(dict.fromkeys(examples['example_id'].numpy().tolist(), group))
  assert found == _groups_apart(3)
  assert len(sizes) == 5


def test_rounds_differ_and_are_a_function_of_their_number():
  rounds = [_groups_apart(round) for round in range(6)]
  assert rounds == [_groups_apart(round) for round in range(6)]
  assert len({tuple(sorted(groups.items())) for groups in rounds}) > 3


def test_groups_must_be_those_of_the_cohort():
  """Clients of a third group would be in no pack."""
  data = _data()
  cohorts = cohort_sampling.Cohorts(data.client_ids, 6, seed=1)
  for groups in (2, 4):
    grouped = server_data.Grouped(data, cohorts, groups, seed=4, num_packs=2)
    with pytest.raises(ValueError, match=f'groups is {groups}; it must be 3, the'):
      grouped(1)


def test_rounds_take_the_data_of_both_sides():
  calls = []
  process = types.SimpleNamespace(
    get_model_weights=None,
    initialize=lambda: 'state',
    next=lambda *arguments: calls.append(arguments),
  )
  rounds = server_data.ServerDataRounds(process, 'labelled')
  assert rounds.initialize() == 'state'
  rounds.next('state', ['client'])
  rounds.next('state', None)
  assert calls == [('state', 'labelled', ['client']), ('state', 'labelled')]


def test_labels_too_large_for_a_message_come_from_files(monkeypatch):
  rng = np.random.default_rng(0)
  labelled = {
    'image': rng.integers(0, 256, (5, 4, 4, 3)).astype(np.uint8),
    'label': np.arange(5, dtype=np.int32),
  }
  expected = server_data.dataset(labelled)
  monkeypatch.setattr(packs, 'MAX_BYTES', 100)
  got = server_data.dataset(labelled)
  for a, b in zip(got, expected, strict=True):
    for name in labelled:
      np.testing.assert_array_equal(a[name], b[name])
  assert got.element_spec['image'].shape == (4, 4, 3)
  assert list(got.element_spec) == ['image', 'label']
  serialized = tf.raw_ops.DatasetToGraphV2(input_dataset=got._variant_tensor)
  assert b'ReadFile' in serialized.numpy()


def test_a_field_is_of_the_client_and_leaves_the_data_as_they_were():
  data = _data()
  numbered = data.with_field('number', {'client1': 5, 'client6': 2})
  assert numbered.element_type_structure['number'].dtype == np.int32
  assert numbered.examples(np.array([0, 1, 3, 12]))['number'].tolist() == [0, 5, 5, 2]
  assert 'number' not in data.element_type_structure
  with pytest.raises(ValueError, match="have a field 'number' already"):
    numbered.with_field('number', {})
  with pytest.raises(ValueError, match="no client 'nobody'"):
    data.with_field('number', {'nobody': 1})


def test_clients_are_numbered_by_their_place():
  data = _data()
  numbered = data.numbered('number')
  for k, client_id in enumerate(data.client_ids):
    numbers = numbered.examples(data.positions(client_id))['number']
    assert numbers.tolist() == [k] * data.num_examples(client_id)
