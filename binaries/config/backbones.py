"""Published weights from which a run starts (`init_from`), read without TensorFlow."""

import dataclasses
import pathlib

import numpy as np

from tff_ssl.encoders import torch_convolutions
from tff_ssl.encoders import torch_layout
from tff_ssl.settings import encoders
from tff_ssl.storage import safetensors


def is_backbone(source: str) -> bool:
  """Returns whether a source of weights is a file of published ones."""
  return source.endswith(safetensors.SUFFIX)


def is_keras(source: str, encoder: encoders.Encoder) -> bool:
  """Returns whether a source of weights is a model of keras.applications.

  Args:
    source: The source; a `.keras` file of a run has its card beside it.
    encoder: The run's.

  Raises:
    ValueError: If only such a model can be in the file, and the encoder is none.
  """
  path = pathlib.Path(source)
  is_model = isinstance(encoder, encoders.KerasResNet)
  if path.suffix == '.h5' and not is_model:
    published = [
      name
      for name, kind in encoders.ENCODERS.items()
      if issubclass(kind, encoders.KerasResNet)
    ]
    raise ValueError(
      f'init_from is {source!r} with --encoder={encoder.kind}; weights of '
      f'keras.applications need one of {", ".join(published)}.'
    )
  if path.suffix not in ('.h5', '.keras') or not is_model:
    return False
  return path.suffix == '.h5' or not path.with_suffix('.json').exists()


def read(
  source: str, encoder: encoders.Encoder, grid: tuple[int, int] | None = None
) -> dict[str, np.ndarray]:
  """Reads published weights.

  Args:
    source: The file.
    encoder: The run's.
    grid: Rows and columns of patches of the run's images; None: those of the file.

  Returns:
    The encoder's parameters and population statistics by name.

  Raises:
    ValueError: The encoder has no such weights, or the file is not theirs.
  """
  layout: torch_layout.Layout
  published = encoders.TorchResNet, encoders.TorchMobileNet, encoders.TorchViT
  name = encoder.kind.removeprefix('torch_')
  if isinstance(encoder, encoders.TorchResNet | encoders.TorchMobileNet):
    of_width = encoder.width, encoder.batch_norm == 'folded'
    if isinstance(encoder, encoders.TorchResNet):
      layout = torch_convolutions.resnet(int(name.removeprefix('resnet')), *of_width)
    else:
      layout = torch_convolutions.mobilenet(name, *of_width)
  elif isinstance(encoder, encoders.TorchViT):
    options = {'patch_size': encoder.patch} if encoder.patch else {}
    layout = torch_layout.vit(
      name,
      encoder.width,
      registers=encoder.registers,
      layer_scale=encoder.layer_scale,
      **options,
    )
    layout = dataclasses.replace(layout, grid=grid)
  else:
    names = [n for n, cls in encoders.ENCODERS.items() if issubclass(cls, published)]
    raise ValueError(
      f'init_from is {source!r} with --encoder={encoder.kind}; weights of PyTorch need '
      f'one of {", ".join(names)}.'
    )
  return torch_layout.read(source, layout)
