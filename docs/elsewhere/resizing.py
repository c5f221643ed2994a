"""How far other programs' own resizing is from ours, on the pixels of a photograph.

  KERAS_BACKEND=jax python docs/elsewhere/resizing.py FOLDER keras
  python docs/elsewhere/resizing.py FOLDER torch

FOLDER is one that `photograph.py` has written, of a run with fit=crop. It needs NumPy
and the other program, and nothing of this project.
"""

import importlib
import importlib.util
import inspect
import pathlib
import sys

import numpy as np


def _of_keras(pictures: np.ndarray, size: int) -> np.ndarray:
  """Resizes by the layer of Keras, antialiased where it can be: not in Keras 2."""
  keras = importlib.import_module('keras')
  options = {'interpolation': 'bicubic', 'crop_to_aspect_ratio': True}
  if 'antialias' in inspect.signature(keras.layers.Resizing).parameters:
    options['antialias'] = True
  layer = keras.layers.Resizing(size, size, **options)
  return np.asarray(layer(pictures.astype(np.float32)))


def _of_torch(pictures: np.ndarray, size: int) -> np.ndarray:
  """Resizes the central square by PyTorch's antialiased bicubic filter."""
  torch = importlib.import_module('torch')
  x = torch.from_numpy(pictures).permute(0, 3, 1, 2)
  height, width = x.shape[2:]
  side = min(height, width)
  top, left = (height - side) // 2, (width - side) // 2
  x = x[:, :, top : top + side, left : left + side]
  resize = torch.nn.functional.interpolate
  y = resize(x, (size, size), mode='bicubic', antialias=True)
  return y.permute(0, 2, 3, 1).numpy()


def main(folder: pathlib.Path, program: str) -> None:
  """Prints how many steps, of 255, the pixels are from those of square.py."""
  spec = importlib.util.spec_from_file_location('square', folder / 'square.py')
  assert spec is not None and spec.loader is not None
  square = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(square)
  with np.load(folder / 'numbers.npz') as numbers:
    pictures = numbers['raw']
  ours = square.squares(pictures)
  resize = {'keras': _of_keras, 'torch': _of_torch}[program]
  found = np.clip(np.rint(resize(pictures, ours.shape[1])), 0, 255)
  gaps = np.abs(found - ours)
  print(f'{program}: at most {gaps.max():.0f} steps, {gaps.mean():.2f} on average')


if __name__ == '__main__':
  main(pathlib.Path(sys.argv[1]), sys.argv[2])
