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
import functools
from typing import Any

from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.encoders import network_ops
from tff_ssl.encoders import pixels as pixels_lib
from tff_ssl.encoders import sizes
from tff_ssl.encoders.operations import group_normalization
from tff_ssl.encoders.operations import kernels
from tff_ssl.encoders.operations import operation

STEMS = ('cifar', 'imagenet')
# 'symmetric' is PyTorch's padding of convolutions with strides; see
# `convolution.ZeroPad`.
SAME, SYMMETRIC = 'same', 'symmetric'

NAMES = tuple(f'resnet{depth}' for depth in sizes.RESNETS)


@dataclasses.dataclass(frozen=True)
class ResNetConfig:
  """Configuration of a residual network.

  Attributes:
    depth: layers with weights: 8, 14, 18 or 50.
    width: factor on all numbers of channels (rounded); 1 is the published network.
    stem: 'cifar' is a 3 x 3 convolution, for images of 8 to about 64 pixels; 'imagenet'
      a 7 x 7 convolution and a max pooling, each of stride 2.
    normalization: 'group'; 'batch'; or 'none': biases instead, and residual branches
      drawn smaller, by the square root of their number, so that the sum keeps its
      scale.
    groups: most groups of a group norm; None: see `group_normalization.num_groups`.
    weight_standardization: whether convolutions use standardized kernels; with batch
      norm they never do.
    padding: 'same' or 'symmetric', of convolutions and poolings with strides.
    pixels: one of `pixels.NAMES`.
    strided_first: whether the stride of a bottleneck is in its first convolution, as in
      He et al., and not in the second.
    epsilon: of batch norm.
  """

  depth: int
  width: float = 1.0
  stem: str = 'cifar'
  normalization: str = 'group'
  groups: int | None = None
  weight_standardization: bool = True
  padding: str = SAME
  pixels: str = pixels_lib.UNIT
  strided_first: bool = False
  epsilon: float = group_normalization.NORM_EPSILON

  def __post_init__(self) -> None:
    """Checks the fields."""
    checks.one_of('depth', self.depth, (*sizes.RESNETS,))
    checks.width(self.width)
    checks.one_of('stem', self.stem, STEMS)
    checks.norm(self.normalization, self.groups)
    checks.one_of('padding', self.padding, (SAME, SYMMETRIC))
    checks.one_of('pixels', self.pixels, pixels_lib.NAMES)

  @property
  def standardize(self) -> bool:
    """Whether kernels are standardized."""
    return self.weight_standardization and self.normalization != 'batch'

  @property
  def size(self) -> sizes.ResNetSize:
    """Layers and channels."""
    return sizes.RESNETS[self.depth].scaled(self.width)


def build_encoder(
  name: str = 'resnet8',
  image_shape: Sequence[int] = (32, 32, 3),
  width: float = 1.0,
  stem: str = 'cifar',
  normalization: str = 'group',
  groups: int | None = None,
  weight_standardization: bool = True,
) -> network.Network:
  """Builds a residual encoder.

  Args:
    name: one of `NAMES`.
    image_shape: (height, width, channels).
    width: see `ResNetConfig`, also for all that follow.
    stem: 'cifar' or 'imagenet'.
    normalization: 'group', 'batch' or 'none'.
    groups: most groups of a group norm.
    weight_standardization: whether kernels are standardized.

  Returns:
    A network [n, *image_shape] -> [n, output_dim], the feature maps averaged over
    positions; output_dim is 64 (depths 8, 14), 512 (18) or 2048 (50) times width. The
    residual stages are tapped as 'stage1', 'stage2', ...

  Raises:
    ValueError: an argument is not allowed.
  """
  checks.one_of('encoder', name, NAMES)
  config = ResNetConfig(
    depth=int(name.removeprefix('resnet')),
    width=width,
    stem=stem,
    normalization=normalization,
    groups=groups,
    weight_standardization=weight_standardization,
  )
  return from_config(config, image_shape, name)


def from_config(
  config: ResNetConfig, image_shape: Sequence[int], name: str
) -> network.Network:
  """Builds a residual encoder from its configuration.

  Args:
    config: its configuration.
    image_shape: (height, width, channels).
    name: name of the network.

  Raises:
    ValueError: the shape is not of an image, or a layer cannot be built for it.
  """
  forward = functools.partial(_forward, config)
  return network.Network(name, checks.image_shape(image_shape), forward, config)


def _forward(config: ResNetConfig, ops: network_ops.Operations, x: Any) -> Any:
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
  if config.padding == SAME or strides == 1 or window == 1:
    return x, operation.SAME
  return ops.zero_pad(x, width=window // 2), operation.VALID
