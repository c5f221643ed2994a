"""Norms, Gelu and weight standardization against NumPy in float64.

In bfloat16: half_maps_test.py.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import layers
from tff_ssl.encoders import network
from tff_ssl.encoders import population
from tff_ssl.encoders import projector
from tff_ssl.encoders.operations import batch_normalization
from tff_ssl.encoders.operations import elementwise
from tff_ssl.encoders.operations import group_normalization
from tff_ssl.encoders.operations import kernels


def _norm(kind, number=None):
  """Returns a norm of x, gamma and beta: of so many groups, or of batches."""
  return {
    'group': lambda *given: group_normalization.group_norm(*given, number),
    'layer': group_normalization.layer_norm,
    'batch': lambda *given: batch_normalization.batch_norm(*given, number or 1)[0],
  }[kind]


@pytest.mark.parametrize(
  ('channels', 'positions', 'groups', 'expected'),
  [
    (64, 64, 32, 32),
    (1024, 1, 32, 32),
    (256, 1, 32, 32),
    (16, 1024, 32, 16),  # fewer channels than groups
    (48, 64, 32, 24),  # 32 does not divide 48
    (37, 64, 32, 1),  # a prime
    (64, 1, 32, 8),  # at least 8 values in a group
    (16, 4, 32, 8),
    (8, 1, 32, 1),
    (2, 4, 32, 1),
    # By default groups have at least 8 channels, and there are at most 32.
    (8, 1024, None, 1),
    (16, 1024, None, 2),
    (32, 256, None, 4),
    (64, 64, None, 8),
    (64, 1, None, 8),
    (128, 1, None, 16),
    (256, 16, None, 32),
    (2048, 4, None, 32),
    (20, 64, None, 2),
    (36, 64, None, 4),
    (37, 64, None, 1),
    (4, 64, None, 1),
  ],
)
def test_num_groups(channels, positions, groups, expected):
  assert group_normalization.num_groups(channels, positions, groups) == expected


@pytest.mark.parametrize(
  ('kind', 'shape', 'number'),
  [
    ('group', (3, 4, 5, 6), 3),
    ('group', (2, 3, 4, 32), 4),
    ('group', (2, 5, 4, 16), 2),
    ('group', (5, 8), 2),
    ('group', (2, 7, 6), 2),
    ('layer', (5, 8), None),
    ('layer', (3, 4, 8), None),
    ('layer', (0, 4, 8), None),
    ('batch', (6, 4, 5, 3), 1),
    ('batch', (6, 8), 1),
    ('batch', (1, 3, 3, 2), 1),
    ('batch', (8, 3, 2), 2),
  ],
)
@pytest.mark.parametrize(
  ('dtype', 'tolerance'), [('float64', 1e-11), ('float32', 1e-4)]
)
def test_norms_are_those_of_numpy(kind, shape, number, dtype, tolerance):
  rng = np.random.default_rng(0)
  x = rng.normal(1.0, 2.0, shape)
  gamma, beta = rng.normal(size=(2, shape[-1]))
  given = [tf.constant(value, dtype) for value in (x, gamma, beta)]
  if kind == 'batch':
    halves = [layers.batch_norm(half, gamma, beta) for half in np.split(x, number)]
    expected = np.concatenate(halves)
  elif kind == 'group':
    expected = layers.group_norm(x, gamma, beta, number)
  else:
    expected = layers.layer_norm(x, gamma, beta)
  got = _norm(kind, number)(*given)
  np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
  if kind == 'batch':
    _, mean, square = batch_normalization.batch_norm(*given, number)
    rows = x.reshape(-1, shape[-1])
    np.testing.assert_allclose(mean, rows.mean(0), rtol=tolerance)
    np.testing.assert_allclose(square, (rows**2).mean(0), rtol=tolerance)
  if number == 1:
    # By the same moments as a population's, each example is treated by itself.
    one = batch_normalization.by_moments(given[0][:1], *given[1:], mean, square)
    np.testing.assert_allclose(one, expected[:1], rtol=tolerance, atol=tolerance)


def _numpy_norm(x, dy, gamma, beta, axes):
  """The definition over axes of equal statistics, and the derivatives by x and gamma.

  Args:
    x: float64, in any shape that `axes` suit.
    dy: Like `x`.
    gamma: Broadcasts to `x`, like `beta`.
    beta: See `gamma`.
    axes: What is averaged.
  """
  std = np.sqrt(x.var(axes, keepdims=True) + 1e-5)
  unit = (x - x.mean(axes, keepdims=True)) / std
  scaled = dy * gamma
  along = (scaled * unit).mean(axes, keepdims=True)
  dx = (scaled - scaled.mean(axes, keepdims=True) - unit * along) / std
  return unit * gamma + beta, dx, dy * unit


@pytest.mark.parametrize('deviations', [0.0, 10.0, -1e3, 1e5])
@pytest.mark.parametrize(
  ('kind', 'shape'),
  [
    ('group', (2, 16, 16, 8)),
    ('group', (2, 7, 9, 64)),  # wide
    ('group', (3, 1, 1, 16)),  # one pixel
    ('group', (3, 64)),
    ('layer', (2, 5, 32)),
    ('batch', (4, 7, 5, 8)),
    ('batch', (32, 16)),
  ],
)
def test_no_digit_is_lost_far_from_zero(kind, shape, deviations):
  """In float32 as in float64, with the derivatives, whatever the mean."""
  rng = np.random.default_rng(0)
  dy, channels = rng.normal(size=shape).astype('float32'), shape[-1]
  x = rng.normal(deviations, 1.0, shape).astype('float32')
  # Each channel at a level of its own: groups share the level of none.
  x += np.linspace(0, 2, channels, dtype='float32')
  gamma, beta = rng.normal(size=(2, channels)).astype('float32')
  groups = {'group': group_normalization.num_groups(channels, x[0].size // channels, 4)}
  inputs = [tf.constant(value) for value in (x, gamma, beta)]
  norm = _norm(kind, groups.get(kind))
  with tf.GradientTape() as tape:
    tape.watch(inputs)
    y = norm(*inputs)
  dx, dgamma, dbeta = tape.gradient(y, inputs, output_gradients=tf.constant(dy))
  split = (*shape[:-1], groups.get(kind, 1), -1)
  axes = {
    'group': (*range(1, x.ndim - 1), x.ndim),
    'layer': (x.ndim - 1, x.ndim),
    'batch': tuple(range(x.ndim - 1)),
  }[kind]
  wide = (value.astype('float64').reshape(split) for value in (x, dy))
  of_channels = (value.astype('float64').reshape(split[-2:]) for value in (gamma, beta))
  expected = _numpy_norm(*wide, *of_channels, axes)
  rows = tuple(range(x.ndim - 1))
  for got, right in zip((y, dx), expected, strict=False):
    np.testing.assert_allclose(got, right.reshape(shape), rtol=1e-4, atol=1e-4)
  along = expected[2].reshape(shape).sum(rows)
  np.testing.assert_allclose(dgamma, along, rtol=1e-4, atol=1e-3)
  np.testing.assert_allclose(dbeta, dy.astype('float64').sum(rows), 1e-4, 1e-4)


def _check_derivatives(loss, arrays, direction):
  """Compares first derivatives, and the second by the first array, with differences."""
  inputs = [tf.constant(value) for value in arrays]
  theory, numeric = tf.test.compute_gradient(loss, inputs, delta=1e-5)
  for ours, differences in zip(theory, numeric, strict=True):
    np.testing.assert_allclose(ours, differences, rtol=1e-6, atol=1e-6)

  def gradient(x):
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
      tape.watch(x)
      value = loss(x, *inputs[1:])
    return tape.gradient(value, x)

  with tf.GradientTape() as tape:
    tape.watch(inputs[0])
    slope = tf.reduce_sum(gradient(inputs[0]) * direction)
  plus, minus = (gradient(arrays[0] + step * direction) for step in (1e-5, -1e-5))
  np.testing.assert_allclose(
    tape.gradient(slope, inputs[0]), (plus - minus) / 2e-5, rtol=1e-6, atol=1e-6
  )


@pytest.mark.parametrize('narrow', [32, 0])
@pytest.mark.parametrize(
  ('kind', 'shape', 'number'),
  [
    ('group', (2, 3, 3, 4), 2),
    ('layer', (2, 3, 4), None),
    ('batch', (4, 3, 3, 2), 2),
    ('batch', (6, 2), 2),
    ('batch', (7, 2), 1),
  ],
)
def test_derivatives_are_finite_differences(kind, shape, number, narrow, monkeypatch):
  """Of the moments of batch norm, too."""
  monkeypatch.setattr(group_normalization, 'NARROW', narrow)
  rng = np.random.default_rng(2)
  x, target, direction = rng.normal(size=(3, *shape))
  gamma, beta = rng.normal(size=(2, shape[-1]))

  def loss(*given):
    moments = 0.0
    if kind == 'batch':
      _, mean, square = batch_normalization.batch_norm(*given, batches=number)
      moments = tf.reduce_sum(tf.sin(3 * mean) + tf.cos(2 * square))
    return tf.reduce_sum(tf.square(_norm(kind, number)(*given)) * target) + moments

  _check_derivatives(loss, (x, gamma, beta), direction)


@pytest.mark.parametrize('value', [0.0, 0.7, -1e5 / 3])
def test_group_and_layer_norm_of_equal_values_are_beta(value):
  x = tf.fill([2, 7, 5, 8], value)
  dy = np.random.default_rng(0).normal(size=x.shape).astype('float32')
  with tf.GradientTape() as tape:
    tape.watch(x)
    y = group_normalization.group_norm(x, tf.ones([8]), tf.fill([8], 3.0), 4)
  np.testing.assert_array_equal(y, np.full(x.shape, 3.0))
  one = group_normalization.group_norm(tf.fill([2, 1], value), [1.0], [0.5], 1)
  np.testing.assert_array_equal(one, [[0.5], [0.5]])
  token = group_normalization.layer_norm(x[..., :7], tf.ones([7]), tf.fill([7], 3.0))
  np.testing.assert_array_equal(token, np.full(token.shape, 3.0))
  # Without variance only the epsilon is left, and the mean of dy is taken away.
  grouped = dy.astype('float64').reshape(2, 7, 5, 4, 2)
  expected = (grouped - grouped.mean((1, 2, 4), keepdims=True)) / np.sqrt(1e-5)
  dx = tape.gradient(y, x, output_gradients=tf.constant(dy))
  np.testing.assert_allclose(dx, expected.reshape(x.shape), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize('shape', [(3, 3, 2, 4), (5, 3)])
def test_standardize_is_numpys_with_unit_columns(shape):
  kernel = np.random.default_rng(2).normal(0.5, 0.3, shape)
  got = kernels.standardize(tf.constant(kernel)).numpy()
  np.testing.assert_allclose(got, layers.standardize(kernel), rtol=1e-12)
  flat = got.reshape(-1, shape[-1])
  np.testing.assert_allclose(flat.mean(0), 0.0, atol=1e-12)
  np.testing.assert_allclose((flat**2).sum(0), 1.0, rtol=1e-4)


def test_gelu_derivatives_are_finite_differences():
  x, target, direction = np.random.default_rng(4).normal(0.0, 2.0, (3, 5, 6))
  gelu = elementwise.Gelu().compute
  _check_derivatives(lambda x: tf.reduce_sum(gelu(x) ** 2 * target), [x], direction)


def test_standardize_derivatives_are_finite_differences():
  rng = np.random.default_rng(3)
  kernel, target, direction = rng.normal(size=(3, 3, 3, 2, 2))
  _check_derivatives(
    lambda w: tf.reduce_sum(kernels.standardize(w) ** 2 * target), [kernel], direction
  )


def test_batch_norm_of_one_example_is_beta_with_finite_gradient():
  x = tf.constant([[0.3, 0.7]])
  with tf.GradientTape() as tape:
    tape.watch(x)
    y, _, _ = batch_normalization.batch_norm(x, tf.ones([2]), tf.fill([2], 3.0))
  np.testing.assert_allclose(y, 3.0, atol=1e-3)
  assert np.isfinite(tape.gradient(y, x)).all()


def _forward(ops, x):
  """Two dense layers, each with batch norm."""
  for name in ('first', 'second'):
    with ops.scope(name):
      x = ops.dense(x, 'dense', units=3, use_bias=False)
      x = ops.relu(ops.batch_norm(x, 'norm'))
  return x


_NET = network.Network('two_layers', (4,), _forward)


def _params(net=_NET, dtype=tf.float64):
  """Parameters and statistics of which none has its initial, idle value."""
  rng = np.random.default_rng(0)
  return [
    {
      name: tf.constant(value + 0.2 * np.abs(rng.normal(size=value.shape)), dtype)
      for name, value in start.items()
    }
    for start in (net.init([5, 6], dtype), net.init_statistics(dtype))
  ]


def _inputs(n):
  return np.random.default_rng(1).normal(0.5, 2.0, (n, 4))


def _numpy_forward(params, x):
  """The definition in training, and the moments of each layer's input."""
  moments = {}
  for name in ('first', 'second'):
    x = x @ params[f'{name}/dense/kernel'].numpy()
    moments[f'{name}/norm/population_mean'] = x.mean(0)
    moments[f'{name}/norm/population_square'] = (x**2).mean(0)
    scaled = params[f'{name}/norm/gamma'], params[f'{name}/norm/beta']
    x = np.maximum(layers.batch_norm(x, *scaled), 0.0)
  return x, moments


def test_training_and_moments_are_numpys():
  params, _ = _params()
  x = _inputs(7)
  expected, moments = _numpy_forward(params, x)
  np.testing.assert_allclose(_NET.apply(params, x), expected, rtol=1e-9, atol=1e-11)
  got = _NET.moments(params, x)
  assert set(got) == set(moments) == set(_NET.statistics)
  for name, value in moments.items():
    np.testing.assert_allclose(got[name], value, rtol=1e-9)
  # By a population like the batch it is what training computes.
  own = _NET.infer({**params, **got}, x)
  np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-11)


def test_each_mode_wants_what_it_uses():
  params, statistics = _params()
  x = _inputs(2)
  with pytest.raises(ValueError, match='has no first/norm/population_mean'):
    _NET.infer(params, x)
  with pytest.raises(ValueError, match='has no first/norm/population_mean'):
    _NET.to_keras(params)
  with pytest.raises(ValueError, match='has first/norm/population_mean'):
    _NET.apply({**params, **statistics}, x)


def test_statistics_are_no_parameters():
  assert _NET.mixes_examples
  assert set(_NET.specs).isdisjoint(_NET.statistics)
  assert _NET.num_parameters == 4 * 3 + 3 * 3 + 2 * 2 * 3
  for name, value in _NET.init_statistics().items():
    np.testing.assert_array_equal(value, float(name.endswith('square')))
  assert population.batch_norm_names(_NET) == tuple(
    f'{layer}/norm/{name}'
    for names in (('gamma', 'beta'), ('population_mean', 'population_square'))
    for layer in ('first', 'second')
    for name in names
  )


def test_population_of_parts_is_that_of_the_union_in_the_first_layer():
  params, _ = _params()
  x = _inputs(11)
  parts = [population.statistics(_NET, params, part) for part in (x[:3], x[3:])]
  union = population.statistics(_NET, params, x)
  for name in ('first/norm/population_mean', 'first/norm/population_square'):
    mean = (3 * parts[0][name] + 8 * parts[1][name]) / 11
    np.testing.assert_allclose(mean, union[name], rtol=1e-12)
  # And of an empty part nothing: it counts zero.
  for value in population.statistics(_NET, params, x[:0]).values():
    np.testing.assert_array_equal(value, 0.0)


def test_population_is_the_mean_of_batches_by_examples():
  params, _ = _params()
  x = _inputs(7)
  got = tf.function(population.statistics, autograph=False)(
    _NET, params, tf.constant(10 * x), lambda batch: batch / 10, batch_size=3
  )
  batches = [(x[:3], 3), (x[3:6], 3), (x[6:], 1)]
  found = [(_numpy_forward(params, batch)[1], n) for batch, n in batches]
  for name, value in got.items():
    expected = sum(n * moments[name] for moments, n in found) / 7
    np.testing.assert_allclose(value, expected, rtol=1e-9)


def test_heads_are_normalized_like_their_encoder():
  assert projector.like(_NET) == 'batch'
  assert projector.like(projector.build_projector(4, (8, 2))) == 'group'
