"""Writes every encoder as runs and exports do, and the numbers that it gives.

  python -m docs.elsewhere build/elsewhere/files

`check.py` reads the files in an environment that has nothing of this project, and
compares the numbers. `make elsewhere` does both.
"""

from collections.abc import Iterator
import pathlib
import sys
from typing import Any

import numpy as np

from tff_ssl.encoders import network
from tff_ssl.encoders import registry
from tff_ssl.encoders import torch_resnet
from tff_ssl.encoders import torch_vit
from tff_ssl.encoders.operations import batch_normalization
from tff_ssl.evaluation import linear_probe
from tff_ssl.export import exports
from tff_ssl.runs import run_folder

# Odd and even sides: padding differs.
_IMAGE = (33, 32, 3)
# In smaller maps its last groups have so few values that float32 is 4e-4 from float64.
_DEEP_IMAGE = (65, 64, 3)
_ROW = (7,)
_EXAMPLES, _CLASSES = 6, 3


def norms(name: str) -> tuple[str, ...]:
  """Returns the norms that an encoder can have; () if it has no choice."""
  if name in torch_resnet.NAMES:
    return torch_resnet.NORMS
  return ('group', 'batch') if name in registry.with_option('normalization') else ()


def encoders() -> Iterator[tuple[str, network.Network]]:
  """Yields every small encoder of the registry, with each norm and stem, by a name."""
  for name in registry.NAMES:
    stems = ('cifar', 'imagenet') if name in registry.with_option('stem') else ()
    deep = dict.fromkeys(('resnet50', 'torch_resnet50'), _DEEP_IMAGE)
    shape = {'mlp': _ROW, **deep}.get(name, _IMAGE)
    patch = None
    if name in registry.with_option('patch_size'):
      shape, patch = (32, 24, 3), 8
    # All that PyTorch's transformers may have.
    more: dict[str, Any] = {}
    if name in torch_vit.NAMES:
      more = {'layer_scale': True, 'registers': 2}
    for norm in norms(name) or (None,):
      for stem in stems or (None,):
        encoder = registry.build_encoder(name, shape, 0.25, stem, patch, norm, **more)
        yield '-'.join(filter(None, (name, norm, stem))), encoder


def values(encoder: network.Network, seed: int = 0) -> network.Params:
  """Returns parameters and statistics of which none has its initial, idle value."""
  generator = np.random.default_rng(seed)
  params = encoder.init([0, 1])
  for name, value in params.items():
    # Kernels keep their scale, with which numbers stay of one size through all layers.
    size = 0.1 / np.prod(value.shape[:-1]) ** 0.5 if value.shape.rank > 1 else 0.1
    params[name] = value + (size * generator.normal(size=value.shape)).astype('f4')
  # Of a batch, or else every relu of a deep network may be 0; variances are larger.
  examples = generator.uniform(size=(_EXAMPLES, *encoder.input_shape)).astype('f4')
  for name, value in encoder.moments(params, examples).items():
    if name.endswith(batch_normalization.POPULATION_SQUARE):
      value *= generator.uniform(1.0, 1.1, value.shape).astype('f4')
    params[name] = value
  return params


def write(folder: pathlib.Path) -> None:
  """Writes the files, and `numbers.npz` with inputs and outputs by the file's name.

  Args:
    folder: It is made; files of the same names are replaced.
  """
  generator = np.random.default_rng(0)
  numbers: dict[str, Any] = {}
  for name, encoder in encoders():
    params = values(encoder)
    pixels = generator.integers(0, 256, (_EXAMPLES, *encoder.input_shape))
    is_image = len(encoder.input_shape) == 3
    raw = pixels.astype(np.uint8 if is_image else np.float32)
    scaling = None
    if not is_image:
      scaling = exports.Scaling(np.full(_ROW, 127.5), np.full(_ROW, 1 / 74))
    scaled = np.float32(pixels / 255 if is_image else (pixels - 127.5) / 74)
    features = encoder.infer(params, scaled).numpy()
    fitted = _classifier(generator, features)
    with run_folder.RunFolder(folder / name, {}) as opened:
      opened.save_encoder(encoder.to_keras(params), {})
    model = exports.with_preprocessing(encoder.to_keras(params), scaling, fitted)
    exports.write(model, exports.KERAS, folder / name)
    numbers |= {
      f'{name}/encoder.keras/inputs': scaled,
      f'{name}/encoder.keras/outputs': features,
      f'{name}/model.keras/inputs': raw,
      f'{name}/model.keras/features': features,
      f'{name}/model.keras/probabilities': fitted.probabilities(features),
    }
  np.savez(folder / 'numbers.npz', **numbers)


def _classifier(
  generator: np.random.Generator, features: np.ndarray
) -> linear_probe.LinearClassifier:
  """Returns a classifier that is not fitted, but of usual size."""
  width = features.shape[1]
  return linear_probe.LinearClassifier(
    features.mean(axis=0),
    features.std(axis=0) + np.float32(0.1),
    (generator.normal(size=(width, _CLASSES)) / width**0.5).astype(np.float32),
    generator.normal(size=_CLASSES).astype(np.float32),
  )


if __name__ == '__main__':
  write(pathlib.Path(sys.argv[1]))
