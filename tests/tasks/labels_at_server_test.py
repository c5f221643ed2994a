"""Splits of a task's labels between a server and its clients."""

import dataclasses

import numpy as np
import pytest

from tasks import labels_at_server
from tasks import task_types


def _task(labels, cases=None) -> task_types.Task:
  count = len(labels)
  ids = np.arange(count, dtype=np.int64)
  image = np.arange(count, dtype=np.uint8)[:, None, None, None]
  case = ids if cases is None else np.asarray(cases, np.int64)
  test = task_types.Examples(
    {'image': np.zeros((2, 1, 1, 1), np.uint8)},
    np.array([0, 1], np.int32),
    np.array([1000, 1001]),
    np.array([1000, 1001]),
  )
  train = task_types.Examples({'image': image}, np.asarray(labels, np.int32), ids, case)
  return task_types.Task('made', ('a', 'b', 'c'), train, test)


_LABELS = np.repeat([0, 1, 2], [100, 50, 50])


@pytest.mark.parametrize(('share', 'counts'), [(0.01, [1, 1, 1]), (0.1, [10, 5, 5])])
def test_the_server_has_the_same_share_of_every_class(share, counts):
  split = labels_at_server.by_share(_task(_LABELS), share, seed=3)
  np.testing.assert_array_equal(np.bincount(split.server.train.label), counts)
  both = np.concatenate([split.server.train.example_id, split.clients.train.example_id])
  np.testing.assert_array_equal(np.sort(both), np.arange(200))
  np.testing.assert_array_equal(
    split.clients.train.image[:, 0, 0, 0], split.clients.train.example_id
  )
  assert split.clients.test is split.server.test
  assert f'{sum(counts)} labelled examples' in split.line()


def test_shares_are_nested_and_a_function_of_the_seed():
  few, many, other = (
    set(labels_at_server.by_share(_task(_LABELS), *a).server.train.example_id)
    for a in ((0.02, 3), (0.2, 3), (0.2, 4))
  )
  assert few < many
  assert many != other


def test_clients_of_many_labels_are_not_torn():
  task = _task(np.arange(200) % 2)
  test = dataclasses.replace(task.test, client=np.array([100, 101]))
  train = dataclasses.replace(task.train, client=np.arange(200) // 4)
  task = dataclasses.replace(task, train=train, test=test)
  split = labels_at_server.by_share(task, 0.2, seed=0)
  sides = split.server.train.client, split.clients.train.client
  assert not np.intersect1d(*sides).size
  assert len(np.unique(sides[0])) >= 10


def test_unlabelled_examples_belong_to_clients():
  labels = np.where(np.arange(200) < 40, _LABELS, -1)
  split = labels_at_server.by_share(_task(labels), 1.0, seed=0)
  np.testing.assert_array_equal(split.server.train.example_id, np.arange(40))
  assert (split.clients.train.label == -1).all()


def test_one_place_has_the_labels():
  here = np.arange(200) % 4 == 0
  split = labels_at_server.at(_task(_LABELS), here)
  np.testing.assert_array_equal(split.server.train.example_id, np.flatnonzero(here))


@pytest.mark.parametrize(
  ('share', 'message'),
  [(1.0, 'The clients of'), (0.0, 'fraction is 0.0'), (1.5, 'fraction is 1.5')],
)
def test_both_sides_need_examples(share, message):
  with pytest.raises(ValueError, match=message):
    labels_at_server.by_share(_task(_LABELS), share, seed=0)
