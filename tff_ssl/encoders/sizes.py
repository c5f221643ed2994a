"""Sizes of residual networks, transformers and inverted bottlenecks, by name."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class ResNetSize(NamedTuple):
  """How many layers a residual network has, and how wide they are.

  Attributes:
    channels: Channels of each stage, before a bottleneck's expansion.
    blocks: Blocks of each stage.
    bottleneck: Whether blocks are bottlenecks.
  """

  channels: tuple[int, ...]
  blocks: tuple[int, ...]
  bottleneck: bool = False

  def scaled(self, width: float) -> 'ResNetSize':
    """Returns the size with a factor on all numbers of channels, rounded."""
    return self._replace(channels=tuple(round(c * width) for c in self.channels))


class ViTSize(NamedTuple):
  """How many layers a vision transformer has, and how wide they are.

  Attributes:
    head: Units of a head.
    depth: Blocks.
    heads: Heads of each block.
  """

  head: int
  depth: int
  heads: int

  def dim(self, width: float) -> int:
    """Returns the units of a token, with a factor on the units of each head.

    Args:
      width: The factor; a head's units are rounded to a multiple of 4.
    """
    return self.heads * 4 * max(1, round(self.head * width / 4))


class InvertedBlock(NamedTuple):
  """More channels, a convolution of each by itself, and fewer channels.

  Attributes:
    inputs: Channels before it.
    inside: Channels inside; as many as `inputs`: they do not become more.
    outputs: Channels behind it.
    kernel_size: Side of the kernels.
    strides: Step of the convolution inside.
  """

  inputs: int
  inside: int
  outputs: int
  kernel_size: int
  strides: int


class MobileNetSize(NamedTuple):
  """How many inverted bottlenecks a network has, and how wide they are.

  Attributes:
    groups: Of each group of blocks the channels, the number of blocks, the stride of
      the first one, and the side of kernels.
    fixed_ends: Whether a width leaves the first and the last convolution as they are.
  """

  groups: tuple[tuple[int, int, int, int], ...]
  fixed_ends: bool = False

  def stem(self, width: float) -> int:
    """Returns the channels of the first convolution, with a factor `width`."""
    return 32 if self.fixed_ends else _multiple_of_8(32 * width)

  def features(self, width: float) -> int:
    """Returns the channels of the last convolution, with a factor of at least 1."""
    return 1280 if self.fixed_ends else _multiple_of_8(1280 * max(1.0, width))

  def blocks(self, width: float) -> Iterator[InvertedBlock]:
    """Yields the blocks, with a factor `width` on their channels."""
    inputs, expansion = self.stem(width), 1
    for channels, count, strides, kernel_size in self.groups:
      outputs = _multiple_of_8(int(channels * width))
      for index in range(count):
        step = 1 if index else strides
        yield InvertedBlock(inputs, expansion * inputs, outputs, kernel_size, step)
        inputs, expansion = outputs, 6


def _multiple_of_8(count: float) -> int:
  """Returns a multiple of 8 that is not below 90 % of `count`."""
  rounded = max(8, int(count + 4) // 8 * 8)
  return rounded if rounded >= 0.9 * count else rounded + 8


# By depth.
RESNETS: Mapping[int, ResNetSize] = {
  8: ResNetSize((16, 32, 64), (1, 1, 1)),
  14: ResNetSize((16, 32, 64), (2, 2, 2)),
  18: ResNetSize((64, 128, 256, 512), (2, 2, 2, 2)),
  50: ResNetSize((64, 128, 256, 512), (3, 4, 6, 3), bottleneck=True),
}
# Channels behind a bottleneck, for each inside.
EXPANSION = 4
VITS: Mapping[str, ViTSize] = {
  'vit_micro': ViTSize(32, 4, 2),
  'vit_tiny': ViTSize(64, 12, 3),
  'vit_small': ViTSize(64, 12, 6),
  'vit_base': ViTSize(64, 12, 12),
}
MOBILENETS: Mapping[str, MobileNetSize] = {
  'mobilenet_v2': MobileNetSize(
    (
      (16, 1, 1, 3),
      (24, 2, 2, 3),
      (32, 3, 2, 3),
      (64, 4, 2, 3),
      (96, 3, 1, 3),
      (160, 3, 2, 3),
      (320, 1, 1, 3),
    )
  ),
  'efficientnet_lite0': MobileNetSize(
    (
      (16, 1, 1, 3),
      (24, 2, 2, 3),
      (40, 2, 2, 5),
      (80, 3, 2, 3),
      (112, 3, 1, 5),
      (192, 4, 2, 5),
      (320, 1, 1, 3),
    ),
    fixed_ends=True,
  ),
}
# The epsilon of their batch norm.
MOBILENET_EPSILON = 1e-3
# Units of a transformer block's hidden layer, for each of its own.
MLP_RATIO = 4
