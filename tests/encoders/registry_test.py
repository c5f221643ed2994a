"""Tests of the registry of encoders."""

import json
import math

import pytest

from tff_ssl.encoders import registry
from tff_ssl.encoders import resnet
from tff_ssl.encoders import vit


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
  assert got.config == resnet.ResNetConfig(18, 0.5, 'imagenet')
  got = registry.build_encoder('resnet8', (16, 16, 3), normalization='batch')
  assert got.mixes_examples
  got = registry.build_encoder('vit_micro', (16, 16, 3), 0.5, patch_size=4)
  assert got.config == vit.ViTConfig(dim=32, depth=4, heads=2, patch_size=4)


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


def test_a_description_of_more_positions_than_memory_holds_is_refused():
  """Of 4 numbers each 13 GB, besides what they are computed from."""
  config = {'dim': 4, 'depth': 1, 'heads': 1, 'patch_size': 1}
  description = _described('vit', config, [20_000, 20_000, 1])
  with pytest.raises(ValueError, match='positions have 20000 x 20000 codes of 4'):
    registry.rebuild(description)
