"""Invariants of examples and tasks."""

import dataclasses

import numpy as np
import pytest

from tasks import task as task_lib


def _examples(ids, labels=None, cases=None, size=2):
  n = len(ids)
  return task_lib.Examples(
    image=np.arange(n * size * size * 3, dtype=np.uint8).reshape(n, size, size, 3),
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
    ('label', np.full(2, -2, np.int32), 'label holds -2'),
    ('example_id', np.zeros(3, np.int64), r'example_id is int64 of shape \(3,\)'),
    ('case', np.zeros(2, np.int32), 'case is int32'),
  ],
)
def test_examples_are_validated(field, value, message):
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(_examples([0, 1]), **{field: value})


@pytest.mark.parametrize(
  ('train', 'test', 'message'),
  [
    (_examples([0, 1]), _examples([1]), 'example_id twice'),
    (_examples([0, 1]), _examples([2], cases=[1]), 'case in two splits'),
    (_examples([0]), _examples([1], labels=[2]), 'test label 2'),
    (_examples([0]), _examples([1], size=3), 'must be the same'),
    (_examples([0]), _examples([]), '0 test examples'),
  ],
)
def test_tasks_are_validated(train, test, message):
  with pytest.raises(ValueError, match=message):
    task_lib.Task('name', ('a', 'b'), train, test)


def test_describe():
  task = task_lib.Task(
    name='name',
    label_names=('a', 'b'),
    train=_examples([0, 1, 2], labels=[0, 1, -1], cases=[0, 0, 1]),
    test=_examples([3], cases=[2]),
    case_level=True,
  )
  assert task.num_classes == 2
  assert task.image_shape == (2, 2, 3)
  assert task.describe() == (
    'name: train 3 images of 2 cases (1 unlabelled), test 1 images of 1 cases, '
    '2 classes, 2x2x3'
  )


def test_fingerprint_changes_with_any_example():
  train, test = _examples([0, 1]), _examples([2])
  first = task_lib.Task('name', ('a', 'b'), train, test).fingerprint()
  assert task_lib.Task('name', ('a', 'b'), train, _examples([2])).fingerprint() == first
  for changed in (
    _examples([2], labels=[1]),
    _examples([3]),
    dataclasses.replace(test, image=test.image + 1),
  ):
    task = task_lib.Task('name', ('a', 'b'), train, changed)
    assert task.fingerprint() != first
