"""Norms of maps in bfloat16: equal to float64 references, in few passes."""

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import traced_step
from tff_ssl.encoders import network
from tff_ssl.encoders import registry
from tff_ssl.encoders.operations import batch_normalization
from tff_ssl.encoders.operations import group_normalization

# What rounding to 8 bits changes a number by at most, of its size.
ROUNDING = 2.0**-8
SHAPE = (6, 4, 5, 16)


def whole(rng, shape):
  """Returns numbers that bfloat16 has without error, of mean 3."""
  return rng.integers(-20, 21, shape) / 8 + 3.0


def reference(x, gamma, beta, other, axes, rectified):
  """Returns the norm of grouped maps by float64 operations that TensorFlow derives."""
  centred = x - tf.reduce_mean(x, axes, keepdims=True)
  variance = tf.reduce_mean(tf.square(centred), axes, keepdims=True)
  y = tf.reshape(centred / tf.sqrt(variance + 1e-5), SHAPE) * gamma + beta
  y += 0.0 if other is None else other
  return tf.nn.relu(y) if rectified else y


NORMS = {
  'group': (
    lambda *args, **behind: group_normalization.group_norm(*args, 4, **behind),
    (6, 20, 4, 4),
    (1, 3),
  ),
  'groups of eight': (
    lambda *args, **behind: group_normalization.group_norm(*args, 2, **behind),
    (6, 20, 2, 8),
    (1, 3),
  ),
  'batch': (
    lambda *args, **behind: batch_normalization.batch_norm(*args, **behind)[0],
    (1, 120, 16, 1),
    (1,),
  ),
  'two batches': (
    lambda *args, **behind: batch_normalization.batch_norm(*args, 2, **behind)[0],
    (2, 60, 16, 1),
    (1,),
  ),
}


@pytest.mark.parametrize('rectified', [False, True])
@pytest.mark.parametrize('with_other', [False, True])
@pytest.mark.parametrize('name', NORMS)
def test_norm_sum_and_relu_equal_float64(name, with_other, rectified):
  norm, grouped, axes = NORMS[name]
  rng = np.random.default_rng(0)
  gamma, beta = rng.uniform(0.5, 2.0, 16), rng.normal(size=16)
  args = [whole(rng, SHAPE), gamma, beta, *([whole(rng, SHAPE)] * with_other)]
  direction = tf.constant(whole(rng, SHAPE))

  def gradients(function, values):
    with tf.GradientTape() as tape:
      tape.watch(values)
      y = function(*values)
      loss = tf.reduce_sum(tf.cast(y, tf.float64) * direction)
    return y, tape.gradient(loss, values)

  exact = [tf.constant(value) for value in args]
  y, expected = gradients(
    lambda x, gamma, beta, other=None: reference(
      tf.reshape(x, grouped), gamma, beta, other, axes, rectified
    ),
    exact,
  )
  types = [tf.bfloat16, tf.float32, tf.float32, tf.bfloat16]
  half = [tf.cast(value, each) for value, each in zip(exact, types, strict=False)]
  found, derived = gradients(
    lambda x, gamma, beta, other=None: norm(
      x, gamma, beta, other=other, rectified=rectified
    ),
    half,
  )
  assert found.dtype == tf.bfloat16
  np.testing.assert_allclose(tf.cast(found, tf.float64), y, rtol=ROUNDING, atol=1e-6)
  for value, correct, arg in zip(derived, expected, half, strict=True):
    assert value.dtype == arg.dtype
    error = np.linalg.norm(tf.cast(value, tf.float64) - correct)
    # The result is rounded in maps, and nothing is in sums.
    limit = 1e-5 if value.dtype == tf.float32 else ROUNDING
    assert error < limit * np.linalg.norm(correct)


def test_moments_of_batches_in_half_precision_and_their_gradient_equal_float64():
  rng = np.random.default_rng(1)
  x = whole(rng, SHAPE)
  weights = rng.normal(size=[2, 16])
  half = tf.constant(x, tf.bfloat16)
  with tf.GradientTape() as tape:
    tape.watch(half)
    _, mean, square = batch_normalization.batch_norm(
      half, tf.ones([16]), tf.zeros([16]), 2
    )
    loss = tf.reduce_sum(mean * weights[0] + square * weights[1])
  np.testing.assert_allclose(mean, x.mean((0, 1, 2)), rtol=1e-6)
  np.testing.assert_allclose(square, (x**2).mean((0, 1, 2)), rtol=1e-6)
  expected = (weights[0] + 2 * x * weights[1]) / 120
  # The gradient is a sum of two terms, rounded once.
  np.testing.assert_allclose(
    tf.cast(tape.gradient(loss, half), tf.float64), expected, rtol=ROUNDING, atol=1e-6
  )


def test_a_derivative_in_half_precision_can_be_differentiated():
  rng = np.random.default_rng(2)
  x = whole(rng, SHAPE)

  def second(values, dtype):
    values, gamma = tf.constant(values, dtype), tf.fill([16], 1.5)
    gamma = gamma if dtype == tf.bfloat16 else tf.cast(gamma, dtype)
    with tf.GradientTape() as outer:
      outer.watch(gamma)
      with tf.GradientTape() as inner:
        inner.watch(values)
        y = group_normalization.group_norm(values, gamma, 0 * gamma, 4)
        loss = tf.reduce_sum(tf.cast(y, gamma.dtype) ** 3)
      slope = tf.cast(inner.gradient(loss, values), gamma.dtype)
      value = tf.reduce_sum(slope**2)
    return outer.gradient(value, gamma)

  expected = second(x, tf.float64)
  np.testing.assert_allclose(second(x, tf.bfloat16), expected, rtol=20 * ROUNDING)


def test_what_waits_is_added_to_any_number_of_times_and_read_as_it_was():
  def forward(ops, x):
    y = ops.group_norm(x, 'norm', groups=4)
    rectified = ops.relu(y)
    z = ops.relu(ops.add(ops.add(y, x), rectified))
    return ops.global_average_pool(ops.add(z, y))

  net = network.Network('sums', SHAPE[1:], forward)
  params = net.init([0, 1])
  x = tf.random.stateless_normal(SHAPE, [0, 1])
  half = net.with_precision('bfloat16').apply(params, x)
  np.testing.assert_allclose(half, net.apply(params, x), atol=6 * ROUNDING)


def _passes(net, params, x):
  """Returns the kinds of operations that read or write a map in a training step."""

  def is_of_maps(op):
    values = [*op.inputs, *op.outputs]
    return any(value.shape.rank == 4 and value.shape[0] == len(x) for value in values)

  return [op for op in traced_step.operations(net, params, x) if is_of_maps(op)]


def test_a_block_takes_four_passes_for_each_norm_and_no_map_in_float32():
  # Two convolutions, their norms, the sum with the input and two relus.
  def forward(ops, x):
    y = x
    for index in (1, 2):
      y = ops.conv2d(y, f'conv{index}', filters=16, kernel_size=3)
      y = ops.group_norm(y, f'norm{index}', groups=4)
      y = ops.relu(ops.add(y, x) if index == 2 else y)
    return ops.global_average_pool(y)

  net = network.Network('block', SHAPE[1:], forward)
  x = tf.zeros(SHAPE)
  found = _passes(net.with_precision('bfloat16'), net.init([0, 1]), x)
  kinds = [op.type for op in found]
  assert sum('PartitionedCall' in kind for kind in kinds) == 2 * 4
  assert not {'Relu', 'AddV2', 'Sub', 'Square', 'Rsqrt'} & set(kinds)
  wide = {
    op.type
    for op in found
    for value in op.outputs
    if value.dtype == tf.float32 and value.shape.rank == 4
  }
  # The images, and what the mean over positions behind the block needs.
  assert wide <= {'Placeholder', 'Cast', 'RealDiv', 'Reshape', 'Tile'}, wide


@pytest.mark.parametrize('normalization', ['group', 'batch'])
def test_sizes_of_a_batch_that_are_known_only_in_a_step(normalization):
  encoder = registry.build_encoder(
    'resnet8', (8, 8, 3), 0.25, normalization=normalization
  ).with_precision('bfloat16')
  params = encoder.init([0, 1])
  apply = tf.function(
    encoder.apply,
    autograph=False,
    input_signature=[
      {name: tf.TensorSpec(value.shape) for name, value in params.items()},
      tf.TensorSpec([None, 8, 8, 3]),
    ],
  )
  x = tf.random.stateless_uniform([3, 8, 8, 3], [0, 1])
  assert apply(dict(params), x[:0]).shape == (0, encoder.output_dim)
  for rows in (1, 3):
    np.testing.assert_allclose(
      apply(dict(params), x[:rows]),
      encoder.apply(params, x[:rows]),
      rtol=0.02,
      atol=0.02,
    )
