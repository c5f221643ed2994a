"""Training in bfloat16: near float32, and float32 where numbers are summed."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import traced_step
from tff_ssl.encoders import network
from tff_ssl.encoders import precision
from tff_ssl.encoders import registry
from tff_ssl.encoders.operations import elementwise
from tff_ssl.encoders.operations import group_normalization
from tff_ssl.encoders.operations import kernels

# What rounding to 8 bits changes a number by at most, of its size.
ROUNDING = 2.0**-9
# Encoders, the shape of an example, and how many roundings lie one behind the other on
# the way to their features: of kernel, product and norm in each layer.
ENCODERS = {
  'resnet8 group': ({'normalization': 'group'}, (16, 16, 3), 3 * 7),
  'resnet8 batch': ({'normalization': 'batch'}, (16, 16, 3), 3 * 7),
  'conv2': ({'width': 0.25}, (16, 16, 3), 3 * 2),
  'vit_micro': ({'patch_size': 4}, (16, 16, 3), 3 * 4 * 4),
  'mlp': ({}, (20,), 3 * 2),
}


def both(encoder, rows=8):
  """Returns output and gradients of one batch, in float32 and in bfloat16."""
  rng = np.random.default_rng(0)
  x = tf.constant(rng.uniform(size=[rows, *encoder.input_shape]), tf.float32)
  direction = tf.constant(rng.normal(size=[rows, encoder.output_dim]), tf.float32)
  params = encoder.init([3, 4])
  found = []
  for each in network.PRECISIONS:
    with tf.GradientTape() as tape:
      tape.watch(params)
      y = encoder.with_precision(each).apply(params, x)
      loss = tf.reduce_sum(y * direction)
    found.append((y, tape.gradient(loss, params)))
  return found


def cosine(a, b):
  a, b = (np.concatenate([np.ravel(x) for x in nest.values()]) for nest in (a, b))
  return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def distance(a, b):
  return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize('name', ENCODERS)
def test_features_and_gradients_are_near_those_of_float32(name):
  given, shape, depth = ENCODERS[name]
  encoder = registry.build_encoder(name.split()[0], shape, **given)
  (y, gradients), (half, half_gradients) = both(encoder)
  assert half.dtype == tf.float32
  assert {gradient.dtype for gradient in half_gradients.values()} == {tf.float32}
  # Errors of one size and of either sign grow as a random walk; thrice its deviation.
  # And there are some: it is computed in 8 bits.
  assert ROUNDING / 8 < distance(half, y) < 3 * ROUNDING * depth**0.5
  # A relu whose input is near 0 passes a gradient in one and none in the other.
  assert 0.95 < cosine(gradients, half_gradients) < 1 - 1e-6
  # Inference is in bfloat16 only where it is asked to be.
  x = np.random.default_rng(0).uniform(size=[8, *shape]).astype(np.float32)
  params = {**encoder.init([3, 4]), **encoder.init_statistics()}
  y = encoder.infer(params, x)
  np.testing.assert_array_equal(encoder.with_precision('bfloat16').infer(params, x), y)
  half = encoder.infer(params, x, precision='bfloat16')
  assert half.dtype == tf.float32
  assert ROUNDING / 8 < distance(half, y) < 3 * ROUNDING * depth**0.5


@pytest.mark.long_for('resnet50')
@pytest.mark.parametrize(
  ('name', 'given'), [('resnet18', {'width': 0.25}), ('resnet50', {'width': 0.125})]
)
def test_deep_networks_move_as_by_weights_that_are_rounded(name, given):
  # An untrained ResNet-50 of group norm makes a difference of 0.1 % one of 20 %,
  # whatever it comes from: weights and images, perturbed by so much in float32.
  encoder = registry.build_encoder(name, (16, 16, 3), **given)
  (y, _), (half, gradients) = both(encoder)
  rng = np.random.default_rng(1)

  def rounded(value):
    return value * (1 + ROUNDING * rng.uniform(-1, 1, np.shape(value)))

  x = np.random.default_rng(0).uniform(size=[8, 16, 16, 3])
  params = {key: rounded(value.numpy()) for key, value in encoder.init([3, 4]).items()}
  moved = tf.cast(encoder.apply(params, rounded(x)), tf.float32)
  assert distance(half, y) < 3 * distance(moved, y)
  assert all(np.all(np.isfinite(gradient)) for gradient in gradients.values())


def test_the_moments_of_batch_norm_are_those_of_float32():
  encoder = registry.build_encoder('conv2', (8, 8, 3), 0.25, normalization='batch')
  x = np.random.default_rng(3).uniform(size=[4, 8, 8, 3]).astype(np.float32)
  params, half = encoder.init([1, 2]), encoder.with_precision('bfloat16')
  for name, value in encoder.moments(params, x).items():
    np.testing.assert_array_equal(half.moments(params, x)[name], value)
  whole = {**params, **encoder.moments(params, x)}
  np.testing.assert_array_equal(half.infer(whole, x), encoder.infer(whole, x))


@pytest.mark.parametrize('shape', [(16384, 4), (16, 32, 32, 4)])
def test_the_gradient_of_a_bias_is_not_a_sum_of_8_bits(shape):
  bias = tf.zeros([4])
  with tf.GradientTape() as tape:
    tape.watch(bias)
    y = kernels.with_bias(tf.zeros(shape, tf.bfloat16), bias)
    loss = tf.reduce_sum(tf.cast(y, tf.float32))
  assert y.dtype == tf.bfloat16
  # 16,384 rows; a sum of ones in bfloat16 ends at 256.
  np.testing.assert_array_equal(tape.gradient(loss, bias), [16384.0] * 4)


@pytest.mark.parametrize(
  ('dtype', 'relative', 'absolute'),
  # Half a unit of the last of 8 bits; below -5 float32 loses up to 1e-6 of 1 - erf.
  [
    ('bfloat16', 2.0**-8, 1e-6),
    ('float32', 2.0**-21, 1e-6),
    ('float64', 2.0**-50, 1e-15),
  ],
)
def test_gelu_and_its_derivative_are_rounded_once(dtype, relative, absolute):
  # All numbers of bfloat16 from -6 to 6, but those near 0.
  bits = np.arange(0, 2**16, dtype=np.uint16)
  wide = tf.cast(tf.bitcast(bits, tf.bfloat16), tf.float64)
  wide = tf.boolean_mask(wide, (tf.abs(wide) > 2.0**-20) & (tf.abs(wide) < 6.0))
  x = tf.cast(wide, dtype)
  gelu = elementwise.Gelu()
  with tf.GradientTape() as tape:
    tape.watch(x)
    y = gelu.compute(x)
  slope = tape.gradient(y, x)
  assert y.dtype == slope.dtype == dtype
  below = 0.5 * tf.math.erfc(-wide / np.sqrt(2.0))
  density = tf.exp(-tf.square(wide) / 2.0) / np.sqrt(2.0 * np.pi)
  for found, expected in ((y, wide * below), (slope, below + wide * density)):
    found = tf.cast(found, tf.float64)
    np.testing.assert_allclose(found, expected, rtol=relative, atol=absolute)


@pytest.mark.parametrize('by_row', [False, True])
def test_layer_norm_and_its_derivative_are_rounded_once(by_row):
  rng = np.random.default_rng(5)
  shape = [3, 64, 24]
  x = tf.cast(3.0 + rng.normal(size=shape), tf.bfloat16)
  dy = tf.cast(rng.normal(size=shape), tf.bfloat16)
  factors = [192, 24] if by_row else [24]
  gamma, beta = (tf.constant(rng.normal(size=factors), tf.float32) for _ in range(2))
  norm = group_normalization.LayerNorm()
  found = []
  for dtype in (tf.bfloat16, tf.float64):
    wide = tf.float32 if dtype == tf.bfloat16 else dtype
    given = [tf.cast(x, dtype), *(tf.cast(value, wide) for value in (gamma, beta))]
    with tf.GradientTape() as tape:
      tape.watch(given)
      y = norm.compute(*given)
    gradients = tape.gradient(y, given, output_gradients=tf.cast(dy, dtype))
    assert [value.dtype for value in (y, *gradients)] == [dtype, dtype, wide, wide]
    found.append([tf.cast(value, tf.float64) for value in (y, *gradients)])
  for half, expected in zip(*found, strict=True):
    np.testing.assert_allclose(half, expected, rtol=2.0**-8, atol=1e-5)


def test_a_mean_over_positions_is_not_a_sum_of_8_bits():
  net = network.Network(
    'mean', (64, 64, 3), lambda ops, x: ops.global_average_pool(x)
  ).with_precision('bfloat16')
  # 1.25 is a bfloat16; the mean of so many is not, where each sum is rounded.
  y = net.apply({}, tf.fill([1, 64, 64, 3], 1.25))
  np.testing.assert_array_equal(y, [[1.25] * 3])


@pytest.mark.parametrize('size', [1, 2, 3])
@pytest.mark.parametrize('kernel', [1, 3, 7])
def test_strided_convolutions_of_small_maps_have_a_gradient(size, kernel):
  # Of one position oneDNN's is whatever was in memory.
  for shape in {(size, size), (size, 5), (5, size)}:
    net = network.Network(
      'conv',
      (*shape, 16),
      lambda ops, x: ops.conv2d(x, 'c', filters=8, kernel_size=kernel, strides=2),
    )
    rng = np.random.default_rng(size)
    x = tf.constant(rng.normal(size=[4, *shape, 16]), tf.float32)
    params = net.init([5, 6])
    found = []
    for each in network.PRECISIONS:
      with tf.GradientTape() as tape:
        tape.watch(params)
        loss = tf.reduce_sum(net.with_precision(each).apply(params, x))
      found.append(tape.gradient(loss, params)['c/kernel'])
    # Images and output are rounded, and what is summed of them.
    assert distance(found[1], found[0]) < 4 * ROUNDING


def _is_of_floats(op):
  return all(value.dtype.is_floating for value in [*op.inputs, *op.outputs])


@pytest.mark.long
@pytest.mark.parametrize('name', ENCODERS)
def test_without_it_a_graph_has_no_cast(name):
  given, shape, _ = ENCODERS[name]
  encoder = registry.build_encoder(name.split()[0], shape, **given)

  def kinds(net):
    found = traced_step.operations(net, net.init([0, 0]), tf.zeros([2, *shape]))
    # A size that becomes a number costs nothing.
    return {op.type for op in found if _is_of_floats(op)}

  assert 'Cast' not in kinds(encoder)
  assert 'Cast' in kinds(encoder.with_precision('bfloat16'))


def test_float64_stays_float64():
  encoder = registry.build_encoder('vit_micro', (8, 8, 3), patch_size=4)
  x = np.random.default_rng(4).uniform(size=[2, 8, 8, 3])
  y = encoder.apply(encoder.init([0, 1], tf.float64), x)
  assert y.dtype == tf.float64
  half = encoder.with_precision('bfloat16').apply(encoder.init([0, 1], tf.float64), x)
  assert half.dtype == tf.float64
  assert distance(half, y) < 3 * ROUNDING * 48**0.5


def test_parts_of_a_vision_transformer_have_its_precision():
  encoder = registry.build_encoder('vit_micro', (8, 8, 3), patch_size=4)
  half, params = encoder.with_precision('bfloat16'), encoder.init([0, 1])
  x = np.random.default_rng(4).uniform(size=[2, 8, 8, 3]).astype(np.float32)
  tokens = encoder.embed(params, x)
  for found, expected in (
    (half.embed(params, x), tokens),
    (half.encode_tokens(params, tokens), encoder.encode_tokens(params, tokens)),
  ):
    assert found.dtype == tf.float32
    assert ROUNDING / 8 < distance(found, expected) < 3 * ROUNDING * 48**0.5


def test_a_precision_stays_with_other_inputs():
  encoder = registry.build_encoder('conv2', (8, 8, 3), 0.25)
  assert encoder.precision == 'float32'
  half = encoder.with_precision('bfloat16')
  assert half.for_inputs((16, 16, 3)).reading('left').precision == 'bfloat16'


@pytest.mark.long
def test_bfloat16_sums_of_8_bits_are_reported():
  # Without oneDNN TensorFlow has the kernels of a processor without AVX-512.
  code = "from tff_ssl.encoders import precision; precision.check('bfloat16')"
  ended = subprocess.run(
    [sys.executable, '-c', code],
    env={**os.environ, 'TF_ENABLE_ONEDNN_OPTS': '0', 'TF_CPP_MIN_LOG_LEVEL': '3'},
    capture_output=True,
    text=True,
    check=False,
  )
  assert 'it must be float32 on this machine, where TensorFlow sums' in ended.stderr
  precision.check('float32')
