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
from typing import Any, Literal

from tff_ssl.computing import kinds
from tff_ssl.encoders import checks
from tff_ssl.encoders import network_ops
from tff_ssl.encoders import pixels as pixels_lib
from tff_ssl.encoders import sizes
from tff_ssl.encoders.operations import kernels

NORMS = ('batch', 'none')


@dataclasses.dataclass(frozen=True)
class MobileNetConfig(kinds.Kind):
  """Configuration of a network of inverted bottlenecks.

  Attributes:
    width: factor on the numbers of channels, Keras's alpha. The features of MobileNetV2
      have at least 1,280; EfficientNet-Lite0 leaves its first 32 and its 1,280 features
      as they are.
    normalization: 'batch'; or 'none': biases instead, and residual branches drawn
      smaller.
    pixels: see `pixels.read`.
    size: which network it is.
  """

  width: checks.Width = 1.0
  normalization: Literal['batch', 'none'] = 'batch'
  pixels: pixels_lib.Pixels = 'signed'
  size: Literal['mobilenet_v2', 'efficientnet_lite0'] = 'mobilenet_v2'


_CONFIGS = {
  'keras_mobilenet_v2': MobileNetConfig(),
  'torch_efficientnet_lite0': MobileNetConfig(pixels='lite', size='efficientnet_lite0'),
}
NAMES = (*_CONFIGS,)
OPTIONS = ('normalization', 'pixels')


def configure(
  name: str, image_shape: Sequence[int], width: float, **options: Any
) -> MobileNetConfig:
  """Returns the configuration of one of `NAMES`; see `registry.build_encoder`."""
  del image_shape
  return dataclasses.replace(_CONFIGS[name], width=width, **options)


def forward(config: MobileNetConfig, ops: network_ops.Operations, x: Any) -> Any:
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
