"""Tests of dense layers and attention on tensors, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import numpy_transformer
from tff_ssl.encoders import compute
from tff_ssl.encoders import network
from tff_ssl.encoders import resnet


@pytest.mark.parametrize('shape', [(3, 4), (3, 5, 4), (3, 2, 5, 4)])
@pytest.mark.parametrize('use_bias', [True, False])
def test_dense_multiplies_the_last_axis(shape, use_bias):
  rng = np.random.default_rng(0)
  x, kernel, bias = rng.normal(size=shape), rng.normal(size=(4, 6)), rng.normal(size=6)
  got = compute.dense(tf.constant(x), kernel, bias if use_bias else None)
  expected = np.einsum('...i,io->...o', x, kernel) + (bias if use_bias else 0)
  np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('heads', [1, 2, 6])
def test_attention_is_numpys(heads):
  net = network.Network(
    'attention', (5, 6), lambda ops, x: ops.attention(x, 'attention', heads=heads)
  )
  params = numpy_transformer.random_params(net.specs)
  x = np.random.default_rng(1).normal(size=(3, 5, 6))
  expected = numpy_transformer.attention(params, 'attention', x, heads)
  np.testing.assert_allclose(net.apply(params, x), expected, rtol=1e-10, atol=1e-12)


def test_heads_that_do_not_divide_the_units_are_refused():
  net = network.Network(
    'attention', (5, 6), lambda ops, x: ops.attention(x, 'mixing', heads=4)
  )
  with pytest.raises(ValueError, match='heads of mixing must divide 6, got 4'):
    net.specs  # noqa: B018


def test_an_offset_has_the_shape_of_an_example():
  values = np.zeros((5, 4))
  net = network.Network('offset', (5, 6), lambda ops, x: ops.offset(x, 'add', values))
  with pytest.raises(ValueError, match=r"offset 'add' needs values of shape \(5, 6\)"):
    net.specs  # noqa: B018


@pytest.mark.parametrize('n', [0, 3])
@pytest.mark.parametrize(
  ('sides', 'strides'), [((4, 6), 2), ((5, 4), 2), ((6, 9), 3), ((4, 4), 1)]
)
def test_strided_positions_and_their_gradient_are_numpys(n, sides, strides):
  rng = np.random.default_rng(0)
  x = tf.constant(rng.normal(size=(n, *sides, 2)))
  with tf.GradientTape() as tape:
    tape.watch(x)
    got = compute.strided(x, strides)
  expected = x.numpy()[:, ::strides, ::strides]
  np.testing.assert_array_equal(got, expected)
  dy = rng.normal(size=expected.shape)
  dx = np.zeros(x.shape)
  dx[:, ::strides, ::strides] = dy
  gradient = tape.gradient(got, x, output_gradients=tf.constant(dy))
  np.testing.assert_array_equal(gradient, dx)


# Of channels below and above those whose strides oneDNN cannot have.
@pytest.mark.parametrize('channels', [8, 16])
@pytest.mark.parametrize('sides', [(5, 4), (6, 4)])
def test_a_kernel_of_one_with_a_stride_sees_every_second_position(channels, sides):
  net = network.Network(
    'shortcut',
    (*sides, channels),
    lambda ops, x: ops.conv2d(
      x, 'conv', filters=6, kernel_size=1, strides=2, use_bias=False
    ),
  )
  rng = np.random.default_rng(0)
  kernel = rng.normal(size=(1, 1, channels, 6))
  x = rng.normal(size=(3, *sides, channels))
  got = net.apply({'conv/kernel': tf.constant(kernel)}, tf.constant(x))
  np.testing.assert_allclose(got, x[:, ::2, ::2] @ kernel[0, 0], rtol=1e-12)


def test_no_kernel_of_one_has_a_stride_that_crashes():
  """With several threads, the gradient of 8 to 16 channels ended in a double free."""
  encoder = resnet.build_encoder('resnet8', image_shape=(8, 8, 3), width=0.5)

  @tf.function(autograph=False)
  def gradient(params, images):
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss = tf.reduce_sum(encoder.apply(params, images))
    return tape.gradient(loss, params)

  params = encoder.init(tf.constant([0, 1], tf.int32))
  graph = gradient.get_concrete_function(params, tf.zeros([3, 8, 8, 3])).graph
  gradients = [
    operation
    for operation in graph.get_operations()
    if operation.type == 'Conv2DBackpropFilter'
  ]
  kernels = [operation.outputs[0].shape.as_list() for operation in gradients]
  assert [1, 1, 8, 16] in kernels and [3, 3, 8, 16] in kernels
  for operation, kernel in zip(gradients, kernels, strict=True):
    if kernel[:2] == [1, 1] and kernel[2] < 16:
      assert list(operation.get_attr('strides')) == [1, 1, 1, 1]
