"""The race's network, views and losses in PyTorch, for Flower and pfl-research."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from docs.race.peers import protocol

_GROUPS = 32
_STAGES = (16, 32, 64)


class _ConvNorm(nn.Module):
  """A convolution with zero padding 'same', and its group norm."""

  def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1):
    super().__init__()
    # For a strided 3 x 3, 'same' of TensorFlow and JAX pads only behind the image.
    self.pad = (0, 1, 0, 1) if stride > 1 and size > 1 else None
    padding = 0 if self.pad else size // 2
    self.conv = nn.Conv2d(inputs, outputs, size, stride, padding, bias=False)
    self.norm = nn.GroupNorm(min(_GROUPS, outputs), outputs, eps=1e-5)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    return self.norm(self.conv(functional.pad(x, self.pad) if self.pad else x))


class _Block(nn.Module):
  """Two 3 x 3 convolutions with a shortcut."""

  def __init__(self, inputs: int, outputs: int, stride: int):
    super().__init__()
    self.first = _ConvNorm(inputs, outputs, 3, stride)
    self.second = _ConvNorm(outputs, outputs, 3)
    same = inputs == outputs and stride == 1
    self.shortcut = None if same else _ConvNorm(inputs, outputs, 1, stride)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    y = self.second(functional.relu(self.first(x)))
    return functional.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class Network(nn.Module):
  """A ResNet-8 with group norm, and the layers behind it."""

  def __init__(self, loss: str):
    """Builds the network, with weights that are to be replaced.

    Args:
      loss: One of `protocol.LOSSES`.
    """
    super().__init__()
    self.loss_name = loss
    self.stem = _ConvNorm(3, _STAGES[0], 3)
    self.stages = nn.ModuleList(
      _Block(_STAGES[max(k - 1, 0)], outputs, 1 if k == 0 else 2)
      for k, outputs in enumerate(_STAGES)
    )
    _, units = protocol.behind_encoder(loss)
    self.head = nn.ModuleList(
      nn.Linear(a, b) for a, b in zip((_STAGES[-1], *units[:-1]), units, strict=True)
    )

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Returns logits or projections of images [n, 3, 32, 32] in [0, 1]."""
    x = functional.relu(self.stem(x))
    for block in self.stages:
      x = block(x)
    x = x.mean((2, 3))
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


def nt_xent(views: torch.Tensor) -> torch.Tensor:
  """Returns NT-Xent of two views that are concatenated, [2n, d]."""
  views = functional.normalize(views)
  logits = views @ views.T / protocol.TEMPERATURE
  logits.fill_diagonal_(-torch.inf)
  half = len(views) // 2
  positives = torch.arange(len(views)).roll(half)
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
