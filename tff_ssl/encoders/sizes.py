"""Sizes of the residual networks and of the vision transformers, by name."""

from collections.abc import Mapping
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
# Units of a transformer block's hidden layer, for each of its own.
MLP_RATIO = 4
