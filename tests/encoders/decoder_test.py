"""Tests of the decoder of masked autoencoders, against NumPy in float64."""

import numpy as np
import pytest

from tests.encoders import numpy_transformer
from tff_ssl.encoders import decoder
from tff_ssl.encoders import vit


def _encoder():
  return vit.build_encoder('vit_micro', (4, 6, 2), width=1 / 8, patch_size=2)


def test_the_papers_decoder_of_the_tiny_encoder():
  net = decoder.build_decoder(vit.build_encoder('vit_tiny'))
  assert net.input_shape == (256, 193)
  assert net.output_dim == 2 * 2 * 3
  assert {name.split('/')[0] for name in net.specs} == {
    'embedding',
    *(f'block{i}' for i in range(4)),
    'norm',
    'pixels',
  }
  assert net.specs['pixels/kernel'].shape == (192, 12)


def test_visible_and_masked_patches_become_pixels():
  net = decoder.build_decoder(_encoder(), dim=12, depth=2, heads=3)
  params = numpy_transformer.random_params(net.specs)
  rng = np.random.default_rng(1)
  encoded, masked = rng.normal(size=(2, 6, 8)), rng.integers(0, 2, (2, 6, 1))
  x = np.concatenate([encoded * (1 - masked), masked], axis=-1)
  # As in the paper: a linear layer of the visible tokens, a mask token elsewhere.
  kernel, bias = params['embedding/kernel'], params['embedding/bias']
  mask_token = kernel[8] + bias
  tokens = np.where(masked, mask_token, encoded @ kernel[:8] + bias)
  tokens = tokens + numpy_transformer.positions(2, 3, 12)
  tokens = numpy_transformer.blocks(params, tokens, depth=2, heads=3)
  expected = numpy_transformer.dense(params, 'pixels', tokens)
  np.testing.assert_allclose(net.apply(params, x), expected, rtol=1e-6, atol=1e-7)


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match=r'dim is 6; it must be .* the 2 heads'):
    decoder.build_decoder(_encoder(), dim=6)
  with pytest.raises(ValueError, match='depth is 0; it must be between 1'):
    decoder.build_decoder(_encoder(), depth=0)
