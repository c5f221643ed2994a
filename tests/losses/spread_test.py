"""Lengths and spreads of encodings against NumPy in float64."""

import functools
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tff_ssl.losses import cco
from tff_ssl.losses import lejepa
from tff_ssl.losses import lengths
from tff_ssl.losses import spectral
from tff_ssl.losses import spread
from tff_ssl.losses import statistics_loss
from tff_ssl.losses import vicreg

_D = 5


def _projected(x, radius):
  """Returns the nearest points of the ball, by NumPy in float64."""
  length = np.linalg.norm(x, axis=1, keepdims=True)
  return x * np.minimum(1.0, radius / np.maximum(length, 1e-300))


def _random(n, seed=0):
  """Vectors of lengths from 0.01 to 100."""
  generator = np.random.default_rng(seed)
  x = generator.normal(size=(n, _D))
  x /= np.linalg.norm(x, axis=1, keepdims=True)
  return x * 10 ** generator.uniform(-2, 2, (n, 1))


def test_longer_vectors_are_rescaled_and_shorter_ones_stay():
  x = _random(50)
  got = lengths.at_most(tf.constant(x), 2.0).numpy()
  np.testing.assert_allclose(got, _projected(x, 2.0), rtol=1e-14)
  short = np.linalg.norm(x, axis=1) <= 2.0
  assert 5 < short.sum() < 45
  np.testing.assert_array_equal(got[short], x[short])
  single = x[short].astype(np.float32)
  np.testing.assert_array_equal(lengths.at_most(tf.constant(single), 2.0), single)


def test_gradients_are_finite_and_those_of_the_projection():
  x = tf.constant([[0.0, 0.0], [0.3, 0.4], [3.0, 4.0]], tf.float64)
  with tf.GradientTape() as tape:
    tape.watch(x)
    total = tf.reduce_sum(lengths.at_most(x, 1.0) * [[1.0, 2.0]])
  # Of x / |x|: (I - x x^T / |x|^2) / |x|, here with x / |x| = (0.6, 0.8).
  outside = np.array([0.64 * 1 - 0.48 * 2, -0.48 * 1 + 0.36 * 2]) / 5
  expected = [[1.0, 2.0], [1.0, 2.0], outside]
  np.testing.assert_allclose(tape.gradient(total, x), expected, atol=1e-15)


def _unit_slope(x, towards):
  """Returns the damped gradient of `towards . x / |x|`, by NumPy in float64."""
  short = min(0.25, 0.02 * np.sqrt(x.shape[1]))
  length = np.linalg.norm(x, axis=1, keepdims=True)
  unit = x / length
  across = towards - unit * (unit * towards).sum(axis=1, keepdims=True)
  return np.minimum(1, (length / short) ** 2) * across / length


@pytest.mark.parametrize('d', [2, 9, 64])
def test_unit_vectors_have_the_value_of_tensorflow_and_a_bounded_gradient(d):
  generator = np.random.default_rng(d)
  x, towards = generator.normal(size=(2, 60, d))
  x *= np.logspace(-5, 3, 60)[:, None] / np.linalg.norm(x, axis=1, keepdims=True)
  for dtype in (tf.bfloat16, tf.float32, tf.float64):
    cast = tf.cast(tf.constant(x), dtype)
    plain = tf.math.l2_normalize(cast, axis=1)
    np.testing.assert_array_equal(lengths.unit(cast).numpy(), plain.numpy())
  point = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(point)
    total = tf.reduce_sum(lengths.unit(point) * towards)
  slope = tape.gradient(total, point).numpy()
  np.testing.assert_allclose(slope, _unit_slope(x, towards), rtol=1e-6, atol=1e-9)
  bound = np.linalg.norm(towards, axis=1) / min(0.25, 0.02 * np.sqrt(d))
  assert np.all(np.linalg.norm(slope, axis=1) <= bound * (1 + 1e-9))


def test_a_vector_of_length_0_has_neither_direction_nor_slope_nor_curvature():
  x = tf.constant([[0.0, 0.0], [1e-30, 0.0], [1e-6, 0.0], [1e-3, 0.0]])
  with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as tape:
      tape.watch(x)
      total = tf.reduce_sum(lengths.unit(x) * [[0.0, 1.0]])
    slope = tape.gradient(total, x)
  np.testing.assert_array_equal(lengths.unit(x)[0], [0.0, 0.0])
  # |x| / L^2 with L = 0.02 sqrt(2).
  np.testing.assert_allclose(slope[:, 1], [0, 0, 1.25e-3, 1.25], rtol=1e-4, atol=1e-12)
  curvature = outer.gradient(slope, x).numpy()
  assert not curvature[:2].any() and np.abs(curvature).max() <= 1.01 / 0.0008


def test_only_one_function_makes_unit_vectors():
  root = pathlib.Path(lengths.__file__).parents[1]
  files = [f for f in root.rglob('*.py') if 'l2_normalize' in f.read_text()]
  assert [file.name for file in files] == ['lengths.py']


def test_nonfinite_values_stay_nonfinite():
  x = tf.constant([[np.nan, 1.0], [np.inf, 1.0], [1.0, 1.0]])
  finite = np.isfinite(lengths.at_most(x, 2.0).numpy()).all(axis=1)
  np.testing.assert_array_equal(finite, [False, False, True])
  assert lengths.at_most(tf.zeros([0, 3]), 1.0).shape == [0, 3]


def _moments(kind, f, g, radius):
  """Returns the statistics of encodings near a reference, and their bound."""
  centre = {'f': np.arange(_D) * 1e3, 'g': -np.ones(_D)}
  shifted = (tf.constant(x + centre[name]) for name, x in (('f', f), ('g', g)))
  reference = {name: tf.constant(value) for name, value in centre.items()}
  around = statistics_loss.around(*shifted, reference, radius)
  return kind.statistics(*around), kind.share_bound(radius)


def _spectral(f, g, radius):
  kind = spectral.SpectralLoss(radius**2)
  return kind.statistics(tf.constant(f), tf.constant(g)), kind.share_bound(None)


_DRAWN = lejepa.LejepaLoss(directions=6, knots=5).with_seed(tf.constant([3, 5]))


def _lejepa(f, g, radius):
  """Bounded whatever the lengths are."""
  sent = _DRAWN.statistics(tf.constant(f), tf.constant(g))
  return sent, _DRAWN.share_bound(radius)


_SENT = {
  'cco': functools.partial(_moments, cco.CcoLoss()),
  'vicreg': functools.partial(_moments, vicreg.VicregLoss()),
  'spectral': _spectral,
  'lejepa': _lejepa,
}


def _sums(name, f, g):
  """The sums over examples, by NumPy in float64: what is bounded."""
  outer = np.einsum('ni,nj->nij', f, g).sum(axis=0)
  if name == 'spectral':
    own = (f.T @ f + g.T @ g) / 2
    return [own, np.sum(f * g), (f + g).sum(axis=0) / 2]
  sums = [x.sum(axis=0) for x in (f, g, f**2, g**2)]
  return [*sums, outer, *([f.T @ f, g.T @ g] if name == 'vicreg' else [])]


def _norm(arrays):
  return np.sqrt(sum(np.sum(np.square(x)) for x in arrays))


@pytest.mark.parametrize('radius', [0.1, 1.0, 7.0])
@pytest.mark.parametrize('name', _SENT)
def test_sums_of_any_encodings_are_within_the_bound(name, radius):
  for seed, n in enumerate([1, 1, 1, 2, 5, 40]):
    f, g = _random(n, 2 * seed), _random(n, 2 * seed + 1)
    sent, bound = _SENT[name](f, g, radius)
    if name != 'lejepa':
      expected = _sums(name, _projected(f, radius), _projected(g, radius))
      for value, total in zip(sent.values(), expected, strict=True):
        np.testing.assert_allclose(n * value, total, rtol=1e-8, atol=1e-9 * radius)
    assert _norm(n * value.numpy() for value in sent.values()) <= n * bound


@pytest.mark.parametrize('n', [1, 6])
@pytest.mark.parametrize('name', sorted(_SENT.keys() - {'lejepa'}))
def test_the_worst_examples_attain_the_bound(name, n):
  radius = 0.7
  worst = np.zeros((n, _D))
  worst[:, 2] = 1e4
  sent, bound = _SENT[name](worst, worst, radius)
  total = _norm(n * value.numpy() for value in sent.values())
  assert total == pytest.approx(n * bound, rel=1e-9)
  # Those of CCO are short of it where their entries are all alike, by sum_i u_i^4.
  even, _ = _SENT[name](np.ones((n, _D)), np.ones((n, _D)), radius)
  squared = _norm(n * value.numpy() for value in even.values()) ** 2
  missing = 0.0 if name == 'spectral' else 2 * radius**4 * (1 - 1 / _D)
  assert squared == pytest.approx(n**2 * (bound**2 - missing), rel=1e-9)


def _normal(n: int, d: int) -> np.ndarray:
  return np.random.default_rng(n + d).normal(size=(n, d))


def _std(x) -> tf.Tensor:
  mean, square, _ = spread.normalised_moments(tf.constant(x))
  return spread.encoding_std_from_moments(mean, square)


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
