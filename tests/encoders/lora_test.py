"""Adapters: they begin as the base, add a product to its kernels, and are few."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import keras_archive
from tff_ssl.encoders import lora
from tff_ssl.encoders import network
from tff_ssl.encoders import registry
from tff_ssl.encoders import vit

_RANK = 2
_VIT = vit.ViTConfig(dim=8, depth=2, heads=2, patch_size=2)


def _vit():
  return vit.from_config(_VIT, (4, 6, 3))


# Attention and dense kernels; convolutions of size 1, with standardized kernels or with
# batch norm; dense kernels beside depthwise convolutions and scales of layers.
_NETWORKS = {
  'vit': _vit,
  'resnet': lambda: registry.build_encoder('resnet8', (8, 8, 3), 1 / 4),
  'resnet_batch': lambda: registry.build_encoder(
    'resnet8', (8, 8, 3), 1 / 4, normalization='batch'
  ),
  'convnext': lambda: registry.build_encoder('convnext_micro', (8, 8, 3), 1 / 4),
  'mlp': lambda: registry.build_encoder('mlp', (6,), 1 / 4),
}


def _moved(params, seed, dtype=np.float32):
  """Returns parameters as after training: no number is as it was drawn."""
  rng = np.random.default_rng(seed)
  return {
    name: (np.asarray(value) + 0.3 * rng.normal(size=value.shape)).astype(dtype)
    for name, value in params.items()
  }


def _adapted(name):
  """Returns a network, its base, and the network with adapters."""
  plain = _NETWORKS[name]()
  base = _moved(plain.init([1, 2]), 3)
  return plain, base, lora.adapt(plain, base, _RANK)


def _inputs(net, n=3, seed=0):
  x = np.random.default_rng(seed).normal(size=(n, *net.input_shape))
  return x.astype(np.float32)


@pytest.mark.long_for('resnet', 'convnext', 'mlp')
@pytest.mark.parametrize('name', _NETWORKS)
def test_features_begin_as_those_of_the_base_to_the_bit(name):
  plain, base, adapted = _adapted(name)
  x, params = _inputs(plain), adapted.init([4, 5])
  np.testing.assert_array_equal(adapted.apply(params, x), plain.apply(base, x))
  statistics = plain.init_statistics()
  np.testing.assert_array_equal(
    adapted.infer({**params, **statistics}, x), plain.infer({**base, **statistics}, x)
  )
  # Not because nothing would move: the first factor is drawn.
  drawn = [value for key, value in params.items() if key.endswith(lora.A)]
  assert drawn
  assert all(np.std(value) > 0 for value in drawn)


@pytest.mark.long_for('resnet', 'convnext', 'mlp')
@pytest.mark.parametrize('name', _NETWORKS)
def test_merged_weights_are_the_base_with_products_added(name):
  plain, base, adapted = _adapted(name)
  params = {**_moved(adapted.init([4, 5]), 6), **plain.init_statistics()}
  expected = dict(base)
  for key, value in params.items():
    layer, _, last = key.rpartition('/')
    if last == lora.A:
      product = value.astype(np.float64) @ params[f'{layer}/{lora.B}']
      kernel = base[f'{layer}/kernel']
      expected[f'{layer}/kernel'] = kernel + product.reshape(kernel.shape)
    elif last != lora.B:
      expected[key] = value
  merged = adapted.merged(params)
  assert list(merged) == [*plain.specs, *plain.statistics]
  for key, value in merged.items():
    np.testing.assert_allclose(value, expected[key], rtol=1e-6, atol=1e-6)
  x = _inputs(plain)
  features = adapted.infer(params, x)
  np.testing.assert_allclose(features, plain.infer(merged, x), rtol=1e-6, atol=1e-6)
  before = plain.infer({**base, **plain.init_statistics()}, x)
  assert np.abs(features - before).max() > 0.01
  # What is saved is the network without adapters, and it is not merged twice.
  model, alone = adapted.to_keras(params), plain.to_keras(merged)
  assert keras_archive.layers(model) == keras_archive.layers(alone)
  np.testing.assert_allclose(model(x), features, rtol=1e-4, atol=1e-5)
  again = adapted.merged(merged)
  assert all(again[key] is value for key, value in merged.items())


def test_trained_are_adapters_and_norms_alone():
  """A block: qkv, output and two dense kernels, each with A and B, and two norms."""
  names = set(_adapted('vit')[2].specs)
  layers = ('attention/qkv', 'attention/output', 'mlp1', 'mlp2')
  pairs = {f'{layer}/{last}' for layer in layers for last in ('lora_a', 'lora_b')}
  norms = {f'norm{i}/{last}' for i in (1, 2) for last in ('gamma', 'beta')}
  blocks = {f'block{i}/{name}' for i in range(2) for name in pairs | norms}
  assert names == blocks | {'norm/gamma', 'norm/beta'}
  shapes = {name: spec.shape for name, spec in _adapted('vit')[2].specs.items()}
  assert shapes['block0/attention/qkv/lora_a'] == (8, _RANK)
  assert shapes['block0/attention/qkv/lora_b'] == (_RANK, 24)


def test_only_convolutions_of_size_1_of_a_resnet_have_adapters():
  plain, _, adapted = _adapted('resnet_batch')
  kernels = {
    name: spec.shape for name, spec in plain.specs.items() if name.endswith('/kernel')
  }
  small = {name for name, shape in kernels.items() if shape[:2] == (1, 1)}
  assert 0 < len(small) < len(kernels)
  changed = {name.replace(lora.A, 'kernel') for name in adapted.specs if lora.A in name}
  assert changed == small
  assert adapted.statistics == plain.statistics


@pytest.mark.long_for('vit')
@pytest.mark.parametrize('name', ['vit', 'resnet'])
def test_gradients_follow_the_chain_rule(name):
  """DA = dW B^T and dB = A^T dW in NumPy, of the plain network's gradient dW."""
  plain, _, adapted = _adapted(name)
  params = {
    key: tf.constant(value)
    for key, value in _moved(adapted.init([4, 5]), 6, np.float64).items()
  }
  x = _inputs(plain).astype(np.float64)
  weights = np.random.default_rng(7).normal(size=(3, plain.output_dim))

  def gradients(net, values):
    with tf.GradientTape() as tape:
      tape.watch(values)
      loss = tf.reduce_sum(net.apply(values, x) * weights)
    return tape.gradient(loss, values)

  found = gradients(adapted, params)
  whole = gradients(plain, adapted.merged(params))
  for key, value in found.items():
    layer, _, last = key.rpartition('/')
    expected = whole.get(key)
    if last in (lora.A, lora.B):
      by_kernel = whole[f'{layer}/kernel'].numpy()
      by_kernel = by_kernel.reshape(by_kernel.shape[-2:])
      a, b = (params[f'{layer}/{each}'].numpy() for each in (lora.A, lora.B))
      expected = by_kernel @ b.T if last == lora.A else a.T @ by_kernel
    assert np.abs(expected).max() > 1e-3, key
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)
  assert set(found) == set(adapted.specs)


def test_some_tokens_are_encoded_with_adapters():
  """What MAE uses: patches and blocks apart are what `apply` does in one."""
  _, _, adapted = _adapted('vit')
  params = _moved(adapted.init([4, 5]), 6)
  x = _inputs(adapted)
  tokens = adapted.encode_tokens(params, adapted.embed(params, x))
  expected = adapted.apply(params, x)
  np.testing.assert_allclose(tf.reduce_mean(tokens, 1), expected, rtol=1e-5, atol=1e-5)


def test_inputs_of_another_shape_have_the_same_adapters():
  adapted = _adapted('vit')[2]
  other = adapted.for_inputs((8, 4, 3))
  params, x = _moved(adapted.init([4, 5]), 6), np.ones([2, 8, 4, 3], np.float32)
  expected = vit.from_config(_VIT, (8, 4, 3)).apply(adapted.merged(params), x)
  np.testing.assert_array_equal(other.apply(params, x), expected)


def test_of_a_vit_s_at_rank_8_less_than_3_percent_are_sent():
  """DeiT's S: 384 units, 12 blocks, patches of 16; its A and B, by hand."""
  plain = vit.from_config(vit.ViTConfig(384, 12, 6, 16), (224, 224, 3))
  # Nothing is drawn: a broadcast zero has the shape, and no memory.
  base = {
    name: np.broadcast_to(np.float32(0), spec.shape)
    for name, spec in plain.specs.items()
  }
  adapted = lora.adapt(plain, base, 8)
  # Inputs and outputs of the four kernels: 384, 1152; 384, 384; 384, 1536; 1536, 384.
  by_hand = 12 * 8 * (1536 + 768 + 1920 + 1920) + 25 * 2 * 384
  assert adapted.num_parameters == by_hand
  assert by_hand / plain.num_parameters < 0.03


def test_what_is_frozen_is_no_parameter():
  _, base, adapted = _adapted('vit')
  params = {**adapted.init([0, 0]), 'block0/mlp1/kernel': base['block0/mlp1/kernel']}
  with pytest.raises(ValueError, match='has block0/mlp1/kernel; it must hold only'):
    adapted.apply(params, _inputs(adapted))
  assert isinstance(adapted.plain, network.Network)
  assert adapted.plain.num_parameters == sum(
    math.prod(value.shape) for value in base.values()
  )
