import math

import numpy as np
import pytest

from docs.studies import drift


def test_distance_of_a_layer_is_that_of_all_its_parameters():
  one = {'a/kernel': np.array([[3.0]]), 'a/bias': np.array([0.0]), 'b': np.array([1.0])}
  other = {
    'a/kernel': np.zeros([1, 1]),
    'a/bias': np.array([4.0]),
    'b': np.array([3.0]),
  }
  assert drift.distances(one, other) == {'a': 5.0, 'b': 2.0}
  with pytest.raises(ValueError, match="'b' is a parameter of only one of"):
    drift.distances(one, {'a/kernel': 0, 'a/bias': 0})


def test_cka_is_that_of_its_definition():
  random = np.random.default_rng(0)
  x, y = random.normal(size=[20, 3]), random.normal(size=[20, 4, 2])
  y[:, :3, 0] += x
  # HSIC of linear kernels with the centring matrix H (Kornblith et al., Equation 3).
  centre = np.eye(20) - 1 / 20
  flat = y.reshape(20, 8)

  def hsic(a, b):
    return np.trace(a @ a.T @ centre @ b @ b.T @ centre)

  want = hsic(x, flat) / math.sqrt(hsic(x, x) * hsic(flat, flat))
  assert drift.linear_cka(x, y) == pytest.approx(want)
  assert 0.1 < want < 0.9
  # Rotation, scale and shift do not matter; independent features have little.
  rotation = np.linalg.qr(random.normal(size=[3, 3]))[0]
  assert drift.linear_cka(x, 5 * x @ rotation + 2) == pytest.approx(1)
  many = random.normal(size=[2, 2000, 3])
  assert drift.linear_cka(*many) < 0.01
  assert math.isnan(drift.linear_cka(x, np.ones([20, 3])))
  # The mean of three times 0.1 is not 0.1.
  assert math.isnan(drift.linear_cka(x[:3], np.full([3, 2], 0.1)))
  with pytest.raises(ValueError, match='features of 20 and of 19 examples'):
    drift.linear_cka(x, y[1:])


def test_projection_is_shared_and_keeps_what_varies_most():
  random = np.random.default_rng(0)
  plane = random.normal(size=[30, 2]) * [9, 3]
  basis = np.linalg.qr(random.normal(size=[5, 2]))[0].T
  features = {'a': plane[:15] @ basis + 7, 'b': plane[15:] @ basis + 7}
  found = drift.shared_projection(features)
  together = np.concatenate([found['a'], found['b']])
  # Distances in the plane are as they were, between the two models too.
  for i, j in ((0, 1), (0, 20), (17, 29)):
    want = np.linalg.norm(plane[i] - plane[j])
    assert np.linalg.norm(together[i] - together[j]) == pytest.approx(want)
  assert np.std(together[:, 0]) > np.std(together[:, 1])
