"""ConvNeXt: 'convnext_tiny' and, for small machines, 'convnext_micro'.

A stem cuts the image into patches. In a block, a depthwise convolution mixes positions,
two dense layers mix channels, and the scaled result is added. Between stages a norm and
a convolution halve the sides.

Source: Liu, Mao, Wu, Feichtenhofer, Darrell, Xie: A ConvNet for the 2020s. CVPR 2022.

Deviations: no stochastic depth, so that nothing random enters an example's encoding;
kernels are drawn from a normal of variance 1 / fan_in; norms have the epsilon of the
group norms, 1e-5. 'convnext_micro' is not from a paper.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any, Literal

from tff_ssl.computing import kinds
from tff_ssl.encoders import checks
from tff_ssl.encoders import network_ops

# name -> (channels and blocks of each stage, side of a patch, side of the kernels).
_LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, int]] = {
  'convnext_micro': ((32, 64, 128), (1, 1, 1), 2, 3),
  'convnext_tiny': ((96, 192, 384, 768), (3, 3, 9, 3), 4, 7),
}
NAMES = (*_LAYOUTS,)
OPTIONS = ()


@dataclasses.dataclass(frozen=True)
class ConvNextConfig(kinds.Kind):
  """Configuration of a ConvNeXt.

  Attributes:
    layout: stages, patches and kernels.
    width: factor on all numbers of channels, rounded to a multiple of 8.
  """

  layout: Literal['convnext_micro', 'convnext_tiny']
  width: checks.Width = 1.0


def configure(name: Any, image_shape: Sequence[int], width: float) -> ConvNextConfig:
  """Returns the configuration of one of `NAMES`; see `registry.build_encoder`."""
  del image_shape
  return ConvNextConfig(name, width)


def forward(config: ConvNextConfig, ops: network_ops.Operations, x: Any) -> Any:
  """The whole network."""
  channels, blocks, patch, kernel_size = _LAYOUTS[config.layout]
  for stage, count in enumerate(blocks, start=1):
    with ops.scope(f'stage{stage}'):
      size = patch if stage == 1 else 2
      units = 8 * max(1, round(channels[stage - 1] * config.width / 8))
      x = x if stage == 1 else ops.layer_norm(x, 'norm')
      sides: dict[str, Any] = {'kernel_size': size, 'strides': size}
      x = ops.conv2d(x, 'conv', filters=units, use_bias=True, gain=1.0, **sides)
      x = ops.layer_norm(x, 'stem_norm') if stage == 1 else x
      for index in range(count):
        with ops.scope(f'block{index}'):
          x = ops.add(x, _branch(ops, x, units, kernel_size))
    x = ops.tap(x, f'stage{stage}')
  return ops.layer_norm(ops.global_average_pool(x), 'norm')


def _branch(ops: network_ops.Operations, x: Any, units: int, kernel_size: int) -> Any:
  """What a block adds to its input."""
  y = ops.depthwise_conv2d(x, 'conv', kernel_size=kernel_size, use_bias=True, gain=1.0)
  y = ops.dense(ops.layer_norm(y, 'norm'), 'mlp1', units=4 * units, gain=1.0)
  y = ops.dense(ops.gelu(y), 'mlp2', units=units, gain=1.0)
  return ops.layer_scale(y, 'scale')
