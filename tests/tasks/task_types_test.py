"""Invariants of examples and tasks."""

import dataclasses

import numpy as np
import pytest

from tasks import task_types


def _examples(ids, labels=None, cases=None, size=2):
  n = len(ids)
  return task_types.Examples(
    {'image': np.arange(n * size * size * 3, dtype=np.uint8).reshape(n, size, size, 3)},
    label=np.asarray(np.zeros(n) if labels is None else labels, np.int32),
    example_id=np.asarray(ids, np.int64),
    case=np.asarray(ids if cases is None else cases, np.int64),
  )


def test_take_keeps_order_and_fields():
  taken = _examples([5, 6, 7], labels=[0, 1, -1]).take(np.array([2, 0]))
  np.testing.assert_array_equal(taken.example_id, [7, 5])
  np.testing.assert_array_equal(taken.label, [-1, 0])
  assert taken.image[1, 0, 0, 1] == 1
  assert len(taken) == 2


@pytest.mark.parametrize(
  ('field', 'value', 'message'),
  [
    ('image', np.zeros([2, 2, 2, 3], np.float32), 'image is float32'),
    ('image', np.zeros([2, 2, 2], np.uint8), 'must be uint8 of shape'),
    ('label', np.zeros(2, np.int64), 'label is int64'),
    ('label', np.full(2, -2, np.int32), 'label has the value -2'),
    ('example_id', np.zeros(3, np.int64), r'example_id is int64 of shape \(3,\)'),
    ('case', np.zeros(2, np.int32), 'case is int32'),
    ('client', np.zeros(3, np.int64), r'client is int64 of shape \(3,\)'),
  ],
)
def test_examples_are_validated(field, value, message):
  with pytest.raises(ValueError, match=message):
    change = {'fields': {'image': value}} if field == 'image' else {field: value}
    dataclasses.replace(_examples([0, 1]), **change)


def _held(ids, clients, cases=None):
  clients = np.asarray(clients, np.int64)
  return dataclasses.replace(_examples(ids, cases=cases), client=clients)


def test_the_holder_is_the_client_or_else_the_case():
  train, test = _held([0, 1, 2], [8, 8, 9]), _held([3], [7])
  np.testing.assert_array_equal(train.holder, [8, 8, 9])
  np.testing.assert_array_equal(train.take(np.array([2, 0])).holder, [9, 8])
  plain = _examples([0, 1, 2])
  np.testing.assert_array_equal(plain.holder, plain.case)
  task = task_types.Task('name', ('a', 'b'), train, test, client_names=('p', 'q'))
  assert task.holder_names == ('p', 'q')
  assert 'train 3 images of 2 clients, test 1 image of 1 client' in task.describe()
  without = task_types.Task('name', ('a', 'b'), plain, _examples([3]))
  assert without.fingerprint() != task.fingerprint()


def test_the_fingerprint_of_a_task_is_what_it_was():
  """By the version before there were clients."""
  task = task_types.Task('name', ('a', 'b'), _examples([0, 1]), _examples([2]))
  assert task.fingerprint() == 'b5fa7170cbdce3efae30ff18e0c6d978'


@pytest.mark.parametrize(
  ('train', 'test', 'message'),
  [
    (_examples([0, 1]), _examples([1]), 'example_id twice'),
    (_examples([0, 1]), _examples([2], cases=[1]), 'case in two splits'),
    (_examples([0]), _examples([1], labels=[2]), 'test label 2'),
    (_examples([0]), _examples([1], size=3), 'must be the same'),
    (_examples([0]), _examples([]), '0 test examples'),
    (_held([0, 1], [4, 5]), _held([2], [5]), 'client in two splits'),
    (_held([0, 1], [4, 5], [3, 3]), _held([2], [6]), 'case with two clients'),
    (_held([0, 1], [4, 5]), _examples([2]), 'clients in some splits only'),
  ],
)
def test_tasks_are_validated(train, test, message):
  with pytest.raises(ValueError, match=message):
    task_types.Task('name', ('a', 'b'), train, test)


def test_classes_that_training_lacks_are_warned_of():
  names = ('a', 'b', 'c', 'd', 'e')
  train = _examples([0, 1], labels=[1, -1])
  test = _examples([2, 3, 4, 5, 6], labels=[4, 0, 1, -1, 2])
  (warning,) = task_types.Task('name', names, train, test).warnings()
  assert "'name' has 3 of 5 classes only in its test split (a, c, e)" in warning
  assert task_types.Task('name', names, train, _examples([7], [1])).warnings() == []


def test_describe():
  task = task_types.Task(
    name='name',
    label_names=('a', 'b'),
    train=_examples([0, 1, 2], labels=[0, 1, -1], cases=[0, 0, 1]),
    test=_examples([3], cases=[2]),
    case_level=True,
  )
  assert task.num_classes == 2
  assert task.image_shape == (2, 2, 3)
  assert task.describe() == (
    'name: train 3 images of 2 cases (1 unlabelled), test 1 image of 1 case, '
    '2 classes, 2x2x3'
  )


def _of_fields(**fields):
  ids = np.arange(2)
  return task_types.Examples(fields, np.zeros(2, np.int32), ids, ids)


def test_examples_may_have_any_named_fields():
  left, right = np.zeros([2, 3, 4, 1], np.uint8), np.ones([2, 5], np.float32)
  examples = _of_fields(left=left, right=right)
  taken = examples.take(np.array([1]))
  assert taken['left'].shape == (1, 3, 4, 1)
  assert taken['right'].shape == (1, 5)
  with pytest.raises(ValueError, match="no field 'image'; they have left, right"):
    _ = examples.image
  test = dataclasses.replace(examples, example_id=np.arange(2, 4), case=np.arange(2, 4))
  task = task_types.Task('name', ('a',), examples, test)
  assert task.shapes == {'left': (3, 4, 1), 'right': (5,)}
  assert task.describe().endswith('1 classes, left 3x4x1, right 5')
  other = task_types.Task('name', ('a',), examples, test.with_fields(right=right + 1))
  assert other.fingerprint() != task.fingerprint()


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({}, 'fields is empty'),
    ({'label': np.zeros([2, 3], np.float32)}, "A field is called 'label'"),
    ({'features': np.zeros([2, 3])}, 'features is float64 .* must be float32'),
    ({'features': np.zeros(2, np.float32)}, r'of shape \(2,\); it must be float32'),
    ({'left': np.zeros([2, 3], np.uint8)}, 'left is uint8 of shape .* must be uint8'),
    (
      {'a': np.zeros([2, 3], np.float32), 'b': np.zeros([3, 3], np.float32)},
      'b has 3 rows and a has 2',
    ),
  ],
)
def test_fields_that_cannot_be_held_are_named(fields, message):
  with pytest.raises(ValueError, match=message):
    _of_fields(**fields)
