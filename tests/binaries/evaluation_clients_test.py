import collections

import numpy as np
import pytest

from binaries.config import evaluations
from binaries.experiment import evaluation_clients
from tasks import registry
from tests.binaries import in_process

_FAIR = evaluations.Additions(fairness=True)
_CASES = np.array([7, 7, 3, 5, 3, 9])


def test_partition_of_images_becomes_one_of_cases():
  partition = collections.OrderedDict(b=np.array([0, 1]), a=np.array([2, 4, 5]), c=[])
  partition['c'] = np.zeros([0], np.int64)
  found = evaluation_clients.hold_cases(partition, _CASES)
  # The cases are 3, 5, 7, 9; nobody holds 5.
  assert {name: held.tolist() for name, held in found.items()} == {
    'b': [2],
    'a': [0, 3],
    'c': [],
  }


def test_case_at_two_clients_is_named():
  partition = collections.OrderedDict(a=np.array([0, 2]), b=np.array([3, 4]))
  with pytest.raises(ValueError, match='Case 3 has images at two clients'):
    evaluation_clients.hold_cases(partition, _CASES)


def _deal(partition):
  config = in_process.read('dcco', f'--partition={partition}')
  return evaluation_clients.build(config, _FAIR, registry.load('digits')).deal


def test_test_examples_are_dealt_by_the_partition_of_the_run():
  labels = np.repeat(np.arange(4), 6)
  clients = _deal('classes:per_client=1,clients=4')(labels, np.arange(24))
  assert sorted(np.concatenate(list(clients.values()))) == list(range(24))
  assert all(len(np.unique(labels[held])) == 1 for held in clients.values())


def test_partition_that_does_not_fit_the_test_examples_is_named():
  deal = _deal('iid:examples=4,clients=9')
  with pytest.raises(ValueError, match='to the test examples of digits, which it'):
    deal(np.zeros([8], np.int32), np.arange(8))


def test_clusters_have_no_fairness():
  config = in_process.read('dcco', '--partition=clusters:clients=3')
  with pytest.raises(ValueError, match='clusters of the test examples would not be'):
    evaluation_clients.check(config, _FAIR)


def test_nothing_is_built_that_is_not_asked_for():
  config = in_process.read('dcco')
  built = evaluation_clients.build(
    config, evaluations.Additions(), registry.load('digits')
  )
  assert built == (None, None, None)
  with evaluation_clients.open_context(config) as execution:
    assert execution is None
