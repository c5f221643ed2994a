"""Tests of CCO against NumPy float64, its limiting cases and the DCCO identity."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tff_ssl.losses import cco
from tff_ssl.losses import statistics_loss
from tff_ssl.losses import vicreg

_LAMBDA = 20.0
_EPSILON = 1e-5
# With the moments inside each view, and without.
_WITHIN = vicreg.VicregLoss()
_statistics, _loss = cco.CcoLoss().statistics, cco.CcoLoss().loss


def _encodings(n: int, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
  rng = np.random.default_rng(seed)
  shared = rng.normal(size=(n, d))
  return shared + 0.3 * rng.normal(size=(n, d)), shared * 2.0 + 1.0


def test_statistics_are_means_over_examples():
  f, g = _encodings(5)
  got = _WITHIN.statistics(tf.constant(f), tf.constant(g[:, :3]))
  expected = {
    'mean_f': f.mean(axis=0),
    'mean_g': g[:, :3].mean(axis=0),
    'square_f': (f**2).mean(axis=0),
    'square_g': (g[:, :3] ** 2).mean(axis=0),
    'cross': f.T @ g[:, :3] / 5,
    'within_f': f.T @ f / 5,
    'within_g': g[:, :3].T @ g[:, :3] / 5,
  }
  assert list(got) == list(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(got[name], value, rtol=1e-12)


def test_statistics_without_within_are_what_dcco_sends():
  f, g = _encodings(5)
  got = _statistics(tf.constant(f), tf.constant(g))
  numbers = sum(value.shape.num_elements() for value in got.values())
  assert numbers == 4**2 + 4 * 4


def test_statistics_of_no_example_are_zero():
  for value in _WITHIN.statistics(tf.ones([0, 2]), tf.ones([0, 2])).values():
    np.testing.assert_array_equal(value, np.zeros(value.shape))


def test_statistics_around_a_reference_are_those_of_moved_encodings():
  f, g = _encodings(5)
  reference = {
    'f': np.array([1.0, -2.0, 3.0, 0.5]),
    'g': np.array([4.0, 0.0, 1.0, 2.0]),
  }
  around = statistics_loss.around(tf.constant(f), tf.constant(g), reference)
  got = _WITHIN.statistics(*around)
  f, g = f - reference['f'], g - reference['g']
  np.testing.assert_allclose(got['mean_f'], f.mean(axis=0), rtol=1e-12)
  np.testing.assert_allclose(got['square_g'], (g**2).mean(axis=0), rtol=1e-12)
  np.testing.assert_allclose(got['cross'], f.T @ g / 5, rtol=1e-12)
  np.testing.assert_allclose(got['within_f'], f.T @ f / 5, rtol=1e-12)
  # And so they are when moved afterwards.
  shift = {name: -value for name, value in reference.items()}
  back = _WITHIN.moved(got, {name: tf.constant(value) for name, value in shift.items()})
  f, g = _encodings(5)
  expected = _WITHIN.statistics(tf.constant(f), tf.constant(g))
  assert list(back) == list(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(back[name], value, rtol=1e-11, atol=1e-12, err_msg=name)


@pytest.mark.parametrize('shift', [300.0, 1000.0])
def test_float32_keeps_the_gradient_of_shifted_encodings_around_a_reference(shift):
  """The gradient in the encodings, which the shift does not change, in NumPy's type."""
  f, g = (x.astype(np.float32) for x in _encodings(64))
  f, g = (np.round((x + shift) * 2**13) / 2**13 for x in (f, g))  # Exact in float32.

  def gradient(dtype, reference):
    x, y = tf.constant(f, dtype), tf.constant(g, dtype)
    with tf.GradientTape() as tape:
      tape.watch(x)
      loss = _loss(_statistics(*statistics_loss.around(x, y, reference)))
    return tape.gradient(loss, x).numpy().astype(np.float64)

  expected = gradient(np.float64, None)
  # A mean of other examples, half a standard deviation off.
  near = {'f': tf.fill([4], shift + 0.5), 'g': tf.fill([4], shift + 0.5)}

  def error(got):
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)

  assert error(gradient(np.float32, near)) < 1e-5
  assert error(gradient(np.float32, None)) > 1e-2


@pytest.mark.parametrize('sizes', [(1, 1, 1, 1, 1, 1), (1, 5), (0, 2, 4)])
def test_statistics_of_union_are_weighted_mean_of_parts(sizes):
  f, g = _encodings(6)
  ends = np.cumsum(sizes)
  parts = [
    _WITHIN.statistics(tf.constant(f[e - n : e]), tf.constant(g[e - n : e]))
    for n, e in zip(sizes, ends, strict=True)
  ]
  union = _WITHIN.statistics(tf.constant(f), tf.constant(g))
  for name, value in union.items():
    mean = sum(n * part[name].numpy() for n, part in zip(sizes, parts, strict=True)) / 6
    np.testing.assert_allclose(value, mean, rtol=1e-12)


@pytest.mark.parametrize(
  ('f_shape', 'g_shape'),
  [((2, 3), (4, 3)), ((2, 3, 1), (2, 3, 1)), ((2, 3), (2, 3, 1)), ((2, 3, 1), (2, 3))],
)
def test_statistics_reject_unpaired_encodings(f_shape, g_shape):
  with pytest.raises(ValueError, match='same n'):
    _statistics(tf.zeros(f_shape), tf.zeros(g_shape))


@pytest.mark.parametrize(('dtype', 'rtol'), [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize('n', [2, 7])
def test_loss_equals_reference(dtype, rtol, n):
  f, g = _encodings(n)
  loss = _loss(_statistics(tf.constant(f, dtype), tf.constant(g, dtype)))
  assert loss.dtype == dtype
  np.testing.assert_allclose(loss, references.cco(f, g), rtol=rtol)


def test_perfectly_decorrelated_pair_has_no_loss():
  # Columns of a Hadamard matrix: zero mean, unit variance, orthogonal.
  f = tf.constant([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], tf.float64)
  c = cco.correlation(_statistics(f, f), epsilon=0.0)
  np.testing.assert_allclose(c, np.eye(3), atol=1e-15)
  assert cco.CcoLoss(epsilon=0.0).loss(_statistics(f, f)) == 0.0


def test_correlation_ignores_scale_and_shift():
  f, g = _encodings(9)
  scale, shift = np.array([0.5, 2.0, 10.0, 3.0]), np.array([1.0, -5.0, 0.0, 7.0])
  plain = cco.correlation(_statistics(tf.constant(f), tf.constant(g)), 0.0)
  moved = cco.correlation(
    _statistics(tf.constant(f * scale + shift), tf.constant(g)), 0.0
  )
  np.testing.assert_allclose(moved, plain, rtol=1e-10)


def test_one_dimension_has_no_off_diagonal_term():
  f, g = _encodings(5, d=1)
  loss = _loss(_statistics(tf.constant(f), tf.constant(g)))
  c = cco.correlation(_statistics(tf.constant(f), tf.constant(g)))
  np.testing.assert_allclose(loss, (1.0 - c[0, 0]) ** 2, rtol=1e-14)


@pytest.mark.parametrize('n', [0, 1, 3])
def test_collapsed_encodings_have_no_correlation(n):
  # 0.1 squared is rounded, so the variance is not exactly 0 in float32.
  x = tf.fill([n, 4], 0.1)
  loss = _loss(_statistics(x, 3.0 * x))
  np.testing.assert_allclose(loss, 4.0, atol=1e-2)


def test_negative_variance_by_rounding_is_finite():
  statistics = _statistics(tf.fill([2, 3], 0.1), tf.fill([2, 3], 0.1))
  square = statistics['square_f'] - 1e-3
  with tf.GradientTape() as tape:
    tape.watch(square)
    loss = _loss({**statistics, 'square_f': square})
  assert np.isfinite(loss)
  assert np.isfinite(tape.gradient(loss, square)).all()


def test_loss_rejects_encodings_of_two_dimensions():
  f, g = _encodings(3)
  with pytest.raises(ValueError, match='same known dimension'):
    _loss(_statistics(tf.constant(f), tf.constant(g[:, :2])))


def _network(w: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
  return tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, w)), w)) + x**2


def _gradient(w, x, y, aggregated=None):
  with tf.GradientTape() as tape:
    tape.watch(w)
    statistics = _statistics(_network(w, x), _network(w, y))
    if aggregated is not None:
      statistics = statistics_loss.blend(statistics, aggregated)
    loss = _loss(statistics)
  return tape.gradient(loss, w).numpy(), statistics


@pytest.mark.parametrize('sizes', [(1,) * 6, (3, 3), (1, 2, 3), (6,), (0, 6)])
def test_clients_gradients_sum_to_the_central_gradient(sizes):
  rng = np.random.default_rng(1)
  w = tf.constant(rng.normal(size=(4, 4)))
  x, y = (tf.constant(rng.normal(size=(6, 4))) for _ in range(2))
  central, union = _gradient(w, x, y)
  parts = zip(tf.split(x, sizes), tf.split(y, sizes), sizes, strict=True)
  federated, local_only = np.zeros([4, 4]), np.zeros([4, 4])
  for x_k, y_k, n_k in parts:
    federated += n_k / 6 * _gradient(w, x_k, y_k, union)[0]
    local_only += n_k / 6 * _gradient(w, x_k, y_k)[0]
  np.testing.assert_allclose(federated, central, rtol=0, atol=1e-9)
  if max(sizes) < 6:
    # Averaging within-client losses is another method, and must not pass.
    assert np.abs(local_only - central).max() > 1e-3


def test_traces_with_unknown_n():
  @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float64)] * 2)
  def loss(f, g):
    return _loss(_statistics(f, g))

  for n in (1, 6):
    f, g = _encodings(n)
    np.testing.assert_allclose(loss(f, g), references.cco(f, g), rtol=1e-9)
  np.testing.assert_allclose(loss(f[:0], g[:0]), 4.0)
