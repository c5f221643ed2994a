"""Pretrains a small ResNet with SimCLR in plain PyTorch, for a number of CPU seconds.

  python docs/elsewhere/torch_simclr.py FOLDER batch 0 60

It needs PyTorch and NumPy, and nothing of this project. FOLDER/images.npz has `train`,
`labelled` and `test`, uint8 [n, size, size, 3]; the features of the last two go to
FOLDER/features.npz. The seconds are of the whole process, PyTorch's import included.
`docs.elsewhere.simclr` starts it, and trains the same network here.
"""

import math
import pathlib
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

# Half of ResNet-8's channels.
_CHANNELS = (8, 16, 32)
_PROJECTOR = (256, 256, 128)
_GROUP_SIZE = 8
_BATCH, _RATE, _TEMPERATURE = 256, 2e-3, 0.2
_LEAST_AREA, _JITTER, _HUE, _GREY = 0.2, 0.4, 0.1, 0.2


def _norm(kind: str, channels: int) -> nn.Module:
  if kind == 'batch':
    return nn.BatchNorm2d(channels)
  return nn.GroupNorm(max(1, channels // _GROUP_SIZE), channels)


def _conv_norm(
  kind: str, inputs: int, outputs: int, size: int, stride: int = 1
) -> nn.Sequential:
  conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
  return nn.Sequential(conv, _norm(kind, outputs))


class _Block(nn.Module):
  """Two 3 x 3 convolutions with a shortcut."""

  def __init__(self, kind: str, inputs: int, outputs: int, stride: int):
    super().__init__()
    self.first = _conv_norm(kind, inputs, outputs, 3, stride)
    self.second = _conv_norm(kind, outputs, outputs, 3)
    same = inputs == outputs and stride == 1
    self.shortcut = (
      nn.Identity() if same else _conv_norm(kind, inputs, outputs, 1, stride)
    )

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    y = self.second(functional.relu(self.first(x)))
    return functional.relu(y + self.shortcut(x))


def _encoder(kind: str) -> nn.Sequential:
  first, second, third = _CHANNELS
  return nn.Sequential(
    _conv_norm(kind, 3, first, 3),
    nn.ReLU(),
    _Block(kind, first, first, 1),
    _Block(kind, first, second, 2),
    _Block(kind, second, third, 2),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
  )


def _projector(kind: str) -> nn.Sequential:
  layers: list[nn.Module] = []
  widths = (_CHANNELS[-1], *_PROJECTOR)
  for inputs, outputs in zip(widths, _PROJECTOR, strict=False):
    layers.append(nn.Linear(inputs, outputs))
    if kind == 'batch':
      layers.append(nn.BatchNorm1d(outputs))
    layers.append(nn.ReLU())
  # Nothing behind the last layer.
  return nn.Sequential(*layers[: -2 if kind == 'batch' else -1])


def _view(x: torch.Tensor) -> torch.Tensor:
  """Returns crops, mirrored by half, with colours of SimCLR on CIFAR-10."""
  n = len(x)
  side = torch.empty(n).uniform_(_LEAST_AREA, 1).sqrt()
  place = (2 * torch.rand(2, n) - 1) * (1 - side)
  mirror = torch.where(torch.rand(n) < 0.5, -1.0, 1.0)
  zero = torch.zeros(n)
  rows = (
    torch.stack([side * mirror, zero, place[0]], 1),
    torch.stack([zero, side, place[1]], 1),
  )
  grid = functional.affine_grid(torch.stack(rows, 1), list(x.shape), False)
  x = functional.grid_sample(x, grid, padding_mode='reflection', align_corners=False)

  def factor() -> torch.Tensor:
    return 1 + _JITTER * (2 * torch.rand(n, 1, 1, 1) - 1)

  y = x * factor()
  mean = y.mean((1, 2, 3), keepdim=True)
  y = (y - mean) * factor() + mean
  grey = y.mean(1, keepdim=True)
  y = (y - grey) * factor() + grey
  y = y + _HUE * (torch.rand(n, 3, 1, 1) - 0.5)
  x = torch.where(torch.rand(n, 1, 1, 1) < 0.8, y, x)
  x = torch.where(torch.rand(n, 1, 1, 1) < _GREY, x.mean(1, keepdim=True), x)
  return x.clamp(0, 1)


def _loss(projected: torch.Tensor) -> torch.Tensor:
  """Returns NT-Xent of two views that are concatenated, [2n, d]."""
  unit = functional.normalize(projected)
  logits = unit @ unit.T / _TEMPERATURE
  logits.fill_diagonal_(-torch.inf)
  positives = torch.arange(len(unit)).roll(len(unit) // 2)
  return functional.cross_entropy(logits, positives)


def _tensor(images: np.ndarray) -> torch.Tensor:
  return torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).float() / 255


def main(folder: pathlib.Path, kind: str, seed: int, seconds: float) -> None:
  """Trains, and writes features."""
  torch.set_num_threads(1)
  torch.manual_seed(seed)
  arrays = np.load(folder / 'images.npz')
  images = _tensor(arrays['train'])
  encoder, projector = _encoder(kind), _projector(kind)
  weights = [*encoder.parameters(), *projector.parameters()]
  optimizer = torch.optim.Adam(weights, _RATE)
  steps, start = 0, time.process_time()
  while (used := time.process_time()) < seconds:
    # A cosine of the seconds.
    share = (used - start) / (seconds - start)
    for group in optimizer.param_groups:
      group['lr'] = _RATE * (1 + math.cos(math.pi * share)) / 2
    batch = images[torch.randint(len(images), (_BATCH,))]
    loss = _loss(projector(encoder(torch.cat([_view(batch), _view(batch)]))))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
  encoder.eval()
  features = {}
  with torch.no_grad():
    for name in ('labelled', 'test'):
      parts = _tensor(arrays[name]).split(500)
      features[name] = torch.cat([encoder(part) for part in parts]).numpy()
  np.savez(folder / 'features.npz', passes=steps * _BATCH / len(images), **features)


if __name__ == '__main__':
  main(pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
