"""Validation splits that are held out of the training examples."""

import dataclasses

import numpy as np
import pytest

from tasks import task_types
from tasks import validation


def _examples(first, label, case, client=None):
  count = len(label)
  return task_types.Examples(
    {'features': np.arange(first, first + count, dtype=np.float32)[:, np.newaxis]},
    np.array(label, np.int32),
    np.arange(first, first + count),
    np.array(case),
    None if client is None else np.array(client),
  )


def _task(train, test=None):
  test = test or _examples(1000, [0, 1], [1000, 1001])
  return task_types.Task('made', ('a', 'b'), train, test)


def test_a_share_of_each_label_leaves_training_and_nothing_is_lost():
  # 40 examples of class 0, 20 of class 1, each by itself.
  task = _task(_examples(0, [0] * 40 + [1] * 20, np.arange(60)))
  found = validation.hold_out(task, 0.1)
  np.testing.assert_array_equal(np.bincount(found.validation.label), [4, 2])
  np.testing.assert_array_equal(np.bincount(found.train.label), [36, 18])
  both = np.concatenate([found.train.example_id, found.validation.example_id])
  np.testing.assert_array_equal(np.sort(both), task.train.example_id)
  assert found.test is task.test
  # The same one each time, another by another seed, and the identity is another.
  again, other = validation.hold_out(task, 0.1), validation.hold_out(task, 0.1, seed=1)
  ids = found.validation.example_id
  np.testing.assert_array_equal(again.validation.example_id, ids)
  assert set(other.validation.example_id) != set(ids)
  assert found.fingerprint() != task.fingerprint()


@pytest.mark.parametrize('by_client', [False, True])
def test_cases_and_clients_stay_whole_with_what_has_no_label(by_client):
  # Ten holders of three examples, the last of each without a label.
  holder = np.repeat(np.arange(10), 3)
  label = np.where(np.arange(30) % 3 == 2, -1, holder % 2)
  case, client = (np.arange(30), holder) if by_client else (holder, None)
  test = _examples(1000, [0, 1], [1000, 1001], [1000, 1001] if by_client else None)
  found = validation.hold_out(_task(_examples(0, label, case, client), test), 0.2)
  # One of the five holders of each label.
  held_out = np.unique(found.validation.holder)
  assert sorted(held_out % 2) == [0, 1]
  assert len(found.validation) == 6
  assert not set(held_out) & set(found.train.holder)


def test_impossible_validation_splits_are_refused():
  labelled = _task(_examples(0, [0] * 10, np.arange(10)))
  has_one = dataclasses.replace(labelled, validation=_examples(500, [0], [500]))
  for task, share, why in (
    (labelled, 0.0, 'validation is 0.0; it must be above 0 and below 1'),
    (has_one, 0.1, "'made' has its own validation split of 1 examples"),
    (_task(_examples(0, [-1] * 4, np.arange(4))), 0.1, "'made' has no train labels"),
    (
      _task(_examples(0, [0, 1], [0, 1])),
      0.1,
      'The 2 cases cannot be split into train and validation',
    ),
  ):
    with pytest.raises(ValueError, match=why):
      validation.hold_out(task, share)
