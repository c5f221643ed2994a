"""Compares networks with published weights with PyTorch's numbers for the same weights.

  python -m docs.elsewhere.backbones build/elsewhere/backbones

`torch_backbones.py` wrote the folder. It prints a table, and fails if a feature, in
float32, differs by more than 1e-4, or a gradient, in float64, by more than 1e-4 of its
tensor's largest number.
"""

from collections.abc import Mapping
import dataclasses
import json
import pathlib
import sys
from typing import Any

import numpy as np
import tensorflow as tf

from docs.elsewhere import __main__ as elsewhere
from tff_ssl.encoders import mobilenet
from tff_ssl.encoders import network
from tff_ssl.encoders import registry
from tff_ssl.encoders import torch_convolutions
from tff_ssl.encoders import torch_layout
from tff_ssl.encoders import vit

_TOLERANCE = 1e-4
_POSITIONS = 'pos_embed'


def _layout(
  encoder: network.Network, name: str, options: Mapping[str, Any]
) -> torch_layout.Layout:
  """Returns what a file of an encoder holds."""
  width = options.get('width', 1.0)
  if not isinstance(encoder, vit.VisionTransformer):
    folded = options.get('normalization') == 'none'
    if isinstance(encoder.config, mobilenet.MobileNetConfig):
      return torch_convolutions.mobilenet(encoder.config.size, width, folded)
    return torch_convolutions.resnet(encoder.config.depth, width, folded)
  layout = torch_layout.vit(
    name.removeprefix('torch_'),
    width,
    encoder.config.patch_size,
    encoder.config.prefix - 1,
    encoder.config.layer_scale,
  )
  return dataclasses.replace(layout, grid=encoder.grid)


def measure(folder: pathlib.Path) -> dict[str, dict[str, float]]:
  """Returns the largest difference of features and gradients of each network."""
  found = {}
  described = json.loads((folder / 'cases.json').read_text())
  with np.load(folder / 'numbers.npz') as stored:
    for name, case in described.items():
      numbers = {
        key.removeprefix(f'{name}/'): stored[key]
        for key in stored
        if key.startswith(f'{name}/')
      }
      path = folder / f'{case.get("file", name)}.safetensors'
      found[name] = _differences(path, numbers, case['encoder'], case['options'])
      if 'vit' not in case['encoder']:
        only = {key: numbers[key] for key in ('images', 'features')}
        options = {**case['options'], 'normalization': 'none'}
        found[f'{name}, folded'] = _differences(path, only, case['encoder'], options)
  return found


def _differences(
  path: pathlib.Path,
  numbers: Mapping[str, np.ndarray],
  name: str,
  options: Mapping[str, Any],
) -> dict[str, float]:
  """Returns the differences of one network; of features alone, without gradients."""
  images = numbers['images']
  encoder = registry.build_encoder(name, images.shape[1:], **options)
  layout = _layout(encoder, name, options)
  params = torch_layout.read(path, layout)
  features = encoder.infer(params, images.astype(np.float32)).numpy()
  found = {'features': _share(features, numbers['features'], least=1.0)}
  expected = {
    torch_layout.renamed(key.removeprefix('gradient/')): value
    for key, value in numbers.items()
    if key.startswith('gradient/')
  }
  if not expected:
    return found
  own = {key: tf.constant(params[key], tf.float64) for key in encoder.specs}
  with tf.GradientTape() as tape:
    tape.watch(own)
    loss = tf.reduce_sum(encoder.apply(own, images) * numbers['weights'])
  gradients = tape.gradient(loss, own)
  if isinstance(layout, torch_layout.ViTLayout):
    layout = dataclasses.replace(layout, grid=None)
    if expected[_POSITIONS].shape[1] > len(own['embedding/positions/bias']):
      # The class token and its position are one parameter here.
      expected[_POSITIONS][:, 0] = 0
  shapes = {key: value.shape for key, value in expected.items()}
  # Shifts that the next batch norm takes away have a gradient of 0.
  least = 1e-6 * max(float(np.max(np.abs(value))) for value in expected.values())
  shares = []
  for row in layout.rows(shapes):
    if row.own in encoder.specs:
      there = row.convert(*(expected[key] for key in row.shapes))
      shares.append(_share(gradients[row.own].numpy(), there, least))
  # By NumPy: Python's `max` would overlook NaN.
  return {**found, 'gradients': float(np.max(shares))}


def _share(found: np.ndarray, expected: np.ndarray, least: float = 0.0) -> float:
  """Returns the largest difference, as a share of the largest number.

  Args:
    found: Any numbers.
    expected: As many.
    least: What the largest number counts as at least.
  """
  largest = max(least, float(np.max(np.abs(expected))))
  return float(np.max(np.abs(found - expected))) / largest


def main(folder: pathlib.Path) -> None:
  """Compares, prints the table, and exits with 1 if a difference is too large."""
  found = measure(folder)
  columns = {
    kind: {name: own[kind] for name, own in found.items() if kind in own}
    for kind in ('features', 'gradients')
  }
  print(elsewhere.table(columns))
  every = [value for own in found.values() for value in own.values()]
  if not np.max(every) <= _TOLERANCE:
    sys.exit(f'A difference is above {_TOLERANCE:g}.')


if __name__ == '__main__':
  main(pathlib.Path(sys.argv[1]))
