"""Weighted kNN against brute force in NumPy float64."""

import numpy as np
import pytest

from tff_ssl.evaluation import knn


def _brute_force(train, labels, test, num_classes, k, temperature):
  shares = []
  for query in test.astype(np.float64):
    norms = np.linalg.norm(train.astype(np.float64), axis=1) * np.linalg.norm(query)
    similarity = train.astype(np.float64) @ query / norms
    votes = np.zeros([num_classes])
    for neighbour in np.argsort(-similarity)[:k]:
      votes[labels[neighbour]] += np.exp(similarity[neighbour] / temperature)
    shares.append(votes / np.sum(votes))
  return np.array(shares)


def _data(seed=0, count=80):
  random = np.random.default_rng(seed)
  return (
    random.normal(size=[count, 6]).astype(np.float32),
    random.integers(0, 5, [count]),
    random.normal(size=[50, 6]).astype(np.float32),
  )


@pytest.mark.parametrize('k, temperature', [(1, 0.1), (7, 0.1), (30, 0.02), (200, 0.5)])
def test_equals_brute_force(k, temperature):
  train, labels, test = _data()
  got = knn.predict(train, labels, test, 5, knn.KnnConfig(k, temperature))
  assert got.dtype == np.int32
  shares = _brute_force(train, labels, test, 5, k, temperature)
  votes = knn.votes(train, labels, test, 5, knn.KnnConfig(k, temperature))
  np.testing.assert_allclose(votes, shares, rtol=1e-4, atol=1e-6)
  want = np.argmax(shares, axis=1)
  np.testing.assert_array_equal(got, want)
  assert np.unique(want).size > 2  # The comparison is not one of constants.


def test_by_default_20_vote():
  train, labels, test = _data(count=400)
  want = np.argmax(_brute_force(train, labels, test, 5, 20, 0.1), axis=1)
  np.testing.assert_array_equal(knn.predict(train, labels, test, 5), want)
  assert np.any(
    want != np.argmax(_brute_force(train, labels, test, 5, 200, 0.1), axis=1)
  )


def test_blocks_do_not_change_predictions(monkeypatch):
  train, labels, test = _data()
  whole = knn.predict(train, labels, test, 5)
  monkeypatch.setattr(knn, '_BLOCK_ELEMENTS', 3 * len(train))
  np.testing.assert_array_equal(knn.predict(train, labels, test, 5), whole)


def test_zero_features_and_no_queries_are_defined():
  train, labels, test = _data()
  assert knn.predict(train, labels, np.zeros([3, 6]), 5).shape == (3,)
  assert knn.predict(train, labels, test[:0], 5).shape == (0,)
