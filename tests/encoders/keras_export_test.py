"""Tests that an exported Keras model computes what the network computes."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import projector
from tff_ssl.encoders import resnet


def _trained_like(net, dtype=tf.float32):
  """Parameters of which none has its initial, idle value."""
  params = net.init([5, 6], dtype)
  rng = np.random.default_rng(0)
  for name, value in params.items():
    params[name] = value + tf.constant(0.1 * rng.normal(size=value.shape), dtype)
  return params


@pytest.mark.long_for('resnet50')
@pytest.mark.parametrize(
  ('name', 'options'),
  [
    ('resnet8', {}),
    ('resnet8', {'normalization': 'none'}),
    ('resnet14', {'weight_standardization': False}),
    ('resnet50', {'stem': 'imagenet'}),
  ],
)
def test_the_model_computes_what_apply_computes(name, options):
  net = resnet.build_encoder(name, (9, 9, 2), width=1 / 4, **options)
  params = _trained_like(net, tf.float64)
  x = np.random.default_rng(1).uniform(size=(3, 9, 9, 2))
  np.testing.assert_allclose(
    net.to_keras(params)(x), net.apply(params, x), rtol=1e-7, atol=1e-9
  )


def test_a_projector_is_exported_too():
  net = projector.build_projector(6, (32, 16, 4))
  params = _trained_like(net)
  x = np.random.default_rng(2).normal(size=(3, 6)).astype(np.float32)
  np.testing.assert_allclose(
    net.to_keras(params)(x), net.apply(params, x), rtol=1e-5, atol=1e-5
  )


def test_taps_are_layers_of_their_name():
  net = resnet.build_encoder('resnet8', (8, 8, 1), width=0.5)
  params, taps = _trained_like(net), {}
  x = np.random.default_rng(4).uniform(size=(2, 8, 8, 1)).astype(np.float32)
  net.apply(params, x, taps)
  model = net.to_keras(params)
  stages = tf.keras.Model(model.input, [model.get_layer(name).output for name in taps])
  for got, expected in zip(stages(x), taps.values(), strict=True):
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
