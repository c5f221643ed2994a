"""Pretrains a small ResNet with SimCLR in plain PyTorch, for a number of CPU seconds.

  python -m docs.elsewhere.torch_simclr FOLDER batch 0 60

It needs PyTorch and NumPy, and none of our library. FOLDER/images.npz has `train`,
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

from docs.race.peers import torch_network

# Half of ResNet-8's channels.
_CHANNELS = (8, 16, 32)
_PROJECTOR = (256, 256, 128)
_GROUP_SIZE = 8
_BATCH, _RATE, _TEMPERATURE = 256, 2e-3, 0.2
_LEAST_AREA, _JITTER, _HUE, _GREY = 0.2, 0.4, 0.1, 0.2


def _encoder(kind: str) -> nn.Module:
  def norm(channels: int) -> nn.Module:
    if kind == 'batch':
      return nn.BatchNorm2d(channels)
    return nn.GroupNorm(max(1, channels // _GROUP_SIZE), channels)

  return torch_network.Encoder(_CHANNELS, norm, behind=False)


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


def _tensor(images: np.ndarray) -> torch.Tensor:
  return torch_network.tensors(images).float() / 255


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
    views = torch.cat([_view(batch), _view(batch)])
    loss = torch_network.nt_xent(projector(encoder(views)), _TEMPERATURE)
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
