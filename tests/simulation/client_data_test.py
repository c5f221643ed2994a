import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import tiny
from tff_ssl.simulation import client_data


def read(dataset):
  return list(dataset.as_numpy_iterator())


def test_a_client_yields_its_rows_in_order():
  data = tiny.arrays()
  clients = tiny.clients(labelled=True)
  elements = read(clients.create_tf_dataset_for_client('bob'))
  assert len(elements) == clients.num_examples('bob') == 5
  for row, element in zip(range(4, 9), elements, strict=True):
    assert list(element) == ['image', 'example_id', 'label']
    np.testing.assert_array_equal(element['image'], data['image'][row])
    assert element['example_id'] == data['example_id'][row]
    assert element['label'] == data['label'][row]


@pytest.mark.parametrize('labelled', [False, True])
def test_element_type_is_what_data_sets_have(labelled):
  clients = tiny.clients(labelled)
  assert isinstance(clients, tff.simulation.datasets.ClientData)
  for client_id in clients.client_ids:
    spec = clients.create_tf_dataset_for_client(client_id).element_spec
    assert spec == clients.element_type_structure
  assert ('label' in clients.element_type_structure) == labelled


def test_an_empty_client_has_the_same_type():
  data = tiny.arrays()
  clients = client_data.ArrayClientData(
    data['image'], data['example_id'], {'none': np.array([]), 'one': np.array([3])}
  )
  empty = clients.create_tf_dataset_for_client('none')
  assert read(empty) == []
  assert empty.element_spec == clients.element_type_structure


def test_examples_of_many_clients_at_once():
  data = tiny.arrays()
  clients = tiny.clients(labelled=True)
  together = np.concatenate([clients.positions('bob'), clients.positions('alice')])
  rows = [4, 5, 6, 7, 8, 0, 1, 2, 3]
  np.testing.assert_array_equal(together, rows)
  examples = clients.examples(together)
  assert list(examples) == ['image', 'example_id', 'label']
  for name, array in examples.items():
    np.testing.assert_array_equal(array, data[name][rows])
    assert array.flags.c_contiguous
    assert array.flags.owndata


def test_examples_in_any_order_and_more_than_once():
  examples = tiny.clients().examples(np.array([7, 2, 7], np.int32))
  np.testing.assert_array_equal(examples['example_id'], [17, 12, 17])
  assert tiny.clients().examples([])['image'].shape == (0, *tiny.IMAGE_SHAPE)


@pytest.mark.parametrize(
  ('positions', 'message'),
  [
    ([0, 9], r'positions go from 0 to 9: they must lie in \[0, 9\)'),
    ([-1], r'from -1 to -1'),
    ([[0]], r'positions are int64 \[1, 1\]'),
    ([0.5], 'must be integers'),
  ],
)
def test_positions_must_fit(positions, message):
  for read_positions in (
    tiny.clients().examples,
    tiny.clients().create_tf_dataset_for_positions,
  ):
    with pytest.raises(ValueError, match=message):
      read_positions(positions)


def test_dataset_computation_gives_the_same_examples(worker_context):
  clients = tiny.clients(labelled=True)
  computation = clients.dataset_computation
  assert computation.type_signature.result == tff.SequenceType(
    tff.types.tensorflow_to_type(clients.element_type_structure)
  )
  for client_id in clients.client_ids:
    remote = read(computation(client_id))
    here = read(clients.create_tf_dataset_for_client(client_id))
    assert [e['example_id'] for e in remote] == [e['example_id'] for e in here]
    for one, other in zip(remote, here, strict=True):
      np.testing.assert_array_equal(one['image'], other['image'])


def test_all_clients_together():
  together = tiny.clients().create_tf_dataset_from_all_clients(seed=0)
  ids = sorted(element['example_id'] for element in read(together))
  assert ids == tiny.arrays()['example_id'].tolist()


def test_a_cohort_is_in_sorted_order():
  sizes = [len(read(ds)) for ds in client_data.cohort(tiny.clients(), ['bob', 'alice'])]
  assert sizes == [4, 5]


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    ({'image': np.zeros([9, 8, 8, 1], np.float32)}, 'image is float32'),
    ({'example_id': np.arange(8)}, r'example_id is int64 \[8\]'),
    ({'example_id': np.zeros(9, np.int64)}, 'same for two examples'),
    ({'label': np.zeros(9, np.int64)}, 'label is int64'),
    ({'partition': {}}, 'no client'),
    ({'partition': {'a': np.array([0, 9])}}, r"client 'a' go .* in \[0, 9\)"),
  ],
)
def test_bad_input(change, message):
  arguments = {**tiny.arrays(), 'partition': tiny.partition(), **change}
  arguments['fields'] = arguments.pop('image')
  with pytest.raises(ValueError, match=message):
    client_data.ArrayClientData(**arguments)


@pytest.mark.parametrize('dtype', [np.float32, np.float64, np.int32])
def test_clients_may_hold_any_fields(dtype):
  fields = {
    'left': np.arange(16, dtype=np.uint8).reshape([4, 2, 2, 1]),
    'right': np.arange(12, dtype=dtype).reshape([4, 3]),
  }
  held = {'a': np.array([2, 0]), 'b': np.array([], np.int64)}
  label = np.arange(4, dtype=np.int32)
  clients = client_data.ArrayClientData(fields, np.arange(4), held, label)
  spec = clients.element_type_structure
  assert list(spec) == ['left', 'right', 'example_id', 'label']
  assert (spec['right'].shape, spec['right'].dtype) == ((3,), dtype)
  examples = clients.examples(clients.positions('a'))
  for name, array in fields.items():
    np.testing.assert_array_equal(examples[name], array[[2, 0]])
  elements = read(clients.create_tf_dataset_for_client('a'))
  np.testing.assert_array_equal(elements[1]['right'], fields['right'][0])
  assert read(clients.create_tf_dataset_for_client('b')) == []
  assert len(read(clients.serializable_dataset_fn(tf.constant('a')))) == 2
  alone = client_data.ArrayClientData(
    fields['right'], np.arange(4), held, field='right'
  )
  assert list(alone.element_type_structure) == ['right', 'example_id']
  np.testing.assert_array_equal(alone.examples([3])['right'], fields['right'][3:])
  with pytest.raises(ValueError, match='fields is empty'):
    client_data.ArrayClientData({}, np.arange(4), {'a': np.array([0])})
  with pytest.raises(ValueError, match='one for each row of right'):
    fields['right'] = fields['right'][:3]
    client_data.ArrayClientData(fields, np.arange(4), {'a': np.array([0])})


@pytest.mark.parametrize(
  ('field', 'array', 'message'),
  [
    ('image', np.zeros([2, 3], np.float32), r'image is float32 \[2, 3\]'),
    ('features', np.array(['a', 'b']), r'features is <U1 \[2\]: it must be numbers'),
    ('features', np.float32(1), r'features is float32 \[\]'),
    ('label', np.zeros([2, 3], np.float32), "field is 'label'"),
    ('features', np.zeros([3, 2], np.float32), r'one for each row of features'),
  ],
)
def test_fields_that_cannot_be_held_are_named(field, array, message):
  with pytest.raises(ValueError, match=message):
    client_data.ArrayClientData(array, np.arange(2), {'a': [0]}, field=field)
