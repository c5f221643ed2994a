"""Tests of VICReg from statistics against the paper's direct formulas."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.losses import cco
from tff_ssl.losses import statistics_loss
from tff_ssl.losses import vicreg

_EPSILON = 1e-4
_VICREG = vicreg.VicregLoss()


def _encodings(n: int, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
  rng = np.random.default_rng(0)
  return rng.normal(size=(n, d)), 0.5 * rng.normal(size=(n, d)) + 1.0


def _terms(f: np.ndarray, g: np.ndarray) -> np.ndarray:
  """(s, v + v', c + c') of Eqs. 1 to 5 by NumPy, with population covariances."""
  d = f.shape[1]
  invariance = np.mean(np.sum((f - g) ** 2, axis=1))
  hinge = redundancy = 0.0
  for z in (f, g):
    centred = z - z.mean(axis=0)
    covariance = centred.T @ centred / len(z)
    hinge += np.mean(np.maximum(0.0, 1.0 - np.sqrt(np.diag(covariance) + _EPSILON)))
    redundancy += np.sum((covariance - np.diag(np.diag(covariance))) ** 2) / d
  return np.array([invariance, hinge, redundancy])


def _loss(f: np.ndarray, g: np.ndarray, **weights) -> float:
  kind = vicreg.VicregLoss(**weights)
  return float(kind.loss(kind.statistics(tf.constant(f), tf.constant(g))))


@pytest.mark.parametrize('n', [1, 2, 8])
@pytest.mark.parametrize('d', [1, 3])
def test_default_loss_equals_direct_formula(n, d):
  f, g = _encodings(n, d)
  expected = np.dot([25.0, 25.0, 1.0], _terms(f, g))
  np.testing.assert_allclose(_loss(f, g), expected, rtol=1e-9)


@pytest.mark.parametrize('index', [0, 1, 2])
def test_each_weight_belongs_to_its_term(index):
  f, g = _encodings(8)
  names = ('invariance_weight', 'variance_weight', 'covariance_weight')
  weights = {name: float(i == index) for i, name in enumerate(names)}
  np.testing.assert_allclose(_loss(f, g, **weights), _terms(f, g)[index], rtol=1e-9)


def test_spread_out_uncorrelated_equal_views_have_no_loss():
  f = np.array([[2.0, 2.0], [2.0, -2.0], [-2.0, 2.0], [-2.0, -2.0]])
  np.testing.assert_allclose(_loss(f, f), 0.0, atol=1e-12)


@pytest.mark.parametrize('n', [0, 1, 3])
def test_collapsed_encodings_have_the_loss_of_both_hinges(n):
  x = tf.fill([n, 4], 0.1)
  loss = _VICREG.loss(_VICREG.statistics(x, x))
  # Nothing varies: both hinges stand at 1 - sqrt(epsilon).
  np.testing.assert_allclose(loss, 25.0 * 2.0 * 0.99, rtol=1e-3)


@pytest.mark.parametrize('sizes', [(1,) * 6, (1, 5), (0, 6)])
def test_clients_gradients_sum_to_the_central_gradient(sizes):
  rng = np.random.default_rng(1)
  w = tf.constant(rng.normal(size=(3, 3)))
  x, y = (tf.constant(rng.normal(size=(6, 3))) for _ in range(2))

  def gradient(x, y, aggregated=None):
    with tf.GradientTape() as tape:
      tape.watch(w)
      statistics = _VICREG.statistics(
        tf.tanh(tf.matmul(x, w)), tf.tanh(tf.matmul(y, w))
      )
      blended = statistics_loss.blend(statistics, aggregated or statistics)
      loss = _VICREG.loss(blended)
    return tape.gradient(loss, w).numpy(), statistics

  central, union = gradient(x, y)
  federated = sum(
    n / 6 * gradient(x_k, y_k, union)[0]
    for x_k, y_k, n in zip(tf.split(x, sizes), tf.split(y, sizes), sizes, strict=True)
  )
  np.testing.assert_allclose(federated, central, rtol=0, atol=1e-9)


def test_rejects_statistics_without_within():
  statistics = cco.CcoLoss().statistics(tf.zeros([2, 3]), tf.zeros([2, 3]))
  with pytest.raises(ValueError, match='must have `within_f` and `within_g`'):
    _VICREG.loss(statistics)


def test_rejects_encodings_of_two_dimensions():
  statistics = _VICREG.statistics(tf.zeros([2, 3]), tf.zeros([2, 4]))
  with pytest.raises(ValueError, match='same dimension'):
    _VICREG.loss(statistics)
