"""Transformer blocks and positions, which a ViT and its decoder have in common.

Sources:
  Dosovitskiy et al.: An Image is Worth 16x16 Words. ICLR 2021. Equations 2 and 3.
  He et al.: Masked Autoencoders Are Scalable Vision Learners. CVPR 2022. Appendix A.1:
    fixed sine-cosine positions in two dimensions.
"""

from typing import Any

import numpy as np

from tff_ssl.encoders import network_ops

MLP_RATIO = 4
_LONGEST_WAVE = 10000.0


def blocks(ops: network_ops.Operations, x: Any, depth: int, heads: int) -> Any:
  """Applies pre-norm blocks and a last norm: [n, tokens, units] to the same shape.

  Args:
    ops: The interpreter.
    x: [n, tokens, units].
    depth: Number of blocks, 'block0', 'block1', ...
    heads: Heads of each block.
  """
  units = ops.shape(x)[-1]
  for index in range(depth):
    with ops.scope(f'block{index}'):
      attended = ops.attention(ops.layer_norm(x, 'norm1'), 'attention', heads=heads)
      x = ops.add(x, attended)
      hidden = ops.dense(
        ops.layer_norm(x, 'norm2'), 'mlp1', units=MLP_RATIO * units, gain=1.0
      )
      x = ops.add(x, ops.dense(ops.gelu(hidden), 'mlp2', units=units, gain=1.0))
  return ops.layer_norm(x, 'norm')


def positions(grid: tuple[int, int], dim: int) -> np.ndarray:
  """Returns a fixed code of each position: sines and cosines of its row and column.

  Args:
    grid: Rows and columns.
    dim: Units of the code, a multiple of 4.

  Returns:
    float64 [rows * columns, dim], row by row: sines, then cosines of the row in the
    first half, of the column in the second, at wave lengths from 2 pi to 20000 pi.

  Raises:
    ValueError: `dim` is not a multiple of 4.
  """
  if dim % 4:
    raise ValueError(f'dim of positions is {dim}; it must be a multiple of 4.')
  frequencies = _LONGEST_WAVE ** (-np.arange(dim // 4) / (dim // 4))
  coordinates = np.indices(grid).reshape(2, -1, 1)
  angles = coordinates * frequencies
  halves = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
  return np.concatenate([halves[0], halves[1]], axis=-1)
