"""Tests of dense layers and attention on tensors, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import numpy_transformer
from tests.encoders import traced_step
from tests.oracles import layers
from tff_ssl.encoders import network
from tff_ssl.encoders import registry
from tff_ssl.encoders.operations import convolution


@pytest.mark.parametrize('n', [0, 3])
@pytest.mark.parametrize(
  ('sides', 'strides'), [((4, 6), 2), ((5, 4), 2), ((6, 9), 3), ((4, 4), 1)]
)
def test_strided_positions_and_their_gradient_are_numpys(n, sides, strides):
  rng = np.random.default_rng(0)
  x = tf.constant(rng.normal(size=(n, *sides, 2)))
  with tf.GradientTape() as tape:
    tape.watch(x)
    got = convolution.strided(x, strides)
  expected = x.numpy()[:, ::strides, ::strides]
  np.testing.assert_array_equal(got, expected)
  dy = rng.normal(size=expected.shape)
  dx = np.zeros(x.shape)
  dx[:, ::strides, ::strides] = dy
  gradient = tape.gradient(got, x, output_gradients=tf.constant(dy))
  np.testing.assert_array_equal(gradient, dx)


def test_no_kernel_of_one_has_a_stride_that_crashes():
  """With several threads, the gradient of 8 to 16 channels ended in a double free."""
  encoder = registry.build_encoder('resnet8', (8, 8, 3), 0.5)
  params = encoder.init(tf.constant([0, 1], tf.int32))
  gradients = [
    operation
    for operation in traced_step.operations(encoder, params, tf.zeros([3, 8, 8, 3]))
    if operation.type == 'Conv2DBackpropFilter'
  ]
  kernels = [operation.outputs[0].shape.as_list() for operation in gradients]
  assert [1, 1, 8, 16] in kernels and [3, 3, 8, 16] in kernels
  for operation, kernel in zip(gradients, kernels, strict=True):
    if kernel[:2] == [1, 1] and kernel[2] < 16:
      assert list(operation.get_attr('strides')) == [1, 1, 1, 1]


def _depthwise(params, x, strides):
  return layers.depthwise(x, params['op/depthwise_kernel'], strides) + params['op/bias']


_AROUND = [(0, 0), (1, 1), (1, 1), (0, 0)]
# name -> (the operation, the same in NumPy of parameters and an input).
_REFERENCES = {
  'depthwise 3': (
    lambda ops, x: ops.depthwise_conv2d(x, 'op', kernel_size=3, use_bias=True),
    lambda params, x: _depthwise(params, x, 1),
  ),
  'depthwise 2, strides 2': (
    lambda ops, x: ops.depthwise_conv2d(
      x, 'op', kernel_size=2, strides=2, use_bias=True
    ),
    lambda params, x: _depthwise(params, x, 2),
  ),
  'depthwise 7, wider than the image': (
    lambda ops, x: ops.depthwise_conv2d(x, 'op', kernel_size=7, use_bias=True),
    lambda params, x: _depthwise(params, x, 1),
  ),
  'average_pool': (
    lambda ops, x: ops.average_pool(x, size=3, strides=2),
    lambda _, x: layers.average_pool(x, 3, 2),
  ),
  'max_pool': (
    lambda ops, x: ops.max_pool(x, size=3, strides=2),
    lambda _, x: layers.max_pool(x, 3, 2),
  ),
  'depthwise 3, strides 2, inside zeros': (
    lambda ops, x: ops.depthwise_conv2d(
      ops.zero_pad(x, 1), 'op', kernel_size=3, strides=2, padding='valid', use_bias=True
    ),
    lambda params, x: _depthwise(params, np.pad(x, _AROUND), 1)[:, 1:-1:2, 1:-1:2],
  ),
  'max_pool inside': (
    lambda ops, x: ops.max_pool(x, size=3, strides=1, padding='valid'),
    lambda _, x: layers.max_pool(x, 3, 1)[:, 1:-1, 1:-1],
  ),
  'rescale': (
    lambda ops, x: ops.rescale(x, (1.0, 2.0, 4.0), (0.5, 0.25, 0.125)),
    lambda _, x: x * [1.0, 2.0, 4.0] + [0.5, 0.25, 0.125],
  ),
  'repeat_channels': (
    lambda ops, x: ops.repeat_channels(x, 2),
    lambda _, x: np.tile(x, [1, 1, 1, 2]),
  ),
  'prefix': (
    lambda ops, x: ops.prefix(ops.tokens(x), 'op', count=2),
    lambda params, x: np.concatenate(
      [np.tile(params['op/tokens'], [len(x), 1, 1]), x.reshape(len(x), 20, 3)], 1
    ),
  ),
  'positions': (
    lambda ops, x: ops.positions(ops.tokens(x), 'op'),
    lambda params, x: x.reshape(len(x), 20, 3) + params['op/bias'],
  ),
  'crop_tokens': (
    lambda ops, x: ops.crop_tokens(ops.tokens(x), 2, 5),
    lambda _, x: x.reshape(len(x), 20, 3)[:, 2:7],
  ),
  'layer_scale': (
    lambda ops, x: ops.layer_scale(x, 'op', initial=0.1),
    lambda params, x: x * params['op/kernel'],
  ),
  'layer_scale of tokens': (
    lambda ops, x: ops.layer_scale(ops.tokens(x), 'op'),
    lambda params, x: x.reshape(len(x), 20, 3) * params['op/kernel'],
  ),
}


@pytest.mark.parametrize('n', [0, 2])
@pytest.mark.parametrize('name', _REFERENCES)
def test_operations_match_numpy(name, n):
  forward, reference = _REFERENCES[name]
  net = network.Network('op', (5, 4, 3), forward)
  params = numpy_transformer.random_params(net.specs)
  x = np.random.default_rng(1).normal(size=(n, 5, 4, 3))
  expected = reference(params, x)
  assert net._description[1] == expected.shape[1:]
  np.testing.assert_allclose(net.apply(params, x), expected, rtol=1e-10, atol=1e-12)
  if n:
    model = net.to_keras(params)
    # A network without parameters is exported in float32.
    np.testing.assert_allclose(model(x), expected, rtol=1e-6, atol=1e-6)


def test_initial_values_of_depthwise_kernels_and_layer_scales():
  def forward(ops, x):
    x = ops.depthwise_conv2d(x, 'conv', kernel_size=5, gain=1.0)
    return ops.layer_scale(x, 'scale', initial=0.25)

  params = network.Network('initial', (6, 6, 400), forward).init([1, 2])
  kernel = params['conv/depthwise_kernel'].numpy()
  assert kernel.var() == pytest.approx(1 / 25, rel=0.05)
  np.testing.assert_array_equal(params['scale/kernel'], np.full(400, 0.25))


@pytest.mark.parametrize(
  'name',
  ['depthwise 3', 'average_pool', 'layer_scale', 'prefix', 'positions', 'rescale'],
)
def test_operations_in_bfloat16_keep_its_type(name):
  net = network.Network('op', (5, 4, 3), _REFERENCES[name][0])
  params = net.init([1, 2])
  x = tf.random.stateless_uniform([2, 5, 4, 3], [0, 1])
  half = net.with_precision('bfloat16').apply(params, x)
  np.testing.assert_allclose(half, net.apply(params, x), atol=0.02)
