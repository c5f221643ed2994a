"""Tests of the losses without negatives, against NumPy loops and closed forms."""

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tff_ssl.losses import similarity


def _encodings(n: int, number: int, d: int = 4) -> list[np.ndarray]:
  rng = np.random.default_rng(n)
  return [rng.normal(size=(n, d)) for _ in range(number)]


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
  """Mean cosine over rows, by a loop."""
  cosines = [x @ y / np.sqrt((x @ x) * (y @ y)) for x, y in zip(a, b, strict=True)]
  return float(np.mean(cosines))


@pytest.mark.parametrize('n', [1, 5])
def test_both_forms_equal_reference(n):
  a, b = _encodings(n, 2)
  cosine = _cosine(a, b)
  got = similarity.negative_cosine(tf.constant(a), tf.constant(b))
  np.testing.assert_allclose(got, -cosine, rtol=1e-12)
  got = similarity.regression(tf.constant(a), tf.constant(b))
  np.testing.assert_allclose(got, 2 - 2 * cosine, rtol=1e-12)
  unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b)]
  distance = ((unit[0] - unit[1]) ** 2).sum(axis=1).mean()
  np.testing.assert_allclose(got, distance, rtol=1e-12)


@pytest.mark.parametrize('n', [1, 5])
def test_each_prediction_meets_the_other_view(n):
  p1, p2, z1, z2 = arrays = _encodings(n, 4)
  tensors = [tf.constant(x) for x in arrays]
  crossed = _cosine(p1, z2) + _cosine(p2, z1)
  simsiam = similarity.simsiam_loss(*tensors)
  np.testing.assert_allclose(simsiam, -crossed / 2, rtol=1e-12)
  byol = similarity.byol_loss(*tensors)
  np.testing.assert_allclose(byol, 4 - 2 * crossed, rtol=1e-12)
  np.testing.assert_allclose(byol, 4 + 4 * simsiam, rtol=1e-12)


@pytest.mark.parametrize('n', [1, 5])
def test_consensus_is_of_all_four_pairs(n):
  p1, p2, q1, q2 = arrays = _encodings(n, 4)
  pairs = [_cosine(p, q) for p in (p1, p2) for q in (q1, q2)]
  got = similarity.consensus_loss(*map(tf.constant, arrays))
  np.testing.assert_allclose(got, -np.mean(pairs), rtol=1e-12)


def test_agreement_and_opposition_are_the_bounds():
  x = tf.constant([[3.0, 4.0]])
  np.testing.assert_allclose(similarity.negative_cosine(x, 2 * x), -1.0, rtol=1e-6)
  np.testing.assert_allclose(similarity.negative_cosine(x, -x), 1.0, rtol=1e-6)
  np.testing.assert_allclose(similarity.regression(x, 7 * x), 0.0, atol=1e-6)
  np.testing.assert_allclose(similarity.regression(x, -x), 4.0, rtol=1e-6)


@pytest.mark.parametrize('n', [0, 1, 3])
def test_zero_vectors_are_not_similar(n):
  x = tf.zeros([n, 4])
  loss = similarity.simsiam_loss(x, x, x, x) + similarity.byol_loss(x, x, x, x)
  assert float(loss) == (4.0 if n else 0.0)


def test_the_gradient_is_that_of_finite_differences():
  p1, p2, z1, z2 = _encodings(3, 4)

  def loss(arrays):
    return similarity.simsiam_loss(*map(tf.constant, (arrays['p1'], p2, z1, z2)))

  variable = tf.constant(p1)
  with tf.GradientTape() as tape:
    tape.watch(variable)
    value = similarity.simsiam_loss(variable, *map(tf.constant, (p2, z1, z2)))
  slopes = differences.gradient(loss, {'p1': p1})['p1']
  np.testing.assert_allclose(tape.gradient(value, variable), slopes, atol=1e-8)


def test_rejects_encodings_of_two_shapes():
  with pytest.raises(
    ValueError, match=r'have shapes \(2, 3\).*; both must be \[n, d\]'
  ):
    similarity.negative_cosine(tf.ones([2, 3]), tf.ones([2, 4]))
