"""Vision transformers in parts: positions, tokens, patches, their decoder."""

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import numpy_transformer
from tff_ssl.encoders import decoder
from tff_ssl.encoders import registry
from tff_ssl.encoders import transformer
from tff_ssl.encoders import vit


def test_width_keeps_heads_and_layers():
  configs = [
    registry.build_encoder('vit_tiny', (32, 32, 3), w).config for w in (1 / 16, 0.5, 2)
  ]
  assert [(c.dim, c.depth, c.heads) for c in configs] == [
    (12, 12, 3),
    (96, 12, 3),
    (384, 12, 3),
  ]


@pytest.mark.parametrize(
  ('size', 'expected'), [(8, 2), (28, 2), (32, 2), (64, 4), (224, 14), (31, 31), (1, 1)]
)
def test_default_patch_size(size, expected):
  assert vit.default_patch_size((size, size, 3)) == expected
  encoder = registry.build_encoder('vit_micro', (size, size, 3))
  assert encoder.grid == (size // expected,) * 2


@pytest.mark.parametrize('grid', [(1, 1), (3, 2), (2, 5)])
def test_positions_are_sines_and_cosines_of_row_and_column(grid):
  got = transformer.positions(grid, 12)
  np.testing.assert_allclose(got, numpy_transformer.positions(*grid, 12), atol=1e-12)
  assert len(np.unique(got.round(6), axis=0)) == grid[0] * grid[1]


def test_patches_and_some_tokens_are_encoded_apart():
  config = vit.ViTConfig(dim=8, depth=2, heads=2, patch_size=2)
  encoder = vit.from_config(config, (4, 6, 2))
  x = np.random.default_rng(3).uniform(size=(3, 4, 6, 2))
  params = numpy_transformer.random_params(encoder.specs)
  tokens = numpy_transformer.embed(params, x, 2)
  np.testing.assert_allclose(encoder.embed(params, x), tokens, rtol=1e-9, atol=1e-12)
  some = tokens[:, [4, 0, 3]]
  np.testing.assert_allclose(
    encoder.encode_tokens(params, tf.constant(some)),
    numpy_transformer.blocks(params, some, depth=2, heads=2),
    rtol=1e-6,
    atol=1e-7,
  )
  with pytest.raises(ValueError, match=r'has no embedding/.*; it must hold all 2'):
    encoder.embed({}, x)


def test_the_papers_decoder_of_the_tiny_encoder():
  net = decoder.build_decoder(registry.build_encoder('vit_tiny', (32, 32, 3)))
  assert net.input_shape == (256, 193)
  assert net.output_dim == 2 * 2 * 3
  assert {name.split('/')[0] for name in net.specs} == {
    'embedding',
    *(f'block{i}' for i in range(4)),
    'norm',
    'pixels',
  }
  assert net.specs['pixels/kernel'].shape == (192, 12)
