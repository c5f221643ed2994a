"""Tests of dealing the test examples as the training examples were dealt."""

import collections

import numpy as np

from tff_ssl.partition import matching
from tff_ssl.partition import spec


def _histograms(partition, labels, classes):
  return np.array(
    [np.bincount(labels[p], minlength=classes) for p in partition.values()]
  )


def _deal(partition, labels, other):
  return matching.deal_matching(partition, labels, other, np.random.default_rng(0))


def test_every_client_has_its_share_of_each_class():
  """Also where the rule itself would draw other shares for the test examples."""
  generator = np.random.default_rng(2)
  labels = generator.integers(0, 4, 800)
  other = generator.integers(0, 4, 200)
  text = 'shares:alpha=0.3,clients=6'
  partition = spec.build(text, labels, np.arange(800), seed=1)
  dealt = _deal(partition, labels, other)
  assert list(dealt) == list(partition)
  together = np.concatenate(list(dealt.values()))
  assert sorted(together) == list(range(200))
  shares, other_shares = (
    h / h.sum(axis=0)
    for h in (_histograms(partition, labels, 4), _histograms(dealt, other, 4))
  )
  np.testing.assert_allclose(other_shares, shares, atol=1 / 30)


def test_examples_of_no_client_are_left_out():
  labels = np.array([0, 0, 1, 1, -1])
  partition = collections.OrderedDict(
    a=np.array([0, 2]), b=np.array([1, 4]), c=np.zeros(0, np.int64)
  )
  dealt = _deal(partition, labels, np.array([2, 0, -1, 1, 0, 1, 0, 0]))
  assert [len(held) for held in dealt.values()] == [4, 2, 0]
  assert 3 in dealt['a'] and 5 in dealt['a']


def test_test_examples_have_sources_as_their_clients_have():
  partition = collections.OrderedDict(
    a=np.array([0, 1, 2, 3]), b=np.array([4, 5]), c=np.zeros(0, np.int64)
  )
  source = np.array([1, 0, 1, 1, 2, 2])
  other = collections.OrderedDict(b=np.array([9, 8]), a=np.arange(8), c=np.array([11]))
  found = matching.match_sources(partition, source, other, 12, np.random.default_rng(0))
  assert sorted(found[:8]) == [0, 0, 1, 1, 1, 1, 1, 1]
  assert found[8:].tolist() == [2, 2, -1, -1]
