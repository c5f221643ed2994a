"""MobileNetV2 and EfficientNet-Lite0, also to start from their published weights.

Both are made of inverted bottlenecks, and their zeros around maps with strides are
those of padding 'same'. MobileNetV2 is that of keras.applications. EfficientNet-Lite0
is EfficientNet-B0 without squeeze and excitation, with relu6.

Sources:
  Sandler, Howard, Zhu, Zhmoginov, Chen: MobileNetV2: Inverted Residuals and Linear
    Bottlenecks. CVPR 2018. Table 2.
  Tan, Le: EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks.
    ICML 2019. Table 1.
  keras.applications, mobilenet_v2.py; TensorFlow's efficientnet/lite, and its copy in
    PyTorch, the package efficientnet_lite_pytorch.
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
from tff_ssl.encoders.operations import kernels

NORMS = ('batch', 'none')


@dataclasses.dataclass(frozen=True)
class MobileNetConfig:
  """Configuration of a network of inverted bottlenecks.

  Attributes:
    width: factor on the numbers of channels, Keras's alpha. The features of MobileNetV2
      have at least 1,280; EfficientNet-Lite0 leaves its first 32 and its 1,280 features
      as they are.
    normalization: 'batch'; or 'none': biases instead, and residual branches drawn
      smaller.
    pixels: one of `pixels.NAMES`.
    size: one of `sizes.MOBILENETS`.
  """

  width: float = 1.0
  normalization: str = 'batch'
  pixels: str = pixels_lib.SIGNED
  size: str = 'mobilenet_v2'

  def __post_init__(self) -> None:
    """Checks the fields."""
    checks.width(self.width)
    checks.one_of('normalization', self.normalization, NORMS)
    checks.one_of('pixels', self.pixels, pixels_lib.NAMES)
    checks.one_of('size', self.size, (*sizes.MOBILENETS,))


_CONFIGS = {
  'keras_mobilenet_v2': MobileNetConfig(),
  'torch_efficientnet_lite0': MobileNetConfig(
    pixels=pixels_lib.LITE, size='efficientnet_lite0'
  ),
}
NAMES = (*_CONFIGS,)


def build_encoder(
  name: str,
  image_shape: Sequence[int],
  width: float = 1.0,
  normalization: str = 'batch',
  pixels: str | None = None,
) -> network.Network:
  """Builds a network [n, *image_shape] -> [n, 1280; MobileNetV2: more above width 1].

  Args:
    name: one of `NAMES`.
    image_shape: (height, width, channels).
    width: see `MobileNetConfig`, also for all that follow.
    normalization: 'batch' or 'none'.
    pixels: one of `pixels.NAMES`; None: what the published weights expect.

  Raises:
    ValueError: an argument is not allowed.
  """
  checks.one_of('encoder', name, NAMES)
  own = _CONFIGS[name]
  config = dataclasses.replace(
    own, width=width, normalization=normalization, pixels=pixels or own.pixels
  )
  return from_config(config, image_shape, name)


def from_config(
  config: MobileNetConfig, image_shape: Sequence[int], name: str
) -> network.Network:
  """Builds a network from its configuration; blocks are tapped as 'block0', ..."""
  forward = functools.partial(_forward, config)
  return network.Network(name, checks.image_shape(image_shape), forward, config)


def _forward(config: MobileNetConfig, ops: network_ops.Operations, x: Any) -> Any:
  """The whole network."""
  size = sizes.MOBILENETS[config.size]
  blocks = list(size.blocks(config.width))
  x = pixels_lib.read(ops, x, config.pixels)
  with ops.scope('stem'):
    x = ops.relu6(_conv_norm(config, ops, x, '', size.stem(config.width), 3, 2))
  for index, block in enumerate(blocks):
    with ops.scope(f'block{index}'):
      x = _block(config, ops, x, block, 1 / len(blocks))
    x = ops.tap(x, f'block{index}')
  with ops.scope('last'):
    x = ops.relu6(_conv_norm(config, ops, x, '', size.features(config.width)))
  return ops.global_average_pool(x)


def _block(
  config: MobileNetConfig,
  ops: network_ops.Operations,
  x: Any,
  block: sizes.InvertedBlock,
  gain: float,
) -> Any:
  """One block; without norms, its last kernel is drawn with `gain`."""
  y, folded = x, config.normalization == 'none'
  inputs, inside, outputs, side, step = block
  if inside > inputs:
    y = ops.relu6(_conv_norm(config, ops, y, '1', inside))
  y = ops.depthwise_conv2d(y, 'conv2', kernel_size=side, strides=step, use_bias=folded)
  y = ops.relu6(_norm(config, ops, y, '2'))
  y = _conv_norm(config, ops, y, '3', outputs, gain=gain if folded else 1.0)
  return ops.add(x, y) if inputs == outputs and step == 1 else y


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
  return ops.batch_norm(x, f'norm{suffix}', epsilon=sizes.MOBILENET_EPSILON)
