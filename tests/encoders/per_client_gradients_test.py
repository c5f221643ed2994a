"""Each client's gradient, of networks that all clients go through together."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import lora
from tff_ssl.encoders import network
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders import registry
from tff_ssl.encoders import vit

_SEED = tf.constant([1, 2])
_CLIENTS, _EXAMPLES, _VIEWS = 3, 2, 2


def _convolutions(ops, x):
  x = ops.conv2d(x, 'even', filters=4, kernel_size=2, use_bias=True)
  x = ops.conv2d(x, 'strided', filters=3, kernel_size=3, strides=2, standardize=True)
  return ops.global_average_pool(ops.gelu(x))


def _convnext_like(ops, x):
  x = ops.layer_norm(ops.average_pool(x, size=2, strides=2), 'norm')
  y = ops.depthwise_conv2d(x, 'even', kernel_size=2, use_bias=True)
  y = ops.gelu(ops.dense(y, 'wide', units=8))
  y = ops.depthwise_conv2d(y, 'strided', kernel_size=3, strides=2)
  return ops.global_average_pool(ops.layer_scale(y, 'scale', initial=0.5))


def _adapted():
  net = vit.from_config(vit.ViTConfig(dim=8, depth=1, heads=2, patch_size=2), (4, 4, 3))
  return lora.adapt(net, net.init(_SEED), rank=2)


def _torch_like(ops, x):
  x = ops.conv2d(
    ops.zero_pad(x, 1), 'strided', filters=8, kernel_size=3, strides=2, padding='valid'
  )
  x = ops.conv2d(x, 'inside', filters=8, kernel_size=2, padding='valid')
  x = ops.prefix(ops.positions(ops.tokens(x), 'positions'), 'prefix', count=2)
  x = ops.attention(ops.layer_norm(x, 'norm', epsilon=1e-6), 'attention', heads=2)
  return ops.global_average_pool(ops.crop_tokens(x, 0, 3))


_NETWORKS = {
  'torch_like': lambda: network.Network('torch_like', (7, 6, 2), _torch_like),
  'convnext_like': lambda: network.Network('convnext_like', (7, 6, 8), _convnext_like),
  'convolutions': lambda: network.Network('convolutions', (5, 4, 2), _convolutions),
  # A stem of stride 2, strides in 3 x 3 and 1 x 1, group norm, standardized kernels.
  'resnet': lambda: registry.build_encoder(
    'resnet8', (16, 16, 3), width=1 / 4, stem='imagenet'
  ),
  'biases': lambda: registry.build_encoder(
    'resnet8', (8, 8, 1), width=1 / 8, normalization='none'
  ),
  # Tokens, layer norm and attention.
  'vit': lambda: vit.from_config(
    vit.ViTConfig(dim=8, depth=1, heads=2, patch_size=2), (4, 4, 3)
  ),
  'adapters': _adapted,
}


def _params(net):
  # Constants are moved: a gradient by a scale of 1 could be that by another.
  return {
    name: value
    + 0.1 * tf.random.stateless_normal(value.shape, [3, i], dtype=value.dtype)
    for i, (name, value) in enumerate(net.init(_SEED, tf.float64).items())
  }


@pytest.mark.long_for('resnet')
@pytest.mark.parametrize('name', _NETWORKS)
def test_each_gradient_is_that_of_the_client_alone(name):
  net = _NETWORKS[name]()
  params = _params(net)
  generator = np.random.default_rng(1)
  shape = (_VIEWS, _CLIENTS, _EXAMPLES)
  x = generator.normal(size=(*shape, *net.input_shape))
  weights = generator.normal(size=(*shape, net.output_dim))

  # As in rounds: in a graph, with a number of clients that it does not know.
  @tf.function(
    autograph=False,
    input_signature=[tf.TensorSpec([None, *net.input_shape], tf.float64)]
    + [tf.TensorSpec([], tf.int32)] * 2,
  )
  def together(x, clients, examples):
    shared = {
      name: per_client_gradients.parameter(value, clients, examples)
      for name, value in params.items()
    }
    slots = {name: parameter.slots for name, parameter in shared.items()}
    with tf.GradientTape() as tape:
      tape.watch(slots)
      y = net.apply(shared, x, batches=_VIEWS)
      loss = tf.reduce_sum(y * weights.reshape(-1, net.output_dim))
    return y, tape.gradient(loss, slots)

  flat = x.reshape(-1, *net.input_shape)
  y, found = together(flat, _CLIENTS, _EXAMPLES)
  np.testing.assert_allclose(y, net.apply(params, flat, batches=_VIEWS), rtol=1e-9)
  for k in range(_CLIENTS):
    with tf.GradientTape() as tape:
      tape.watch(params)
      own = net.apply(params, x[:, k].reshape(-1, *net.input_shape))
      loss = tf.reduce_sum(own * weights[:, k].reshape(-1, net.output_dim))
    for name, expected in tape.gradient(loss, params).items():
      np.testing.assert_allclose(found[name][k], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.long_for('resnet', 'torch_like', 'adapters')
@pytest.mark.parametrize('name', _NETWORKS)
def test_in_bfloat16_each_gradient_is_near_that_of_the_client_alone(name):
  net = _NETWORKS[name]().with_precision('bfloat16')
  params = {key: tf.cast(value, tf.float32) for key, value in _params(net).items()}
  generator = np.random.default_rng(1)
  rows = _VIEWS * _CLIENTS * _EXAMPLES
  x = generator.normal(size=(rows, *net.input_shape)).astype(np.float32)
  weights = generator.normal(size=(rows, net.output_dim)).astype(np.float32)
  own_rows = np.arange(rows).reshape(_VIEWS, _CLIENTS, _EXAMPLES)
  shared = {
    key: per_client_gradients.parameter(value, _CLIENTS, _EXAMPLES)
    for key, value in params.items()
  }
  slots = {key: parameter.slots for key, parameter in shared.items()}
  with tf.GradientTape() as tape:
    tape.watch(slots)
    loss = tf.reduce_sum(net.apply(shared, x, batches=_VIEWS) * weights)
  found = tape.gradient(loss, slots)
  for k in range(_CLIENTS):
    own = own_rows[:, k].ravel()
    expected = []
    for each in (net, net.with_precision('float32')):
      with tf.GradientTape() as tape:
        tape.watch(params)
        loss = tf.reduce_sum(each.apply(params, x[own]) * weights[own])
      expected.append(tape.gradient(loss, params))
    for key, value in expected[0].items():
      assert found[key].dtype == tf.float32
      scale = np.linalg.norm(expected[1][key])
      # No farther than rounding the maps has moved it, and a rounding of the result.
      moved = np.linalg.norm(value - expected[1][key])
      assert np.linalg.norm(found[key][k] - value) <= moved + 2**-8 * scale, key


def test_rows_that_are_no_clients_are_refused():
  """Of two views that pass for one, each client would have another's examples."""
  net = _NETWORKS['biases']()
  params = {
    name: per_client_gradients.parameter(value, tf.constant(2), tf.constant(1))
    for name, value in net.init(_SEED).items()
  }
  slots = [parameter.slots for parameter in params.values()]
  with tf.GradientTape() as tape:
    tape.watch(slots)
    y = net.apply(params, tf.ones([4, *net.input_shape]))
  with pytest.raises(tf.errors.InvalidArgumentError):
    tape.gradient(y, slots)


def test_batch_norm_gives_no_client_a_gradient_of_its_own():
  net = registry.build_encoder('resnet8', (8, 8, 1), width=1 / 8, normalization='batch')
  params = {
    name: per_client_gradients.parameter(value, tf.constant(2), tf.constant(1))
    for name, value in net.init(_SEED).items()
  }
  with pytest.raises(
    ValueError, match='batch norm; for each client to have a gradient'
  ):
    net.apply(params, tf.ones([2, *net.input_shape]))
