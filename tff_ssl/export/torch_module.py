"""Encoders as a module of PyTorch: one Python file, and weights as safetensors.

PyTorch is not needed to write them. The code is written from the network's definition
(`torch_code`), the weights are those of the exported Keras model.
"""

from collections.abc import Callable
import importlib
import os
import pathlib

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import network as network_lib
from tff_ssl.encoders import torch_code
from tff_ssl.export import comparison
from tff_ssl.export import squares
from tff_ssl.storage import files
from tff_ssl.storage import safetensors

CODE, WEIGHTS = 'model.py', 'model.safetensors'


def write(
  network: network_lib.Network,
  model: tf.keras.Model,
  folder: str | os.PathLike[str],
  fit: str | None = None,
) -> None:
  """Writes both files.

  Args:
    network: The encoder.
    model: The encoder's Keras model with preprocessing, from
      `exports.with_preprocessing`.
    folder: It exists.
    fit: How a picture of any size becomes what the encoder takes, one of
      `squares.FITS`; None: inputs have the encoder's shape.

  Raises:
    ValueError: The network cannot be written for PyTorch.
  """
  layers = {layer.name: layer for layer in model.layers}
  code = torch_code.ToTorch(lambda name: layers[name].get_weights())
  code.network(network.forward, network.input_shape, 'Encoder')
  state = {f'encoder.{name}': value for name, value in code.state.items()}
  for prefix, name in (('', 'scale'), ('classifier.', 'standardise')):
    if f'{name}_center' in layers:
      center, factor = (layers[f'{name}_{part}'] for part in ('center', 'factor'))
      state[f'{prefix}offset'] = np.asarray(center.offset)
      state[f'{prefix}factor'] = np.asarray(factor.scale)
  classes = 0
  if 'probabilities' in layers:
    kernel, bias = layers['probabilities'].get_weights()
    state |= {'classifier.linear.weight': kernel.T, 'classifier.linear.bias': bias}
    classes = len(bias)
  is_image = len(network.input_shape) == 3
  shape = ', '.join(map(str, ('n', *network.input_shape)))
  if fit is not None:
    shape = f'n, height, width, {network.input_shape[2]}'
  text = squares.template('torch_model.py').render(
    title='An encoder with a classifier' if classes else 'An encoder',
    inputs=f'{"pixels, uint8" if is_image else "rows, float32"} [{shape}]',
    encoder=code.classes,
    is_image=is_image,
    size=network.input_shape[0],
    fit=fit,
    columns=network.input_shape[0] if 'offset' in state else 0,
    features=network.output_dim,
    classes=classes,
  )
  folder = pathlib.Path(folder)
  files.write(folder / CODE, text)
  stored = {name: np.asarray(own, np.float32) for name, own in state.items()}
  files.write(folder / WEIGHTS, safetensors.as_bytes(stored))


def load(
  folder: str | os.PathLike[str],
) -> Callable[[np.ndarray], comparison.Outputs]:
  """Reads what `write` has written, where PyTorch is installed.

  Args:
    folder: Not from a stranger: the file of code is executed.

  Returns:
    A function from inputs to the outputs by name.
  """
  torch = importlib.import_module('torch')
  model = squares.load_code(pathlib.Path(folder) / CODE).load()

  def run(inputs: np.ndarray) -> comparison.Outputs:
    with torch.inference_mode():
      outputs = model(torch.from_numpy(inputs))
    return {name: value.numpy() for name, value in outputs.items()}

  return run
