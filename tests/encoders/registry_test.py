"""Tests of the registry of encoders."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import registry
from tff_ssl.encoders import resnet
from tff_ssl.encoders import vit


@pytest.mark.parametrize('name', registry.NAMES)
def test_every_name_builds_an_encoder(name):
  shape = (5,) if name == 'mlp' else (16, 16, 3)
  encoder = registry.build_encoder(name, shape, width=1 / 4)
  assert encoder.name == name
  assert encoder.input_shape == shape
  assert encoder.output_dim > 0
  assert encoder.field == 'image'
  assert registry.build_encoder(name, shape, 1 / 4, field='left').field == 'left'


@pytest.mark.long_for(
  'resnet14',
  'resnet18',
  'convnext_tiny',
  'vit_tiny',
  'resnet50',
  'torch_resnet18',
  'torch_resnet50',
  'torch_efficientnet_lite0',
  'torch_vit_tiny',
  'torch_vit_small',
  'torch_vit_base',
  'keras_resnet50',
  'keras_mobilenet_v2',
)
@pytest.mark.parametrize('name', registry.NAMES)
def test_every_encoder_is_exported_and_rebuilt(name):
  # The patches of PyTorch's transformers have 16 pixels.
  shape = (16, 16, 3) if name.startswith('torch') else (8, 8, 3)
  if name == 'mlp':
    shape = (12,)
  encoder = registry.build_encoder(name, shape, width=1 / 8)
  rebuilt = registry.rebuild(json.loads(json.dumps(registry.describe(encoder))))
  assert rebuilt.config == encoder.config
  params = encoder.init([1, 2], tf.float64) | encoder.init_statistics(tf.float64)
  x = np.random.default_rng(0).uniform(size=(3, *shape))
  y = rebuilt.infer(params, x)
  # Keras rounds the factors of pixels to float32.
  atol = 1e-6 if name.startswith('torch') else 1e-9
  if name.startswith('keras'):
    # Of pixels up to 255.
    atol = 1e-4
  np.testing.assert_allclose(encoder.to_keras(params)(x), y, rtol=1e-6, atol=atol)
  assert rebuilt.infer(params, x[:0]).shape == (0, encoder.output_dim)


@pytest.mark.parametrize('name', ['resnet8', 'conv2', 'mlp'])
def test_a_description_says_how_many_groups_and_an_earlier_one_has_32(name):
  shape = (8,) if name == 'mlp' else (8, 8, 3)

  def described(**options):
    encoder = registry.build_encoder(name, shape, **options)
    return json.loads(json.dumps(registry.describe(encoder)))

  default, earlier = described(), described(groups=32)
  assert default['config']['groups'] is None and earlier['config']['groups'] == 32
  assert registry.rebuild(earlier).config.groups == 32
  # They were described with batch norm too.
  batch = described(normalization='batch')
  written = {**batch, 'config': {**batch['config'], 'groups': 32}}
  assert registry.describe(registry.rebuild(written)) == registry.describe(
    registry.rebuild(batch)
  )


def test_options_reach_their_family():
  got = registry.build_encoder('resnet18', (16, 16, 3), 0.5, stem='imagenet')
  expected = resnet.build_encoder('resnet18', (16, 16, 3), 0.5, 'imagenet')
  assert got.tap_shapes == expected.tap_shapes
  got = registry.build_encoder('resnet8', (16, 16, 3), normalization='batch')
  assert got.mixes_examples
  got = registry.build_encoder('vit_micro', (16, 16, 3), 0.5, patch_size=4)
  assert got.config == vit.ViTConfig(dim=32, depth=4, heads=2, patch_size=4)


@pytest.mark.parametrize(
  ('name', 'options', 'message'),
  [
    ('resnet9', {}, "encoder is 'resnet9'; it must be one of"),
    (
      'vit_micro',
      {'stem': 'cifar'},
      "stem is 'cifar' with the encoder vit_micro; it is only for",
    ),
    (
      'vit_micro',
      {'normalization': 'batch'},
      "normalization is 'batch' with the encoder vit_micro; it is",
    ),
    (
      'resnet8',
      {'patch_size': 2},
      'patch_size is 2 with the encoder resnet8; it is only for',
    ),
  ],
)
def test_invalid_encoder_settings_are_refused(name, options, message):
  with pytest.raises(ValueError, match=message):
    registry.build_encoder(name, (16, 16, 3), **options)


def _described(family, config, shape=(8, 8, 1)):
  return {
    'family': family,
    'name': family,
    'image_shape': list(shape),
    'config': config,
  }


@pytest.mark.parametrize(
  ('family', 'config'),
  [
    ('cnn', {'blocks': 2, 'channels': 8.0, 'normalization': 'none'}),
    ('cnn', {'blocks': 2, 'channels': math.nan, 'normalization': 'none'}),
    ('vit', {'dim': 8.0, 'depth': 1, 'heads': 2, 'patch_size': 2}),
    ('cnn', {'blocks': 2, 'channels': 2**64}),
    ('cnn', {'blocks': True}),
    ('resnet', {'depth': 8, 'epsilon': '1e-5'}),
    ('resnet', {'depth': 8, 'strided_first': 0}),
    ('mlp', {'widths': [8, [8]]}),
    ('mlp', {'widths': 8}),
    ('cnn', [2]),
  ],
)
def test_a_description_of_other_types_is_refused(family, config):
  with pytest.raises(ValueError, match=r"^its config (has '?\w+|is .*).*; it must be "):
    registry.rebuild(_described(family, config))


@pytest.mark.parametrize(
  ('family', 'config'),
  [
    ('resnet', {'depth': 8, 'normalization': 'none'}),
    ('cnn', {'blocks': 2}),
    ('vit', {'dim': 8, 'depth': 1, 'heads': 2, 'patch_size': 2}),
  ],
)
@pytest.mark.parametrize('shape', [[0, 8, 1], [-8, -8, 1], [8, 8, 0]])
def test_a_description_of_no_image_is_refused(family, config, shape):
  description = _described(family, config, shape)
  with pytest.raises(ValueError, match=r'image_shape is .*, each at least 1'):
    registry.rebuild(description)


@pytest.mark.parametrize(
  ('family', 'config', 'name'),
  [
    ('cnn', {'blocks': 10**9}, 'blocks'),
    ('vit', {'dim': 8, 'depth': 10**9, 'heads': 2, 'patch_size': 2}, 'depth'),
  ],
)
def test_a_description_of_more_layers_than_can_be_built_is_refused(
  family, config, name
):
  description = _described(family, config)
  with pytest.raises(
    ValueError, match=f'{name} is 1000000000; it must be between 1 and 1000'
  ):
    registry.rebuild(description)


def test_a_description_of_more_positions_than_memory_holds_is_refused():
  """Of 4 numbers each 13 GB, besides what they are computed from."""
  config = {'dim': 4, 'depth': 1, 'heads': 1, 'patch_size': 1}
  description = _described('vit', config, [20_000, 20_000, 1])
  with pytest.raises(ValueError, match='positions have 20000 x 20000 codes of 4'):
    registry.rebuild(description)
