"""Tests of transformer blocks and positions, against NumPy in float64."""

import numpy as np
import pytest

from tests.encoders import numpy_transformer
from tff_ssl.encoders import network
from tff_ssl.encoders import transformer


def _blocks(depth):
  return network.Network(
    'blocks', (5, 8), lambda ops, x: transformer.blocks(ops, x, depth, heads=2)
  )


@pytest.mark.parametrize('depth', [0, 2])
def test_blocks_are_numpys(depth):
  net = _blocks(depth)
  params = numpy_transformer.random_params(net.specs)
  x = np.random.default_rng(1).normal(size=(3, 5, 8))
  expected = numpy_transformer.blocks(params, x, depth, 2)
  np.testing.assert_allclose(net.apply(params, x), expected, rtol=1e-6, atol=1e-7)


def test_the_hidden_layer_is_four_times_as_wide():
  specs = _blocks(1).specs
  assert specs['block0/mlp1/kernel'].shape == (8, 32)
  assert specs['block0/attention/qkv/kernel'].shape == (8, 24)


@pytest.mark.parametrize('grid', [(1, 1), (3, 2), (2, 5)])
def test_positions_are_sines_and_cosines_of_row_and_column(grid):
  got = transformer.positions(grid, 12)
  np.testing.assert_allclose(got, numpy_transformer.positions(*grid, 12), atol=1e-12)
  assert len(np.unique(got.round(6), axis=0)) == grid[0] * grid[1]


def test_positions_need_a_multiple_of_four():
  with pytest.raises(
    ValueError, match='dim of positions is 6; it must be a multiple of 4'
  ):
    transformer.positions((2, 2), 6)
