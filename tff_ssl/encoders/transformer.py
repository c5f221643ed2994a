"""Transformer blocks and positions, which a ViT and its decoder have in common.

Sources:
  Dosovitskiy et al.: An Image is Worth 16x16 Words. ICLR 2021. Equations 2 and 3.
  He et al.: Masked Autoencoders Are Scalable Vision Learners. CVPR 2022. Appendix A.1:
    fixed sine-cosine positions in two dimensions.
"""

import math
from typing import Any

import numpy as np

from tff_ssl.encoders import network_ops
from tff_ssl.encoders import sizes
from tff_ssl.encoders.operations import group_normalization

_LONGEST_WAVE = 10000.0
# As many float64 fit in 128 MiB: the images of a stranger's card can be of any size.
_MOST_NUMBERS = 2**24


def blocks(
  ops: network_ops.Operations,
  x: Any,
  depth: int,
  heads: int,
  layer_scale: bool = False,
  epsilon: float = group_normalization.NORM_EPSILON,
) -> Any:
  """Applies pre-norm blocks and a last norm: [n, tokens, units] to the same shape.

  Args:
    ops: The interpreter.
    x: [n, tokens, units].
    depth: Number of blocks, 'block0', 'block1', ...
    heads: Heads of each block.
    layer_scale: Whether each branch ends in a layer scale.
    epsilon: Epsilon of the norms.
  """

  def scaled(y: Any, name: str) -> Any:
    return ops.layer_scale(y, name) if layer_scale else y

  units = ops.shape(x)[-1]
  for index in range(depth):
    with ops.scope(f'block{index}'):
      y = ops.layer_norm(x, 'norm1', epsilon=epsilon)
      x = ops.add(x, scaled(ops.attention(y, 'attention', heads=heads), 'scale1'))
      y = ops.layer_norm(x, 'norm2', epsilon=epsilon)
      y = ops.dense(y, 'mlp1', units=sizes.MLP_RATIO * units, gain=1.0)
      y = ops.dense(ops.gelu(y), 'mlp2', units=units, gain=1.0)
      x = ops.add(x, scaled(y, 'scale2'))
  return ops.layer_norm(x, 'norm', epsilon=epsilon)


def positions(grid: tuple[int, int], dim: int) -> np.ndarray:
  """Returns a fixed code of each position: sines and cosines of its row and column.

  Args:
    grid: Rows and columns.
    dim: Units of the code, a multiple of 4.

  Returns:
    float64 [rows * columns, dim], row by row: sines, then cosines of the row in the
    first half, of the column in the second, at wave lengths from 2 pi to 20000 pi.

  Raises:
    ValueError: `dim` is not a multiple of 4, or the codes have too many numbers.
  """
  if dim % 4:
    raise ValueError(f'dim of positions is {dim}; it must be a multiple of 4.')
  if math.prod(grid) * dim > _MOST_NUMBERS:
    raise ValueError(
      f'positions have {grid[0]} x {grid[1]} codes of {dim} numbers; there may be at '
      f'most {_MOST_NUMBERS:,} numbers.'
    )
  frequencies = _LONGEST_WAVE ** (-np.arange(dim // 4) / (dim // 4))
  coordinates = np.indices(grid).reshape(2, -1, 1)
  angles = coordinates * frequencies
  halves = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
  return np.concatenate([halves[0], halves[1]], axis=-1)
