"""Vision transformers: 'vit_tiny' and, for small machines, 'vit_micro'.

An image is cut into patches, each patch becomes a token, its position is added, and
pre-norm transformer blocks follow. The encoding of an image is the mean of its tokens
after the last norm.

Sources:
  Dosovitskiy et al.: An Image is Worth 16x16 Words. ICLR 2021.
  Touvron et al.: Training data-efficient image transformers. ICML 2021. Table 1: the
    tiny one, 192 units, 12 layers, 3 heads.
  He et al.: Masked Autoencoders Are Scalable Vision Learners. CVPR 2022. Appendix A.1.

Deviations: no class token; MAE's paper finds pooling as good (A.1). Kernels are drawn
from a normal of variance 1 / fan_in, and norms have the epsilon of the group norms,
1e-5. 'vit_micro' is not from a paper.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import math
from typing import Annotated, Any, Literal

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.encoders import network_ops
from tff_ssl.encoders import pixels as pixels_lib
from tff_ssl.encoders import sizes
from tff_ssl.encoders import transformer
from tff_ssl.encoders.operations import group_normalization

NAMES = ('vit_micro', 'vit_tiny')
OPTIONS = ('patch_size',)
Pool = Literal['mean', 'class']
# Default number of patches along a side of an image.
_PATCHES = 16


@dataclasses.dataclass(frozen=True)
class ViTConfig(kinds.Kind):
  """Configuration of a vision transformer.

  Attributes:
    dim: units of a token, a multiple of 4 and of the heads.
    depth: blocks.
    heads: heads of each block.
    patch_size: side of a patch in pixels, a divisor of the image's sides.
    prefix: trained tokens before those of the patches: a class token and registers.
    trained_positions: whether positions are trained; otherwise they are sines and
      cosines.
    layer_scale: whether the branches of blocks end in a layer scale.
    epsilon: epsilon of the norms.
    pool: what encodes an image: 'mean', of its patches, or 'class', the first token.
    pixels: see `pixels.read`.
  """

  dim: kinds.Count
  depth: checks.Layers
  heads: kinds.Count
  patch_size: kinds.Count
  prefix: Annotated[int, kinds.Range(0, 1000)] = 0
  trained_positions: bool = False
  layer_scale: bool = False
  epsilon: Annotated[float, kinds.Range(1e-12, 1)] = group_normalization.NORM_EPSILON
  pool: Pool = 'mean'
  pixels: pixels_lib.Pixels = 'unit'

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.pool == 'class' and not self.prefix:
      raise ValueError("pool is 'class' and prefix is 0; prefix must be at least 1.")
    if self.dim % 4 or self.dim % self.heads:
      raise ValueError(
        f'dim is {self.dim}; it must be a multiple of 4 and of the {self.heads} heads.'
      )


@dataclasses.dataclass(frozen=True)
class VisionTransformer(network.Network):
  """An encoder that can also be given some of an image's patches.

  Attributes:
    config: its configuration.
  """

  config: ViTConfig

  @property
  def grid(self) -> tuple[int, int]:
    """Rows and columns of patches."""
    height, width, _ = self.input_shape
    return height // self.config.patch_size, width // self.config.patch_size

  @property
  def num_patches(self) -> int:
    """Patches of an image."""
    return math.prod(self.grid)

  def embed(self, params: Mapping[str, Any], images: Any) -> tf.Tensor:
    """Returns the tokens of all patches with their positions.

    Args:
      params: the encoder's parameters.
      images: [n, *input_shape].

    Returns:
      [n, num_patches, dim], row by row.
    """
    forward = functools.partial(_embed, self.config)
    part = network.Network(f'{self.name} embedding', self.input_shape, forward)
    return _apply_part(part.with_precision(self.precision), self.merged(params), images)

  def encode_tokens(self, params: Mapping[str, Any], tokens: tf.Tensor) -> tf.Tensor:
    """Returns the encodings of tokens that attend to each other.

    Args:
      params: the encoder's parameters.
      tokens: [n, k, dim], made by `embed`; all or some of each image's tokens.

    Returns:
      [n, k, dim], without those of the prefix. Their mean over all tokens of an image
      is what `apply` returns, unless that is the class token.
    """
    forward = functools.partial(_encode_patches, self.config)
    part = network.Network(f'{self.name} blocks', tuple(tokens.shape[1:]), forward)
    return _apply_part(part.with_precision(self.precision), self.merged(params), tokens)


def default_patch_size(image_shape: Sequence[int]) -> int:
  """Returns the least patch size above 1 that leaves at most 16 patches a side.

  That is a sixteenth of the side if 16 divides it: 2 at 32 pixels, 14 at 224. If no
  such size divides the sides, the patch is as large as the sides allow.

  Args:
    image_shape: (height, width, channels).
  """
  longest, common = max(image_shape[:2]), math.gcd(*image_shape[:2])
  divisors = (size for size in range(2, common + 1) if common % size == 0)
  return next((size for size in divisors if longest <= _PATCHES * size), common)


def configure(
  name: str, image_shape: Sequence[int], width: float, **options: Any
) -> ViTConfig:
  """Returns the configuration of one of `NAMES`; see `registry.build_encoder`."""
  size = sizes.VITS[name]
  own = {'patch_size': default_patch_size(checks.image_shape(image_shape)), **options}
  return ViTConfig(size.dim(width), size.depth, size.heads, **own)


def from_config(
  config: ViTConfig, image_shape: Sequence[int], name: str = 'vit'
) -> VisionTransformer:
  """Builds a vision transformer of any size.

  Args:
    config: its configuration.
    image_shape: (height, width, channels).
    name: name of the network.

  Raises:
    ValueError: the shape is not of an image, or patches do not fit in.
  """
  shape = checks.image_shape(image_shape)
  forward = functools.partial(_forward, config)
  return VisionTransformer(name, shape, forward, config)


def _forward(config: ViTConfig, ops: network_ops.Operations, x: Any) -> Any:
  """The whole network."""
  x = _embed(config, ops, x)
  if config.pool == 'mean':
    return ops.global_average_pool(_encode_patches(config, ops, x))
  return ops.global_average_pool(ops.crop_tokens(_encode(config, ops, x), 0, 1))


def _embed(config: ViTConfig, ops: network_ops.Operations, x: Any) -> Any:
  """From images to tokens with positions."""
  sides, size = ops.shape(x)[:2], config.patch_size
  if sides[0] % size or sides[1] % size:
    # The convolution would pad them.
    raise ValueError(
      f'patch_size is {size}; it must divide the sides of the images, {tuple(sides)}.'
    )
  x = pixels_lib.read(ops, x, config.pixels)
  with ops.scope('embedding'):
    # Patches do not overlap: a convolution is one matrix for all of them.
    x = ops.conv2d(
      x,
      'patch',
      filters=config.dim,
      kernel_size=config.patch_size,
      strides=config.patch_size,
      use_bias=True,
      gain=1.0,
    )
    rows, columns, _ = ops.shape(x)
    if config.trained_positions:
      return ops.positions(ops.tokens(x), 'positions')
    codes = transformer.positions((rows, columns), config.dim)
    return ops.offset(ops.tokens(x), 'positions', codes)


def _encode(config: ViTConfig, ops: network_ops.Operations, x: Any) -> Any:
  """From tokens to the encodings of the prefix and of these."""
  if config.prefix:
    x = ops.prefix(x, 'prefix', count=config.prefix)
  options = config.layer_scale, config.epsilon
  return transformer.blocks(ops, x, config.depth, config.heads, *options)


def _encode_patches(config: ViTConfig, ops: network_ops.Operations, x: Any) -> Any:
  """From tokens to their encodings."""
  x = _encode(config, ops, x)
  return ops.crop_tokens(x, config.prefix) if config.prefix else x


def _apply_part(
  part: network.Network, params: Mapping[str, Any], x: tf.Tensor
) -> tf.Tensor:
  """Computes a part of a network, with its share of the parameters."""
  own = {name: params[name] for name in part.specs if name in params}
  return part.apply(own, x)
