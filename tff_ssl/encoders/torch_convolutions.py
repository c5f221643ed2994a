"""Published weights of PyTorch's convolutional networks, as the parameters of ours.

A batch norm's variance becomes a mean square; or each norm, with the statistics of the
file, is folded into the kernel and the bias of the convolution before it.

Sources:
  torchvision, timm: models/resnet.py.
  efficientnet_lite_pytorch: model.py.
"""

from collections.abc import Iterator, Mapping
import dataclasses

import numpy as np

from tff_ssl.encoders import sizes
from tff_ssl.encoders import torch_layout

_Rows = Iterator[torch_layout.Row]


@dataclasses.dataclass(frozen=True)
class _Layout(torch_layout.Layout):
  """A network of convolutions and batch norms.

  Attributes:
    folded: Whether each batch norm is folded.
    epsilon: What batch norms add to variances.
  """

  folded: bool
  epsilon: float

  def _conv_norm(
    self,
    scope: str,
    suffix: str,
    conv: str,
    norm: str,
    shape: torch_layout.Shape,
    depthwise: bool = False,
  ) -> _Rows:
    """Yields the parameters of a convolution and its batch norm.

    Args:
      scope: Our scope of both.
      suffix: Of our names.
      conv: The convolution's name in the file.
      norm: The norm's.
      shape: The kernel's in the file.
      depthwise: Whether it is a convolution of each channel by itself.
    """
    kernel = {f'{conv}.weight': shape}
    own, norms = f'{scope}/conv{suffix}', f'{scope}/norm{suffix}'
    turn, last = torch_layout.kernel, 'kernel'
    if depthwise:
      turn, last = _depthwise, 'depthwise_kernel'
    scale, shift, mean, variance = (
      {f'{norm}.{part}': shape[:1]}
      for part in ('weight', 'bias', 'running_mean', 'running_var')
    )

    def folded_kernel(
      kernel: np.ndarray, scale: np.ndarray, variance: np.ndarray
    ) -> np.ndarray:
      return turn(kernel * self._factor(scale, variance)[:, None, None, None])

    def folded_bias(
      scale: np.ndarray, shift: np.ndarray, mean: np.ndarray, variance: np.ndarray
    ) -> np.ndarray:
      return shift - mean * self._factor(scale, variance)

    row, same = torch_layout.Row, torch_layout.same
    if self.folded:
      yield row(f'{own}/{last}', kernel | scale | variance, folded_kernel)
      yield row(f'{own}/bias', scale | shift | mean | variance, folded_bias)
      return
    yield row(f'{own}/{last}', kernel, turn)
    yield row(f'{norms}/gamma', scale, same)
    yield row(f'{norms}/beta', shift, same)
    yield row(f'{norms}/population_mean', mean, same)
    yield row(f'{norms}/population_square', mean | variance, _mean_square)

  def _factor(self, scale: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Returns what a batch norm multiplies by."""
    return scale / np.sqrt(variance + self.epsilon, dtype=np.float64)


@dataclasses.dataclass(frozen=True)
class ResNetLayout(_Layout):
  """A residual network.

  Attributes:
    size: Its layers and channels.
  """

  size: sizes.ResNetSize

  def rows(self, shapes: Mapping[str, torch_layout.Shape]) -> _Rows:
    """See the base class."""
    del shapes
    widths, blocks, bottleneck = self.size
    yield from self._conv_norm('stem', '', 'conv1', 'bn1', (widths[0], 3, 7, 7))
    inputs = widths[0]
    for stage, (width, count) in enumerate(zip(widths, blocks, strict=True), start=1):
      for index in range(count):
        own, name = f'stage{stage}/block{index}', f'layer{stage}.{index}'
        outputs = width * sizes.EXPANSION if bottleneck else width
        kernels = [(width, inputs, 3, 3), (width, width, 3, 3)]
        if bottleneck:
          kernels = [
            (width, inputs, 1, 1),
            (width, width, 3, 3),
            (outputs, width, 1, 1),
          ]
        for k, shape in enumerate(kernels, start=1):
          parts = f'{name}.conv{k}', f'{name}.bn{k}'
          yield from self._conv_norm(own, f'{k}', *parts, shape)
        if index == 0 and (stage > 1 or inputs != outputs):
          parts = f'{name}.downsample.0', f'{name}.downsample.1'
          shape = (outputs, inputs, 1, 1)
          yield from self._conv_norm(own, '_shortcut', *parts, shape)
        inputs = outputs


@dataclasses.dataclass(frozen=True)
class MobileNetLayout(_Layout):
  """A network of inverted bottlenecks, by the names of efficientnet_lite_pytorch.

  Attributes:
    size: Its blocks and channels.
    width: Factor on the channels.
  """

  size: sizes.MobileNetSize
  width: float

  def rows(self, shapes: Mapping[str, torch_layout.Shape]) -> _Rows:
    """See the base class."""
    del shapes
    stem = self.size.stem(self.width), 3, 3, 3
    yield from self._conv_norm('stem', '', '_conv_stem', '_bn0', stem)
    for index, block in enumerate(self.size.blocks(self.width)):
      own, name = f'block{index}', f'_blocks.{index}'
      inputs, inside, outputs, side, _ = block
      if inside > inputs:
        parts = f'{name}._expand_conv', f'{name}._bn0'
        yield from self._conv_norm(own, '1', *parts, (inside, inputs, 1, 1))
      parts = f'{name}._depthwise_conv', f'{name}._bn1'
      shape = inside, 1, side, side
      yield from self._conv_norm(own, '2', *parts, shape, depthwise=True)
      parts = f'{name}._project_conv', f'{name}._bn2'
      yield from self._conv_norm(own, '3', *parts, (outputs, inside, 1, 1))
    last = self.size.features(self.width), outputs, 1, 1
    yield from self._conv_norm('last', '', '_conv_head', '_bn1', last)


def resnet(depth: int, width: float = 1.0, folded: bool = False) -> ResNetLayout:
  """Returns the layout of a residual network.

  Args:
    depth: 18 or 50.
    width: Factor on the numbers of channels; published files have 1.
    folded: Whether each batch norm is folded.
  """
  # The epsilon is PyTorch's.
  return ResNetLayout(folded, 1e-5, sizes.RESNETS[depth].scaled(width))


def mobilenet(name: str, width: float = 1.0, folded: bool = False) -> MobileNetLayout:
  """Returns the layout of a network of inverted bottlenecks.

  Args:
    name: One of `sizes.MOBILENETS`.
    width: Factor on the numbers of channels.
    folded: Whether each batch norm is folded.
  """
  size = sizes.MOBILENETS[name]
  return MobileNetLayout(folded, sizes.MOBILENET_EPSILON, size, width)


def _depthwise(values: np.ndarray) -> np.ndarray:
  """From [channels, 1, height, width]: as Keras has it."""
  return values.transpose(2, 3, 0, 1)


def _mean_square(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
  return np.square(mean, dtype=np.float64) + variance
