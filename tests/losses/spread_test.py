"""Tests of the collapse alarm against closed forms and NumPy float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tff_ssl.losses import cco
from tff_ssl.losses import spectral
from tff_ssl.losses import spread
from tff_ssl.losses import vicreg


def _normal(n: int, d: int) -> np.ndarray:
  return np.random.default_rng(n + d).normal(size=(n, d))


def _std(x) -> tf.Tensor:
  mean, square, _ = spread.normalised_moments(tf.constant(x))
  return spread.encoding_std_from_moments(mean, square)


def test_encoding_std_equals_reference():
  x = _normal(7, 4)
  np.testing.assert_allclose(_std(x), references.encoding_std(x), rtol=1e-10)


def test_encoding_std_is_one_on_the_axes_and_zero_if_collapsed():
  axes = tf.concat([tf.eye(8), -tf.eye(8)], axis=0)
  np.testing.assert_allclose(_std(5.0 * axes), 1.0, rtol=1e-6)
  # One direction at several lengths is collapsed too.
  line = tf.constant([[1.0], [2.0], [9.0]]) * tf.ones([1, 4])
  np.testing.assert_allclose(_std(line), 0.0, atol=1e-3)


# In the space itself, and in the subspace of 32 dimensions.
@pytest.mark.parametrize('d', [3, 40])
def test_moments_of_union_from_clients_moments(d):
  x = _normal(60, d)
  parts = [spread.normalised_moments(tf.constant(part)) for part in (x[:1], x[1:])]
  mean, square, second = (
    (1 * a + 59 * b) / 60 for a, b in zip(parts[0], parts[1], strict=True)
  )
  np.testing.assert_allclose(
    spread.encoding_std_from_moments(mean, square),
    references.encoding_std(x),
    rtol=1e-10,
  )
  unit = references.unit(x)
  expected = references.effective_rank(references.spectrum(unit @ spread.subspace(d)))
  rank = spread.effective_rank_from_moments(mean, second)
  np.testing.assert_allclose(rank, expected, rtol=1e-9)


def test_the_subspace_is_orthonormal_and_always_the_same():
  np.testing.assert_array_equal(spread.subspace(5), np.eye(5))
  basis = spread.subspace(50)
  assert basis.shape == (50, 32)
  np.testing.assert_allclose(basis.T @ basis, np.eye(32), atol=1e-12)
  spread.subspace.cache_clear()
  np.testing.assert_array_equal(spread.subspace(50), basis)


@pytest.mark.parametrize('rank', [1, 3])
def test_the_subspace_shows_a_collapse_to_few_directions(rank):
  """Encodings +-e_i of equal shares: their effective rank is their number."""
  axes = np.linalg.qr(_normal(200, rank))[0].T
  encodings = tf.constant(np.concatenate([axes, -axes]))
  mean, _, second = spread.normalised_moments(encodings)
  got = float(spread.effective_rank_from_moments(mean, second))
  # Projections of unequal lengths: somewhat less than the number, never more.
  assert 0.9 * rank <= got <= rank + 1e-9


@pytest.mark.parametrize('d', [4, 100])
@pytest.mark.parametrize('dtype', [tf.float32, tf.float64])
def test_equal_encodings_have_rank_one_whatever_rounding_leaves(d, dtype):
  encodings = tf.cast(np.repeat(_normal(1, d), 7, axis=0), dtype)
  mean, _, second = spread.normalised_moments(encodings)
  # As if clients had computed them in another order.
  second *= 1.0 + 2.0 * np.finfo(dtype.as_numpy_dtype).eps
  assert float(spread.effective_rank_from_moments(mean, second)) == 1.0


@pytest.mark.parametrize(
  'loss', [cco.CcoLoss(), vicreg.VicregLoss(), spectral.SpectralLoss()]
)
@pytest.mark.parametrize('n', [3, 512])
def test_statistics_of_equal_encodings_have_rank_one(loss, n):
  encodings = tf.constant(np.repeat(_normal(1, 64), n, axis=0), tf.float32)
  signs = loss.signs_of_collapse(loss.statistics(encodings, encodings))
  assert float(signs['effective_rank']) == 1.0


def test_small_variances_beside_a_large_mean_count():
  """Each of 256 is 1e-5 of the second moments' trace, of which one rounding is 1e-7."""
  covariance = 1e-5 * tf.eye(256)
  rank = spread.effective_rank_from_covariance(covariance, 1.0)
  np.testing.assert_allclose(rank, 256, rtol=1e-4)


# Fewer examples than dimensions, as many, and more.
@pytest.mark.parametrize(('n', 'd'), [(3, 6), (5, 5), (20, 4)])
def test_effective_rank_equals_reference(n, d):
  x = _normal(n, d)
  covariance = np.cov(x, rowvar=False, bias=True)
  np.testing.assert_allclose(
    spread.effective_rank_from_covariance(tf.constant(covariance)),
    references.effective_rank(references.spectrum(x)),
    rtol=1e-8,
  )


@pytest.mark.parametrize('rank', [1, 2, 5])
def test_effective_rank_of_equal_variances_is_their_number(rank):
  covariance = tf.linalg.diag([3.0] * rank + [0.0] * (5 - rank))
  np.testing.assert_allclose(
    spread.effective_rank_from_covariance(covariance), rank, rtol=1e-5
  )


@pytest.mark.parametrize('n', [0, 1, 4])
def test_constant_encodings_are_collapsed(n):
  x = tf.fill([n, 3], 0.5)
  mean, _, second = spread.normalised_moments(x)
  assert spread.effective_rank_from_moments(mean, second) == 1.0
  np.testing.assert_allclose(_std(x), 0.0, atol=1e-3)


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_nonfinite_values_have_no_rank(value):
  matrix = tf.constant([[1.0, 0.0], [0.0, value]])
  assert np.isnan(spread.effective_rank_from_covariance(matrix))
  assert np.isnan(spread.effective_rank_from_moments(tf.zeros([2]), matrix))


def test_traces_with_unknown_n():
  @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float64)])
  def alarm(x):
    mean, square, second = spread.normalised_moments(x)
    return (
      spread.encoding_std_from_moments(mean, square),
      spread.effective_rank_from_moments(mean, second),
    )

  for n in (0, 1, 3, 9):
    x = tf.constant(_normal(n, 4))
    assert np.isfinite(alarm(x)).all()
