"""The MobileNetV2 of keras.applications, also to start from its published weights.

Sources:
  Sandler, Howard, Zhu, Zhmoginov, Chen: MobileNetV2: Inverted Residuals and Linear
    Bottlenecks. CVPR 2018. Table 2.
  keras.applications, mobilenet_v2.py. Its zeros around maps with strides are those of
    padding 'same'.
"""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.encoders import network_ops
from tff_ssl.encoders import pixels as pixels_lib
from tff_ssl.encoders.operations import kernels

NAMES = ('keras_mobilenet_v2',)
NORMS = ('batch', 'none')
_EPSILON = 1e-3
# (channels, blocks, stride of the first one) of each group of blocks.
_GROUPS = (
  (16, 1, 1),
  (24, 2, 2),
  (32, 3, 2),
  (64, 4, 2),
  (96, 3, 1),
  (160, 3, 2),
  (320, 1, 1),
)
_EXPANSION = 6
_STEM, _FEATURES = 32, 1280


@dataclasses.dataclass(frozen=True)
class MobileNetConfig:
  """Configuration of a MobileNetV2.

  Attributes:
    width: factor on all numbers of channels, Keras's alpha; features have at least
      1,280.
    normalization: 'batch'; or 'none': biases instead, and residual branches drawn
      smaller.
    pixels: one of `pixels.NAMES`.
  """

  width: float = 1.0
  normalization: str = 'batch'
  pixels: str = pixels_lib.SIGNED

  def __post_init__(self) -> None:
    """Checks the fields."""
    checks.width(self.width)
    checks.one_of('normalization', self.normalization, NORMS)
    checks.one_of('pixels', self.pixels, pixels_lib.NAMES)


def build_encoder(
  name: str,
  image_shape: Sequence[int],
  width: float = 1.0,
  normalization: str = 'batch',
  pixels: str = pixels_lib.SIGNED,
) -> network.Network:
  """Builds a MobileNetV2 [n, *image_shape] -> [n, 1280, or more above width 1].

  Args:
    name: one of `NAMES`.
    image_shape: (height, width, channels).
    width: see `MobileNetConfig`, also for all that follow.
    normalization: 'batch' or 'none'.
    pixels: one of `pixels.NAMES`.

  Raises:
    ValueError: an argument is not allowed.
  """
  checks.one_of('encoder', name, NAMES)
  return from_config(MobileNetConfig(width, normalization, pixels), image_shape, name)


def from_config(
  config: MobileNetConfig, image_shape: Sequence[int], name: str
) -> network.Network:
  """Builds a MobileNetV2 from its configuration; blocks are tapped as 'block0', ..."""
  forward = functools.partial(_forward, config)
  return network.Network(name, checks.image_shape(image_shape), forward, config)


def _forward(config: MobileNetConfig, ops: network_ops.Operations, x: Any) -> Any:
  """The whole network."""
  x = pixels_lib.read(ops, x, config.pixels)
  with ops.scope('stem'):
    x = _conv_norm(config, ops, x, '', _channels(_STEM * config.width), 3, 2)
    x = ops.relu6(x)
  index = 0
  for filters, blocks, strides in _GROUPS:
    outputs = _channels(int(filters * config.width))
    for first in range(blocks):
      with ops.scope(f'block{index}'):
        expansion = _EXPANSION if index else 1
        x = _block(config, ops, x, outputs, expansion, 1 if first else strides)
      x = ops.tap(x, f'block{index}')
      index += 1
  with ops.scope('last'):
    features = _channels(_FEATURES * max(1.0, config.width))
    x = ops.relu6(_conv_norm(config, ops, x, '', features))
  return ops.global_average_pool(x)


def _block(
  config: MobileNetConfig,
  ops: network_ops.Operations,
  x: Any,
  outputs: int,
  expansion: int,
  strides: int,
) -> Any:
  """More channels, a convolution of each by itself, and fewer channels."""
  inputs = ops.shape(x)[-1]
  y = x
  if expansion > 1:
    y = ops.relu6(_conv_norm(config, ops, y, '1', expansion * inputs))
  folded = config.normalization == 'none'
  y = ops.depthwise_conv2d(y, 'conv2', kernel_size=3, strides=strides, use_bias=folded)
  y = ops.relu6(_norm(config, ops, y, '2'))
  blocks = sum(count for _, count, _ in _GROUPS)
  y = _conv_norm(config, ops, y, '3', outputs, gain=1 / blocks if folded else 1.0)
  return ops.add(x, y) if inputs == outputs and strides == 1 else y


def _conv_norm(
  config: MobileNetConfig,
  ops: network_ops.Operations,
  x: Any,
  suffix: str,
  filters: int,
  kernel_size: int = 1,
  strides: int = 1,
  gain: float = kernels.RELU_GAIN,
) -> Any:
  """A convolution and its norm, named conv<suffix> and norm<suffix>."""
  x = ops.conv2d(
    x,
    f'conv{suffix}',
    filters=filters,
    kernel_size=kernel_size,
    strides=strides,
    use_bias=config.normalization == 'none',
    gain=gain,
  )
  return _norm(config, ops, x, suffix)


def _norm(
  config: MobileNetConfig, ops: network_ops.Operations, x: Any, suffix: str
) -> Any:
  if config.normalization == 'none':
    return x
  return ops.batch_norm(x, f'norm{suffix}', epsilon=_EPSILON)


def _channels(count: float) -> int:
  """Returns Keras's number of channels: a multiple of 8, not below 90 % of `count`."""
  rounded = max(8, int(count + 4) // 8 * 8)
  return rounded if rounded >= 0.9 * count else rounded + 8
