"""Frozen layers: a network begins as its base, and the rest alone has gradients."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import frozen_layers
from tff_ssl.encoders import registry

# Kernels: a stem, two in each of three blocks and, where a block has other channels or
# a stride, a shortcut; a patch embedding and four in each of two blocks; in a MobileNet
# a depthwise one counts too.
_NETWORKS = {
  'resnet8': {'normalization': 'batch'},
  'vit_micro': {'patch_size': 4},
  'torch_efficientnet_lite0': {'normalization': 'none'},
}


def _network(name):
  return registry.build_encoder(name, (8, 8, 3), 1 / 4, **_NETWORKS[name])


def _base(plain, seed=0):
  rng = np.random.default_rng(seed)
  return {
    name: (np.asarray(value) + 0.1 * rng.normal(size=value.shape)).astype(np.float32)
    for name, value in plain.init([1, 2]).items()
  }


def _images(seed=0):
  return np.random.default_rng(seed).uniform(size=(4, 8, 8, 3)).astype(np.float32)


def _gradients(net, params):
  params = {name: tf.constant(value) for name, value in params.items()}
  with tf.GradientTape() as tape:
    tape.watch(list(params.values()))
    loss = tf.reduce_sum(tf.sin(3.0 * net.apply(params, _images())))
  return tape.gradient(loss, params)


@pytest.mark.parametrize('name', _NETWORKS)
def test_the_rest_begins_as_the_base_and_has_its_gradients(name):
  plain = _network(name)
  base = _base(plain)
  half = frozen_layers.freeze(plain, base, 0.5)
  params = half.init([4, 5])
  np.testing.assert_array_equal(
    half.apply(params, _images()), plain.apply(base, _images())
  )
  expected, found = _gradients(plain, base), _gradients(half, params)
  assert list(found) == [*plain.specs][-len(found) :]
  for key, value in found.items():
    np.testing.assert_allclose(value, expected[key], rtol=1e-5, atol=1e-6)
  assert any(np.abs(value).max() > 1e-3 for value in found.values())


def test_layers_are_kernels_with_what_is_behind_them():
  """A ResNet-8 has a stem, three blocks of two and two shortcuts: nine kernels."""
  plain = _network('resnet8')
  half = frozen_layers.freeze(plain, _base(plain), 0.5)
  kernels = [name for name in plain.specs if name.endswith('kernel')]
  assert len(kernels) == 9
  assert [name for name in half.specs if name.endswith('kernel')] == kernels[5:]
  assert next(iter(half.specs)) == kernels[5]
  # Statistics of frozen norms are of the new pictures.
  assert list(half.statistics) == list(plain.statistics)


def test_saved_is_the_whole_network():
  plain = _network('torch_efficientnet_lite0')
  base = _base(plain)
  half = frozen_layers.freeze(plain, base, 0.5)
  params = {name: value + 0.1 for name, value in half.init([4, 5]).items()}
  merged = half.merged(params)
  assert list(merged) == list(plain.specs)
  for name, value in merged.items():
    np.testing.assert_array_equal(value, params.get(name, base[name]))
  features = half.infer(params, _images())
  np.testing.assert_allclose(
    half.to_keras(params)(_images()), features, rtol=1e-4, atol=1e-5
  )
