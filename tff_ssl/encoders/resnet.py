"""Residual networks: 8, 14, 18 and 50 layers.

The networks of 8 and 14 layers have three stages, for small images (16, 32, 64
channels; one or two blocks per stage). The networks of 18 and 50 layers have four
stages (64 to 512 channels), of basic and of bottleneck blocks; bottlenecks have the
stride in the 3 x 3 convolution. Blocks are conv-norm-relu-conv-norm, added to the
shortcut, then relu; where the shape changes, the shortcut is a 1 x 1 convolution with
norm.

Sources:
  He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition. CVPR 2016.
  Vemulapalli et al.: Federated Training of Dual Encoding Models on Small Non-IID
    Client Datasets. 2022. Section 4: group norm with 32 groups and weight
    standardization.

Deviations: groups have at least 8 channels, so that a layer has 32 groups only from 256
channels on; with groups=32, a layer that 32 groups do not fit has fewer
(`group_normalization.num_groups`).
"""

from collections.abc import Sequence
import dataclasses
from typing import Any, Literal

from tff_ssl.computing import kinds
from tff_ssl.encoders import checks
from tff_ssl.encoders import network_ops
from tff_ssl.encoders import pixels as pixels_lib
from tff_ssl.encoders import sizes
from tff_ssl.encoders.operations import group_normalization
from tff_ssl.encoders.operations import kernels
from tff_ssl.encoders.operations import operation

Stem = Literal['cifar', 'imagenet']
# 'symmetric' is PyTorch's padding of convolutions with strides; see
# `convolution.ZeroPad`.
Padding = Literal['same', 'symmetric']

NAMES = tuple(f'resnet{depth}' for depth in sizes.RESNETS)
OPTIONS = ('stem', 'normalization', 'groups', 'weight_standardization')


@dataclasses.dataclass(frozen=True)
class ResNetConfig(kinds.Kind):
  """Configuration of a residual network.

  Attributes:
    depth: layers with weights.
    width: factor on all numbers of channels (rounded); 1 is the published network.
    stem: 'cifar' is a 3 x 3 convolution, for images of 8 to about 64 pixels; 'imagenet'
      a 7 x 7 convolution and a max pooling, each of stride 2.
    normalization: 'group'; 'batch'; or 'none': biases instead, and residual branches
      drawn smaller, by the square root of their number, so that the sum keeps its
      scale.
    groups: most groups of a group norm; None: see `group_normalization.num_groups`.
    weight_standardization: whether convolutions use standardized kernels; with batch
      norm they never do.
    padding: of convolutions and poolings with strides.
    pixels: see `pixels.read`.
    strided_first: whether the stride of a bottleneck is in its first convolution, as in
      He et al., and not in the second.
    epsilon: of batch norm.
  """

  depth: Literal[8, 14, 18, 50]
  width: checks.Width = 1.0
  stem: Stem = 'cifar'
  normalization: checks.Norm = 'group'
  groups: kinds.Count | None = None
  weight_standardization: bool = True
  padding: Padding = 'same'
  pixels: pixels_lib.Pixels = 'unit'
  strided_first: bool = False
  epsilon: kinds.Positive = group_normalization.NORM_EPSILON

  @property
  def standardize(self) -> bool:
    """Whether kernels are standardized."""
    return self.weight_standardization and self.normalization != 'batch'

  @property
  def size(self) -> sizes.ResNetSize:
    """Layers and channels."""
    return sizes.RESNETS[self.depth].scaled(self.width)


def configure(
  name: str, image_shape: Sequence[int], width: float, **options: Any
) -> ResNetConfig:
  """Returns the configuration of one of `NAMES`; see `registry.build_encoder`."""
  del image_shape
  depth: Any = int(name.removeprefix('resnet'))
  return ResNetConfig(depth, width, **options)


def forward(config: ResNetConfig, ops: network_ops.Operations, x: Any) -> Any:
  """The whole network."""
  size = config.size
  x = pixels_lib.read(ops, x, config.pixels)
  with ops.scope('stem'):
    window, strides = (3, 1) if config.stem == 'cifar' else (7, 2)
    x = _conv_norm(config, ops, x, '', size.channels[0], window, strides)
    x = ops.relu(x)
    if config.stem == 'imagenet':
      # Zeros change no maximum behind a relu.
      x, padding = _padded(config, ops, x, 3, 2)
      x = ops.max_pool(x, size=3, strides=2, padding=padding)
  block = _bottleneck_block if size.bottleneck else _basic_block
  stages = zip(size.channels, size.blocks, strict=True)
  for stage, (channels, blocks) in enumerate(stages, start=1):
    with ops.scope(f'stage{stage}'):
      for index in range(blocks):
        strides = 2 if stage > 1 and index == 0 else 1
        with ops.scope(f'block{index}'):
          x = block(config, ops, x, channels, strides)
    x = ops.tap(x, f'stage{stage}')
  return ops.global_average_pool(x)


def _basic_block(
  config: ResNetConfig, ops: network_ops.Operations, x: Any, channels: int, strides: int
) -> Any:
  """Two 3 x 3 convolutions."""
  y = ops.relu(_conv_norm(config, ops, x, '1', channels, 3, strides))
  y = _conv_norm(config, ops, y, '2', channels, 3, gain=_branch_gain(config))
  return ops.relu(ops.add(y, _shortcut(config, ops, x, channels, strides)))


def _bottleneck_block(
  config: ResNetConfig, ops: network_ops.Operations, x: Any, channels: int, strides: int
) -> Any:
  """A 3 x 3 convolution between two of 1 x 1."""
  first, second = (strides, 1) if config.strided_first else (1, strides)
  y = ops.relu(_conv_norm(config, ops, x, '1', channels, 1, first))
  y = ops.relu(_conv_norm(config, ops, y, '2', channels, 3, second))
  outputs = channels * sizes.EXPANSION
  y = _conv_norm(config, ops, y, '3', outputs, 1, gain=_branch_gain(config))
  return ops.relu(ops.add(y, _shortcut(config, ops, x, outputs, strides)))


def _shortcut(
  config: ResNetConfig, ops: network_ops.Operations, x: Any, channels: int, strides: int
) -> Any:
  """The block's input, projected if its shape differs from the output's."""
  if strides == 1 and ops.shape(x)[-1] == channels:
    return x
  return _conv_norm(config, ops, x, '_shortcut', channels, 1, strides, gain=1.0)


def _branch_gain(config: ResNetConfig) -> float:
  """The gain of a branch's last convolution."""
  if config.normalization == 'none':
    return kernels.RELU_GAIN / sum(config.size.blocks)
  return kernels.RELU_GAIN


def _conv_norm(
  config: ResNetConfig,
  ops: network_ops.Operations,
  x: Any,
  suffix: str,
  filters: int,
  kernel_size: int,
  strides: int = 1,
  gain: float = kernels.RELU_GAIN,
) -> Any:
  """A convolution and its norm, named conv<suffix> and norm<suffix>."""
  x, padding = _padded(config, ops, x, kernel_size, strides)
  x = ops.conv2d(
    x,
    f'conv{suffix}',
    filters=filters,
    kernel_size=kernel_size,
    strides=strides,
    padding=padding,
    use_bias=config.normalization == 'none',
    standardize=config.standardize,
    gain=gain,
  )
  return ops.norm(
    x, f'norm{suffix}', config.normalization, config.groups, epsilon=config.epsilon
  )


def _padded(
  config: ResNetConfig, ops: network_ops.Operations, x: Any, window: int, strides: int
) -> tuple[Any, str]:
  """Returns maps with zeros around them, if needed, and the padding that remains."""
  if config.padding == 'same' or strides == 1 or window == 1:
    return x, operation.SAME
  return ops.zero_pad(x, width=window // 2), operation.VALID
