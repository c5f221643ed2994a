"""Tests of the norms and of weight standardization against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import network
from tff_ssl.encoders.operations import batch_normalization
from tff_ssl.encoders.operations import group_normalization
from tff_ssl.encoders.operations import kernels


def _numpy_group_norm(x, gamma, beta, groups):
  """The definition, group by group."""
  out = np.empty_like(x)
  size = x.shape[-1] // groups
  for i in range(len(x)):
    for g in range(groups):
      part = x[i, ..., g * size : (g + 1) * size]
      out[i, ..., g * size : (g + 1) * size] = (part - part.mean()) / np.sqrt(
        part.var() + 1e-5
      )
  return out * gamma + beta


def _numpy_standardize(kernel):
  """The definition, with variance 1 / fan_in."""
  flat = kernel.reshape(-1, kernel.shape[-1])
  centred = flat - flat.mean(0)
  return (centred / np.sqrt((centred**2).sum(0) + 1e-5)).reshape(kernel.shape)


def _directional_second_difference(gradient, x, direction, step=1e-5):
  plus, minus = gradient(x + step * direction), gradient(x - step * direction)
  return (plus - minus) / (2 * step)


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


@pytest.mark.parametrize(('channels', 'positions'), [(1, 1), (7, 1), (1, 7), (2, 3)])
def test_few_values_are_refused(channels, positions):
  """Of one value nothing is left but 0, of two their order, whatever they are."""
  message = f'values per example is {channels * positions} .*; it must be at least 8'
  with pytest.raises(ValueError, match=message):
    group_normalization.num_groups(channels, positions, 32)
  one = group_normalization.group_norm(tf.constant([[2.0], [-7.0]]), [1.0], [0.5], 1)
  np.testing.assert_array_equal(one, [[0.5], [0.5]])


@pytest.mark.parametrize('kind', ['group', 'layer'])
def test_a_network_names_its_layer_with_few_values(kind):
  def forward(ops, x):
    with ops.scope('block'):
      if kind == 'group':
        return ops.group_norm(x, 'norm', groups=1)
      return ops.layer_norm(x, 'norm')

  with pytest.raises(
    ValueError, match='block/norm: the number of values per example is 7'
  ):
    network.Network('narrow', (7,), forward).specs  # noqa: B018


@pytest.mark.parametrize(
  ('shape', 'groups'),
  [
    ((3, 4, 5, 6), 3),
    ((2, 3, 4, 32), 4),
    ((2, 5, 4, 16), 2),
    ((5, 8), 2),
    ((2, 7, 6), 2),
  ],
)
@pytest.mark.parametrize(
  ('dtype', 'tolerance'), [('float64', 1e-12), ('float32', 1e-5)]
)
def test_group_norm_is_numpys(shape, groups, dtype, tolerance):
  rng = np.random.default_rng(0)
  x = rng.normal(1.0, 2.0, shape)
  gamma, beta = rng.normal(size=(2, shape[-1]))
  got = group_normalization.group_norm(
    tf.constant(x, dtype), tf.constant(gamma, dtype), tf.constant(beta, dtype), groups
  )
  expected = _numpy_group_norm(x, gamma, beta, groups)
  np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize('shape', [(5, 8), (3, 4, 8), (0, 4, 8)])
def test_layer_norm_is_numpys(shape):
  rng = np.random.default_rng(0)
  x, (gamma, beta) = rng.normal(1.0, 2.0, shape), rng.normal(size=(2, 8))
  got = group_normalization.layer_norm(*map(tf.constant, (x, gamma, beta)))
  mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
  expected = (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta
  np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


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
  norm = {
    'group': lambda *given: group_normalization.group_norm(*given, groups['group']),
    'layer': group_normalization.layer_norm,
    'batch': lambda *given: batch_normalization.batch_norm(*given)[0],
  }[kind]
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
  np.testing.assert_allclose(
    tape.gradient(slope, inputs[0]),
    _directional_second_difference(gradient, arrays[0], direction),
    rtol=1e-6,
    atol=1e-6,
  )


@pytest.mark.parametrize('narrow', [32, 0])
def test_group_norm_derivatives_are_finite_differences(narrow, monkeypatch):
  monkeypatch.setattr(group_normalization, 'NARROW', narrow)
  rng = np.random.default_rng(1)
  x, target, direction = rng.normal(size=(3, 2, 3, 3, 4))
  gamma, beta = rng.normal(size=(2, 4))

  def loss(x, gamma, beta):
    y = group_normalization.group_norm(x, gamma, beta, 2)
    return tf.reduce_sum(tf.square(y) * target)

  _check_derivatives(loss, (x, gamma, beta), direction)


@pytest.mark.parametrize('value', [0.0, 0.7, -1e5 / 3])
def test_group_norm_of_equal_values_is_beta(value):
  x = tf.fill([2, 7, 5, 8], value)
  dy = np.random.default_rng(0).normal(size=x.shape).astype('float32')
  with tf.GradientTape() as tape:
    tape.watch(x)
    y = group_normalization.group_norm(x, tf.ones([8]), tf.fill([8], 3.0), 4)
  np.testing.assert_array_equal(y, np.full(x.shape, 3.0))
  # Without variance only the epsilon is left, and the mean of dy is taken away.
  grouped = dy.astype('float64').reshape(2, 7, 5, 4, 2)
  expected = (grouped - grouped.mean((1, 2, 4), keepdims=True)) / np.sqrt(1e-5)
  dx = tape.gradient(y, x, output_gradients=tf.constant(dy))
  np.testing.assert_allclose(dx, expected.reshape(x.shape), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize('shape', [(3, 3, 2, 4), (5, 3)])
def test_standardize_is_numpys_with_unit_columns(shape):
  kernel = np.random.default_rng(2).normal(0.5, 0.3, shape)
  got = kernels.standardize(tf.constant(kernel)).numpy()
  np.testing.assert_allclose(got, _numpy_standardize(kernel), rtol=1e-12)
  flat = got.reshape(-1, shape[-1])
  np.testing.assert_allclose(flat.mean(0), 0.0, atol=1e-12)
  np.testing.assert_allclose((flat**2).sum(0), 1.0, rtol=1e-4)


def test_standardize_derivatives_are_finite_differences():
  rng = np.random.default_rng(3)
  kernel, target, direction = rng.normal(size=(3, 3, 3, 2, 2))

  def gradient(kernel):
    kernel = tf.convert_to_tensor(kernel)
    with tf.GradientTape() as tape:
      tape.watch(kernel)
      loss = tf.reduce_sum(kernels.standardize(kernel) ** 2 * target)
    return tape.gradient(loss, kernel)

  theory, numeric = tf.test.compute_gradient(
    lambda w: tf.reduce_sum(kernels.standardize(w) ** 2 * target),
    [tf.constant(kernel)],
    delta=1e-5,
  )
  np.testing.assert_allclose(theory[0], numeric[0], rtol=1e-6, atol=1e-8)
  start = tf.constant(kernel)
  with tf.GradientTape() as tape:
    tape.watch(start)
    slope = tf.reduce_sum(gradient(start) * direction)
  np.testing.assert_allclose(
    tape.gradient(slope, start),
    _directional_second_difference(gradient, kernel, direction),
    rtol=1e-6,
    atol=1e-8,
  )


def _numpy_batch_norm(x, gamma, beta):
  """The definition, channel by channel."""
  rows = x.reshape(-1, x.shape[-1])
  mean, variance = rows.mean(0), rows.var(0)
  return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


@pytest.mark.parametrize('shape', [(6, 4, 5, 3), (6, 8), (1, 3, 3, 2)])
@pytest.mark.parametrize(
  ('dtype', 'tolerance'), [('float64', 1e-11), ('float32', 1e-4)]
)
def test_batch_norm_is_numpys(shape, dtype, tolerance):
  rng = np.random.default_rng(0)
  x = rng.normal(1.0, 2.0, shape)
  gamma, beta = rng.normal(size=(2, shape[-1]))
  given = [tf.constant(value, dtype) for value in (x, gamma, beta)]
  y, mean, square = batch_normalization.batch_norm(*given)
  expected = _numpy_batch_norm(x, gamma, beta)
  np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)
  rows = x.reshape(-1, shape[-1])
  np.testing.assert_allclose(mean, rows.mean(0), rtol=tolerance)
  np.testing.assert_allclose(square, (rows**2).mean(0), rtol=tolerance)
  # By the same moments as a population's, each example is treated by itself.
  one = batch_normalization.by_moments(given[0][:1], *given[1:], mean, square)
  np.testing.assert_allclose(one, expected[:1], rtol=tolerance, atol=tolerance)


def test_batch_norm_of_two_batches_is_that_of_each():
  rng = np.random.default_rng(1)
  x = rng.normal(size=(8, 3, 2))
  gamma, beta = rng.normal(size=(2, 2))
  y, mean, _ = batch_normalization.batch_norm(
    *map(tf.constant, (x, gamma, beta)), batches=2
  )
  expected = [_numpy_batch_norm(half, gamma, beta) for half in (x[:4], x[4:])]
  np.testing.assert_allclose(y, np.concatenate(expected), rtol=1e-10, atol=1e-12)
  np.testing.assert_allclose(mean, x.mean((0, 1)), rtol=1e-10)


@pytest.mark.parametrize('narrow', [32, 0])
@pytest.mark.parametrize(
  ('shape', 'batches'), [((4, 3, 3, 2), 2), ((6, 2), 2), ((7, 2), 1)]
)
def test_batch_norm_derivatives_are_finite_differences(
  shape, batches, narrow, monkeypatch
):
  """Of the moments, too."""
  monkeypatch.setattr(group_normalization, 'NARROW', narrow)
  rng = np.random.default_rng(2)
  x, target, direction = rng.normal(size=(3, *shape))
  gamma, beta = rng.normal(size=(2, 2))

  def loss(x, gamma, beta):
    y, mean, square = batch_normalization.batch_norm(x, gamma, beta, batches=batches)
    moments = tf.reduce_sum(tf.sin(3 * mean) + tf.cos(2 * square))
    return tf.reduce_sum(tf.square(y) * target) + moments

  _check_derivatives(loss, (x, gamma, beta), direction)


def test_batch_norm_of_one_example_is_beta_with_finite_gradient():
  x = tf.constant([[0.3, 0.7]])
  with tf.GradientTape() as tape:
    tape.watch(x)
    y, _, _ = batch_normalization.batch_norm(x, tf.ones([2]), tf.fill([2], 3.0))
  np.testing.assert_allclose(y, 3.0, atol=1e-3)
  assert np.isfinite(tape.gradient(y, x)).all()
