"""A ResNet-8 in PyTorch, and the race's views and losses for Flower and pfl-research.

`docs.elsewhere.torch_simclr` trains the same network with other norms.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from docs.race.peers import protocol

_GROUPS = 32
_STAGES = (16, 32, 64)
# Channels -> the norm behind a convolution.
Norm = Callable[[int], nn.Module]


class _ConvNorm(nn.Module):
  """A convolution with zero padding 'same', and its norm."""

  def __init__(
    self, norm: Norm, behind: bool, inputs: int, outputs: int, size: int, stride: int
  ):
    super().__init__()
    self.pad = (0, 1, 0, 1) if behind and stride > 1 and size > 1 else None
    padding = 0 if self.pad else size // 2
    self.conv = nn.Conv2d(inputs, outputs, size, stride, padding, bias=False)
    self.norm = norm(outputs)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    return self.norm(self.conv(functional.pad(x, self.pad) if self.pad else x))


class _Block(nn.Module):
  """Two 3 x 3 convolutions with a shortcut."""

  def __init__(self, norm: Norm, behind: bool, inputs: int, outputs: int, stride: int):
    super().__init__()
    self.first = _ConvNorm(norm, behind, inputs, outputs, 3, stride)
    self.second = _ConvNorm(norm, behind, outputs, outputs, 3, 1)
    same = inputs == outputs and stride == 1
    self.shortcut = (
      nn.Identity() if same else _ConvNorm(norm, behind, inputs, outputs, 1, stride)
    )

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    y = self.second(functional.relu(self.first(x)))
    return functional.relu(y + self.shortcut(x))


class Encoder(nn.Module):
  """A ResNet-8, from images [n, 3, height, width] to features."""

  def __init__(self, stages: Sequence[int], norm: Norm, behind: bool):
    """Builds the network.

    Args:
      stages: Channels of the three stages.
      norm: The norm behind each convolution.
      behind: Whether strided 3 x 3 convolutions pad only behind the image, as 'same' of
        TensorFlow and JAX does.
    """
    super().__init__()
    self.stem = _ConvNorm(norm, behind, 3, stages[0], 3, 1)
    self.stages = nn.ModuleList(
      _Block(norm, behind, stages[max(k - 1, 0)], outputs, 1 if k == 0 else 2)
      for k, outputs in enumerate(stages)
    )

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns the mean of the last maps over places."""
    x = functional.relu(self.stem(x))
    for block in self.stages:
      x = block(x)
    return x.mean((2, 3))


class Network(Encoder):
  """A ResNet-8 with group norm, and the layers behind it."""

  def __init__(self, loss: str):
    """Builds the network, with weights that are to be replaced.

    Args:
      loss: One of `protocol.LOSSES`.
    """
    super().__init__(
      _STAGES, lambda channels: nn.GroupNorm(min(_GROUPS, channels), channels), True
    )
    self.loss_name = loss
    _, units = protocol.behind_encoder(loss)
    self.head = nn.ModuleList(
      nn.Linear(a, b) for a, b in zip((_STAGES[-1], *units[:-1]), units, strict=True)
    )

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns logits or projections of images [n, 3, 32, 32] in [0, 1]."""
    x = super().forward(x)
    for layer in self.head[:-1]:
      x = functional.relu(layer(x))
    return self.head[-1](x)

  def loss(
    self, images: torch.Tensor, labels: torch.Tensor, training: bool = True
  ) -> torch.Tensor:
    """Returns the loss of a batch, under the name that pfl-research expects.

    Args:
      images: uint8 [n, 3, 32, 32].
      labels: [n].
      training: Whether a gradient is taken of it.
    """
    self.train(training)
    x = images.float() / 255
    if self.loss_name == protocol.CROSS_ENTROPY:
      return functional.cross_entropy(self(x), labels)
    views = torch.cat([self._view(x), self._view(x)])
    return nt_xent(self(views))

  def metrics(self, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Returns the loss of a batch without a gradient."""
    with torch.no_grad():
      return {'loss': self.loss(images, labels, training=False).item()}

  def _view(self, x: torch.Tensor) -> torch.Tensor:
    """Mirrors half of the images, and shifts the brightness of each."""
    draws = torch.rand(2, len(x), 1, 1, 1)
    x = torch.where(draws[0] < 0.5, x.flip(3), x)
    shift = protocol.BRIGHTNESS * (2 * draws[1] - 1)
    return (x + shift).clamp(0, 1)


def nt_xent(
  views: torch.Tensor, temperature: float = protocol.TEMPERATURE
) -> torch.Tensor:
  """Returns NT-Xent of two views that are concatenated, [2n, d]."""
  views = functional.normalize(views)
  logits = views @ views.T / temperature
  logits.fill_diagonal_(-torch.inf)
  positives = torch.arange(len(views)).roll(len(views) // 2)
  return functional.cross_entropy(logits, positives)


def build(problem: protocol.Problem) -> Network:
  """Builds the network with the problem's initial weights."""
  network = Network(problem.loss)
  with torch.no_grad():
    for name, parameter in _named(network):
      parameter.copy_(_transposed(torch.from_numpy(problem.weights[name])))
  return network


def weights(network: Network) -> protocol.Weights:
  """Returns the network's weights by the problem's names."""
  return {
    name: _transposed(parameter.detach(), back=True).numpy().copy()
    for name, parameter in _named(network)
  }


def tensors(images: np.ndarray) -> torch.Tensor:
  """Returns images as PyTorch has them: uint8 [n, 3, 32, 32]."""
  return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))


def _named(network: Network) -> Iterator[tuple[str, nn.Parameter]]:
  """Yields the parameters by tff_ssl's names."""
  behind, _ = protocol.behind_encoder(network.loss_name)
  for name, parameter in network.named_parameters():
    place, *rest, kind = name.split('.')
    if place == 'head':
      kind = {'weight': 'kernel'}.get(kind, kind)
      yield f'{behind}/dense{rest[0]}/{kind}', parameter
      continue
    layer = rest[-1]
    if place == 'stages':
      place = f'stage{int(rest[0]) + 1}/block0'
      layer += {'first': '1', 'second': '2', 'shortcut': '_shortcut'}[rest[1]]
    kind = {'conv': 'kernel'}.get(rest[-1], {'weight': 'gamma', 'bias': 'beta'}[kind])
    yield f'encoder/{place}/{layer}/{kind}', parameter


def _transposed(value: torch.Tensor, back: bool = False) -> torch.Tensor:
  """Returns a kernel with its outputs first instead of last, or back."""
  if value.ndim == 4:
    return value.permute((2, 3, 1, 0) if back else (3, 2, 0, 1))
  return value.T if value.ndim == 2 else value
