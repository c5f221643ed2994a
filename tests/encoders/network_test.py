"""Tests of `Network` on definitions small enough for NumPy."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry
from tff_ssl.encoders import resnet
from tff_ssl.encoders import vit


def _conv_norm_forward(ops, x):
  with ops.scope('layer'):
    x = ops.conv2d(x, 'conv', filters=8, kernel_size=3, use_bias=True, standardize=True)
    x = ops.group_norm(x, 'norm', groups=4)
    x = ops.tap(ops.relu(x), 'maps')
  return ops.global_average_pool(x)


def _conv_norm():
  return network.Network('conv_norm', (4, 5, 3), _conv_norm_forward)


def _numpy_conv_norm(params, x):
  """The same network, from the definitions of its layers, in float64."""
  kernel = params['layer/conv/kernel']
  flat = kernel.reshape(-1, 8)
  flat = flat - flat.mean(0)
  kernel = (flat / np.sqrt((flat**2).sum(0) + 1e-5)).reshape(kernel.shape)
  n, height, width, _ = x.shape
  padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
  y = np.zeros((n, height, width, 8)) + params['layer/conv/bias']
  for i in range(3):
    for j in range(3):
      y += padded[:, i : i + height, j : j + width] @ kernel[i, j]
  groups = y.reshape(n, height, width, 4, 2)
  mean = groups.mean((1, 2, 4), keepdims=True)
  variance = groups.var((1, 2, 4), keepdims=True)
  y = ((groups - mean) / np.sqrt(variance + 1e-5)).reshape(y.shape)
  y = np.maximum(y * params['layer/norm/gamma'] + params['layer/norm/beta'], 0.0)
  return y, y.mean((1, 2))


def _random_params(net, seed=0):
  rng = np.random.default_rng(seed)
  return collections.OrderedDict(
    (name, rng.normal(size=spec.shape)) for name, spec in net.specs.items()
  )


def test_apply_and_tap_are_numpys():
  net = _conv_norm()
  params = _random_params(net)
  x = np.random.default_rng(1).normal(size=(3, 4, 5, 3))
  taps = {}
  got = net.apply(params, x, taps)
  maps, expected = _numpy_conv_norm(params, x)
  np.testing.assert_allclose(got, expected, rtol=1e-10)
  assert list(taps) == ['layer/maps']
  np.testing.assert_allclose(taps['layer/maps'], maps, rtol=1e-9, atol=1e-12)
  assert net.tap_shapes == {'layer/maps': (4, 5, 8)}


def test_description():
  net = _conv_norm()
  assert net.output_dim == 8
  assert net.num_parameters == 3 * 3 * 3 * 8 + 8 + 8 + 8
  assert {name: spec.shape for name, spec in net.specs.items()} == {
    'layer/conv/kernel': (3, 3, 3, 8),
    'layer/conv/bias': (8,),
    'layer/norm/gamma': (8,),
    'layer/norm/beta': (8,),
  }


def test_init_is_a_function_of_the_seed_in_and_out_of_graphs():
  net = resnet.build_encoder('resnet8', (8, 8, 1), width=0.5)
  seed = tf.constant([3, 4], tf.int32)
  eager, again = net.init(seed), net.init([3, 4])
  graph = tf.function(net.init)(seed)
  other = net.init([3, 5])
  assert list(eager) == list(graph) == list(net.specs)
  for name, value in eager.items():
    np.testing.assert_array_equal(value, again[name])
    np.testing.assert_array_equal(value, graph[name])
    if name.endswith('kernel'):
      assert not np.array_equal(value, other[name])
  equal_shapes = [
    eager['stage1/block0/conv1/kernel'],
    eager['stage1/block0/conv2/kernel'],
  ]
  assert not np.array_equal(*equal_shapes)


def test_init_in_float64_is_the_float32_one_widened():
  net = _conv_norm()
  narrow, wide = net.init([1, 2]), net.init([1, 2], tf.float64)
  for name, value in narrow.items():
    assert wide[name].dtype == tf.float64
    np.testing.assert_array_equal(tf.cast(value, tf.float64), wide[name])


def test_init_draws_the_stated_variance():
  params = projector.build_projector(400, (300, 200)).init([0, 0])
  for name, variance in [('dense0/kernel', 2 / 400), ('dense1/kernel', 1 / 300)]:
    values = params[name].numpy()
    assert values.var() == pytest.approx(variance, rel=0.03)
    assert abs(values.mean()) < 4 * np.sqrt(variance / values.size)


def test_init_refuses_a_seed_of_another_shape():
  with pytest.raises(ValueError, match=r'seed of conv_norm is \(\); it must be \[2\]'):
    _conv_norm().init(3)


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    (lambda p: p.pop('layer/norm/beta'), 'has no layer/norm/beta; it must hold all'),
    (lambda p: p.update(extra=np.zeros(1)), 'has extra; it must hold only'),
    (
      lambda p: p.update({'layer/conv/bias': np.zeros(9)}),
      r'layer/conv/bias of conv_norm is \(9,\); it must be \(8,\)',
    ),
  ],
)
@pytest.mark.parametrize('method', ['apply', 'to_keras'])
def test_wrong_params_are_named(change, message, method):
  net = _conv_norm()
  params = _random_params(net)
  change(params)
  arguments = [np.zeros((1, 4, 5, 3))] if method == 'apply' else []
  with pytest.raises(ValueError, match=message):
    getattr(net, method)(params, *arguments)


@pytest.mark.parametrize(
  ('x', 'message'),
  [
    (
      np.zeros((2, 4, 5, 1), np.float32),
      r'is \(2, 4, 5, 1\); it must be \(None, 4, 5, 3\)',
    ),
    (np.zeros((2, 4, 5, 3), np.uint8), 'is uint8; it must be floating'),
  ],
)
def test_wrong_input_is_refused(x, message):
  net = _conv_norm()
  with pytest.raises(ValueError, match=message):
    net.apply(net.init([0, 0]), x)


def test_networks_that_no_message_holds_are_refused_by_arithmetic():
  with pytest.raises(ValueError, match=r'projector would have 1,000,01.* at most'):
    projector.build_projector(8, (1_000_000, 1_000_000))


def test_names_must_be_unique():
  def forward(ops, x):
    return ops.dense(ops.dense(x, 'same', units=3), 'same', units=3)

  with pytest.raises(ValueError, match="'same/kernel' is there twice; names"):
    network.Network('twice', (3,), forward).init([0, 0])


def test_shapes_that_can_not_be_added_are_refused():
  def forward(ops, x):
    return ops.add(x, ops.dense(x, 'dense', units=4))

  with pytest.raises(
    ValueError, match=r'add: .* shape is \(4,\); it must be .* \(3,\)'
  ):
    network.Network('sum', (3,), forward).init([0, 0])


def test_prefixes_nest_and_select():
  params = collections.OrderedDict(a=1, b=2)
  nested = network.with_prefix(params, 'encoder')
  assert list(nested.items()) == [('encoder/a', 1), ('encoder/b', 2)]
  both = collections.OrderedDict(**nested, **{'encoder2/a': 3})
  assert network.select(both, 'encoder') == params
  assert network.select(both, 'projector') == collections.OrderedDict()


def test_an_encoder_says_which_field_it_reads():
  net = resnet.build_encoder('resnet8', (8, 8, 3), 0.25)
  assert net.field == 'image'
  other = net.reading('left')
  assert other.field == 'left'
  assert other.specs.keys() == net.specs.keys()
  assert vit.build_encoder('vit_micro', (8, 8, 3)).reading('right').config.depth == 4


@pytest.mark.parametrize('name', ['resnet8', 'vit_micro'])
def test_inputs_of_another_size_go_through_the_same_parameters(name):
  """The same as the network that is built for that size."""
  options = {'patch_size': 4} if name == 'vit_micro' else {}
  net = registry.build_encoder(name, (16, 16, 3), 0.25, **options)
  expected = registry.build_encoder(name, (8, 8, 3), 0.25, **options)
  params = net.init([1, 2])
  x = tf.random.stateless_uniform([2, 8, 8, 3], [0, 1])
  got = net.for_inputs([8, 8, 3]).apply(params, x)
  np.testing.assert_array_equal(got, expected.apply(params, x))
  assert net.for_inputs((16, 16, 3)) is net


@pytest.mark.parametrize('shape', [(8, 8, 1), (5,), (0, 8, 3)])
def test_inputs_that_do_not_fit_the_parameters_are_refused(shape):
  net = registry.build_encoder('resnet8', (16, 16, 3), 0.25)
  with pytest.raises(
    ValueError, match=r'resnet8 for inputs .* \(16, 16, 3\) cannot take'
  ):
    net.for_inputs(shape)


@pytest.mark.parametrize(
  ('name', 'shape', 'views', 'expected'),
  [
    # 16 channels of 32 x 32 floats are 64 KiB.
    ('resnet8', (32, 32, 3), 2, 32),
    ('resnet8', (32, 32, 3), 1, 64),
    # 256 KiB; larger maps do not make fewer than 16.
    ('resnet18', (32, 32, 3), 1, 16),
    ('resnet18', (128, 128, 3), 2, 16),
    ('resnet8', (8, 8, 1), 2, 256),
    ('mlp', (5,), 2, 256),
  ],
)
def test_a_batch_leaves_the_maps_of_a_layer_in_4_mib(name, shape, views, expected):
  encoder = registry.build_encoder(name, shape)
  assert encoder.batch_in_cache(views) == expected
  # Fewer would be all casts and standardization of weights.
  assert encoder.with_precision('bfloat16').batch_in_cache(views) == max(expected, 32)
