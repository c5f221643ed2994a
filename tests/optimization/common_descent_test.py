"""Weights of the common descent against all active sets in NumPy, and closed forms."""

import numpy as np
import pytest
import tensorflow as tf

from tests.optimization import shortest
from tff_ssl.optimization import common_descent


def _vectors(k: int, scale: float) -> np.ndarray:
  generator = np.random.default_rng(k)
  # A common part, so that the vectors do not point in all directions.
  vectors = generator.normal(size=(k, 6)) + generator.normal(size=6)
  return vectors * scale ** np.arange(k)[:, np.newaxis]


# Traced: in eager mode its loop takes seconds.
_traced = tf.function(
  common_descent.weights,
  autograph=False,
  input_signature=[tf.TensorSpec([None, None], tf.float64)],
)


def _weights(vectors: np.ndarray) -> np.ndarray:
  return _traced(vectors @ vectors.T).numpy()


@pytest.mark.parametrize('scale', [1.0, 2.0, 0.3])
@pytest.mark.parametrize('k', [2, 3, 5])
def test_the_weights_are_those_of_the_shortest_combination(k, scale):
  vectors = _vectors(k, scale)
  np.testing.assert_allclose(_weights(vectors), shortest.weights(vectors), atol=1e-4)


def test_all_vectors_with_a_weight_come_nearer_at_the_same_rate_the_others_faster():
  vectors = _vectors(5, 0.8)
  weights = _weights(vectors)
  rates = vectors @ (weights @ vectors) / np.sum(vectors**2, axis=1)
  used = weights > 1e-6
  assert used.sum() > 1
  np.testing.assert_allclose(rates[used], rates[used].mean(), rtol=1e-3)
  assert (rates >= rates[used].mean() * (1 - 1e-3)).all()


def test_orthogonal_vectors_count_equally_whatever_their_lengths():
  vectors = np.diag([1.0, 5.0, 0.2])
  np.testing.assert_allclose(_weights(vectors), np.full(3, 1 / 3), rtol=1e-4)


def test_a_vector_along_another_leaves_the_longer_to_set_the_pace():
  """Their rates are 1 / |g|: the shorter is passed sooner, and needs no weight."""
  np.testing.assert_allclose(_weights(np.array([[3.0], [1.0]])), [1.0, 0.0], atol=1e-4)


def test_who_is_not_there_has_no_weight():
  vectors = _vectors(3, 1.0)
  with_absent = np.insert(vectors, 1, 0.0, axis=0)
  expected = np.insert(_weights(vectors), 1, 0.0)
  np.testing.assert_allclose(_weights(with_absent), expected, atol=1e-6)
  np.testing.assert_array_equal(_weights(np.zeros((3, 2))), np.zeros(3))
  np.testing.assert_allclose(_weights(with_absent[:2]), [1.0, 0.0], rtol=1e-6)


def test_equal_and_opposite_vectors_are_weighed_and_finite():
  np.testing.assert_allclose(_weights(np.ones((2, 3))).sum(), 1.0, rtol=1e-6)
  np.testing.assert_allclose(_weights(np.array([[1.0], [-1.0]])), [0.5, 0.5], rtol=1e-3)
