"""Plain convolutional networks of two or four blocks, for small images and devices.

A block is a 3 x 3 convolution, norm, relu and a max pooling of stride 2; the last
block's maps are averaged over positions.

Source: Oriol Vinyals, Charles Blundell, Timothy Lillicrap, Koray Kavukcuoglu, Daan
Wierstra. Matching Networks for One Shot Learning. NeurIPS 2016, section 4.1, whose
network is `conv4`.

Deviations: group norm, or batch norm; a mean over positions instead of a list of them,
so that images of any size have equally many features.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

from tff_ssl.computing import kinds
from tff_ssl.encoders import checks
from tff_ssl.encoders import network_ops

_BLOCKS = {'conv2': 2, 'conv4': 4}
_CHANNELS = 64
NAMES = tuple(_BLOCKS)
OPTIONS = ('normalization', 'groups')


@dataclasses.dataclass(frozen=True)
class CnnConfig(kinds.Kind):
  """Configuration of a plain convolutional network.

  Attributes:
    blocks: blocks, each of which halves the height and the width.
    channels: of each convolution, and features of an image.
    normalization: norm of each convolution; 'none': it has a bias instead.
    groups: most groups of a group norm; None: see `group_normalization.num_groups`.
  """

  blocks: checks.Layers
  channels: kinds.Count = _CHANNELS
  normalization: checks.Norm = 'group'
  groups: kinds.Count | None = None


def configure(
  name: str, image_shape: Sequence[int], width: float, **options: Any
) -> CnnConfig:
  """Returns the configuration of one of `NAMES`; see `registry.build_encoder`."""
  del image_shape
  return CnnConfig(_BLOCKS[name], round(_CHANNELS * width), **options)


def forward(config: CnnConfig, ops: network_ops.Operations, x: Any) -> Any:
  """The whole network."""
  for index in range(1, config.blocks + 1):
    with ops.scope(f'stage{index}'):
      x = ops.conv2d(
        x,
        'conv',
        filters=config.channels,
        kernel_size=3,
        use_bias=config.normalization == 'none',
      )
      x = ops.relu(ops.norm(x, 'norm', config.normalization, config.groups))
      x = ops.max_pool(x, size=2, strides=2)
    x = ops.tap(x, f'stage{index}')
  return ops.global_average_pool(x)
