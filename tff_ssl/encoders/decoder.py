"""The decoder of a masked autoencoder: from the visible patches to all pixels.

Source: He et al.: Masked Autoencoders Are Scalable Vision Learners. CVPR 2022. Section
3, 'MAE decoder'.

Deviations: the mask token is a row of the embedding's kernel, which an indicator of
masked patches selects. The embedding of visible tokens, the mask token and its place
are then one product. The function is the same: a masked patch becomes a bias plus the
mask token's own vector.
"""

import functools
from typing import Any

from tff_ssl.encoders import network
from tff_ssl.encoders import network_ops
from tff_ssl.encoders import transformer
from tff_ssl.encoders import vit

# The paper's decoders are shallow: here a third of the encoder's layers, 4 for 12.
_ENCODER_LAYERS = 3


def build_decoder(
  encoder: vit.VisionTransformer,
  dim: int | None = None,
  depth: int | None = None,
  heads: int | None = None,
) -> network.Network:
  """Builds a decoder for all patches of an encoder's images.

  Args:
    encoder: The encoder of the visible patches.
    dim: Units of the decoder's tokens; the encoder's when None.
    depth: Blocks; a third of the encoder's when None, at least 1.
    heads: Heads of each block; the encoder's when None.

  Returns:
    A network [n, patches, encoder dim + 1] -> [n, patches, pixels]. Its input holds the
    encoding and 0 for each visible patch, zeros and 1 for each masked patch. Its output
    holds the values of each patch in the order of `losses.reconstruction.patchify`.

  Raises:
    ValueError: An argument is not allowed.
  """
  config = vit.ViTConfig(
    encoder.config.dim if dim is None else dim,
    max(1, encoder.config.depth // _ENCODER_LAYERS) if depth is None else depth,
    encoder.config.heads if heads is None else heads,
    encoder.config.patch_size,
  )
  pixels = config.patch_size**2 * encoder.input_shape[-1]
  forward = functools.partial(_forward, config, encoder.grid, pixels)
  return network.Network(
    'decoder', (encoder.num_patches, encoder.config.dim + 1), forward
  )


def _forward(
  config: vit.ViTConfig,
  grid: tuple[int, int],
  pixels: int,
  ops: network_ops.Operations,
  x: Any,
) -> Any:
  """The whole network."""
  x = ops.dense(x, 'embedding', units=config.dim, gain=1.0)
  x = ops.offset(x, 'positions', transformer.positions(grid, config.dim))
  x = transformer.blocks(ops, x, config.depth, config.heads)
  return ops.dense(x, 'pixels', units=pixels, gain=1.0)
