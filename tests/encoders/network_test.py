"""Tests of `Network` on definitions small enough for NumPy."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry


def _conv_norm_forward(ops, x):
  with ops.scope('layer'):
    x = ops.conv2d(x, 'conv', filters=8, kernel_size=3, use_bias=True, standardize=True)
    x = ops.group_norm(x, 'norm', groups=4)
    x = ops.tap(ops.relu(x), 'maps')
  return ops.global_average_pool(x)


def test_init_is_a_function_of_the_seed_in_and_out_of_graphs():
  net = registry.build_encoder('resnet8', (8, 8, 1), width=0.5)
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
  net = network.Network('conv_norm', (4, 5, 3), _conv_norm_forward)
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


def test_prefixes_nest_and_select():
  params = collections.OrderedDict(a=1, b=2)
  nested = parameter_names.with_prefix(params, 'encoder')
  assert list(nested.items()) == [('encoder/a', 1), ('encoder/b', 2)]
  both = collections.OrderedDict(**nested, **{'encoder2/a': 3})
  assert parameter_names.select(both, 'encoder') == params
  assert parameter_names.select(both, 'projector') == collections.OrderedDict()


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


def test_without_widths_a_projector_is_the_identity():
  net = projector.build_projector(3, ())
  x = tf.constant([[1.0, -2.0, 3.0]])
  assert net.init([0, 0]) == {}
  assert net.output_dim == 3
  np.testing.assert_array_equal(net.apply({}, x), x)
  np.testing.assert_array_equal(net.to_keras({})(x), x)


def test_without_normalization_there_are_biases_and_the_scale_is_kept():
  heads = projector.build_projector(4, (3, 2), normalization='none')
  assert list(heads.specs) == [
    f'dense{k}/{name}' for k in range(2) for name in ('kernel', 'bias')
  ]
  encoder = registry.build_encoder(
    'resnet50', (8, 8, 3), 1 / 4, normalization='none', weight_standardization=False
  )
  assert not [name for name in encoder.specs if 'norm' in name]
  assert 'stem/conv/bias' in encoder.specs
  x = np.random.default_rng(2).uniform(size=(2, 8, 8, 3)).astype(np.float32)
  y = encoder.apply(encoder.init([0, 0]), x)
  assert 0.01 < float(tf.reduce_mean(tf.square(y))) < 100
