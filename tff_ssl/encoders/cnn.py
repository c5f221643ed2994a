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
import functools
from typing import Any

from tff_ssl.computing import checks as computing_checks
from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.encoders import network_ops

_BLOCKS = {'conv2': 2, 'conv4': 4}
_CHANNELS = 64
NAMES = tuple(_BLOCKS)


@dataclasses.dataclass(frozen=True)
class CnnConfig:
  """Configuration of a plain convolutional network.

  Attributes:
    blocks: blocks, each of which halves the height and the width.
    channels: of each convolution, and features of an image.
    normalization: 'group', 'batch' or 'none'.
    groups: most groups of a group norm; None: see `group_normalization.num_groups`.
  """

  blocks: int
  channels: int = _CHANNELS
  normalization: str = 'group'
  groups: int | None = None

  def __post_init__(self) -> None:
    """Checks the fields."""
    checks.layers(blocks=self.blocks)
    computing_checks.at_least(1, channels=self.channels)
    checks.norm(self.normalization, self.groups)


def build_encoder(
  name: str,
  image_shape: Sequence[int],
  width: float = 1.0,
  normalization: str = 'group',
  groups: int | None = None,
) -> network.Network:
  """Builds a plain convolutional network.

  Args:
    name: one of `NAMES`.
    image_shape: (height, width, channels).
    width: factor on the 64 channels of all blocks (rounded).
    normalization: see `CnnConfig`.
    groups: see `CnnConfig`.

  Returns:
    A network [n, *image_shape] -> [n, 64 * width], whose blocks are tapped as 'stage1',
    'stage2', ...

  Raises:
    ValueError: an argument is not allowed.
  """
  checks.one_of('encoder', name, NAMES)
  checks.width(width)
  config = CnnConfig(_BLOCKS[name], round(_CHANNELS * width), normalization, groups)
  return from_config(config, image_shape, name)


def from_config(
  config: CnnConfig, image_shape: Sequence[int], name: str
) -> network.Network:
  """Builds a plain convolutional network of any size.

  Args:
    config: its configuration.
    image_shape: (height, width, channels).
    name: name of the network.

  Raises:
    ValueError: the shape is not of an image.
  """
  forward = functools.partial(_forward, config)
  return network.Network(name, checks.image_shape(image_shape), forward, config)


def _forward(config: CnnConfig, ops: network_ops.Operations, x: Any) -> Any:
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
