"""Weights of keras.applications, as the parameters of our networks.

A user saves a model of Keras 2 or 3: `model.save('a.keras')`, or weights alone as
`.weights.h5` or `.h5`. Only arrays and JSON are read from the file. Its layers, where
it has them, are compared with those of the model that keras.applications builds here:
kinds, options and connections. Whatever else the file has is refused by name; heads
(`Dense`, behind a mean over positions) are left out.

A bias before a batch norm is a part of the norm's mean, so that our convolutions have
none. Pixels of Caffe are blue, green, red: the first kernel is turned.
"""

from collections.abc import Callable, Iterator, Mapping
import io
import os
import pathlib
import re
from typing import Any, NamedTuple

import h5py
import numpy as np
import tensorflow as tf

from tff_ssl.encoders import keras_archive
from tff_ssl.encoders import mobilenet
from tff_ssl.encoders import network as network_lib
from tff_ssl.encoders import resnet
from tff_ssl.encoders.operations import batch_normalization
from tff_ssl.storage import archives
from tff_ssl.storage import files
from tff_ssl.storage import hdf5

SUFFIXES = ('.keras', '.h5')
# Bytes that layers, a head and HDF5 need besides the arrays.
_MOST_BESIDE = 2**26
# Kinds of layers -> their weights, in Keras's order, and the options that matter.
_CONVOLUTION = (
  *('kernel_size', 'strides', 'padding', 'dilation_rate', 'use_bias'),
  *('activation', 'data_format'),
)
_WEIGHTS: Mapping[str, tuple[str, ...]] = {
  'Conv2D': ('kernel', 'bias'),
  'DepthwiseConv2D': ('kernel', 'bias'),
  'BatchNormalization': ('gamma', 'beta', 'moving_mean', 'moving_variance'),
  'Dense': ('kernel', 'bias'),
}
_OPTIONS: Mapping[str, tuple[str, ...]] = {
  'InputLayer': (),
  'Conv2D': ('filters', *_CONVOLUTION),
  'DepthwiseConv2D': ('depth_multiplier', *_CONVOLUTION),
  'BatchNormalization': ('epsilon', 'center', 'scale'),
  'Activation': ('activation',),
  'ReLU': ('max_value', 'negative_slope', 'threshold'),
  'ZeroPadding2D': ('padding',),
  'MaxPooling2D': ('pool_size', 'strides', 'padding'),
  'Add': (),
}
# Behind the features, which are a mean over positions too.
_HEADS = ('GlobalAveragePooling2D', 'Dropout', 'Dense')
# What it is called in a file of arrays.
_HEAD_NAMES = ('predictions', 'dense')
_INPUT = 'input'
_Arrays = dict[str, np.ndarray]


class _Family(NamedTuple):
  """Models of one kind.

  Attributes:
    build: (width, **options) -> the model.
    layer: Our name of a convolution or a norm -> Keras's.
  """

  build: Callable[..., tf.keras.Model]
  layer: Callable[[str], str]


def _build_resnet(width: float, **options: Any) -> tf.keras.Model:
  if width != 1:
    raise ValueError(f'needs width=1, and the encoder has width={width:g}')
  return tf.keras.applications.ResNet50(**options)


def _build_mobilenet(width: float, **options: Any) -> tf.keras.Model:
  return tf.keras.applications.MobileNetV2(alpha=width, **options)


def _resnet_layer(own: str) -> str:
  scope, _, last = own.rpartition('/')
  kind = 'conv' if last.startswith('conv') else 'bn'
  if scope == 'stem':
    return f'conv1_{kind}'
  stage, block = map(int, re.findall(r'\d+', scope))
  number = last.removeprefix('conv').removeprefix('norm')
  return f'conv{stage + 1}_block{block + 1}_{number.replace("_shortcut", "0")}_{kind}'


def _mobilenet_layer(own: str) -> str:
  scope, _, last = own.rpartition('/')
  if scope in ('stem', 'last'):
    names = {'stem': ('Conv1', 'bn_Conv1'), 'last': ('Conv_1', 'Conv_1_bn')}
    return names[scope][last.startswith('norm')]
  part = {'1': 'expand', '2': 'depthwise', '3': 'project'}[last[-1]]
  end = '_BN' if last.startswith('norm') else ''
  block = int(scope.removeprefix('block'))
  return f'{f"block_{block}" if block else "expanded_conv"}_{part}{end}'


_FAMILIES: Mapping[type[Any], _Family] = {
  resnet.ResNetConfig: _Family(_build_resnet, _resnet_layer),
  mobilenet.MobileNetConfig: _Family(_build_mobilenet, _mobilenet_layer),
}


def read(
  path: str | os.PathLike[str], network: network_lib.Network
) -> dict[str, np.ndarray]:
  """Reads a file.

  Args:
    path: The file, which may be a stranger's.
    network: An encoder of `published_resnet` or `mobilenet`, for images of any size.

  Returns:
    Its parameters and population statistics, float32, by name.

  Raises:
    ValueError: It is no such file, or a layer or an array is missing, unknown, of
      another kind or shape, or has a value that is not finite.
  """
  path = pathlib.Path(path)
  if not path.is_file():
    raise ValueError(f'{path} is not a file; it must be a model of keras.applications.')
  try:
    if path.suffix == '.keras':
      return _read_archive(path, network)
    reference = _reference(network, (None, None))
    with h5py.File(path, 'r') as file:
      return _read_arrays(file, _described(reference), reference, network)
  except ValueError as error:
    raise ValueError(f'{path} {error}.') from error
  except (MemoryError, *hdf5.ERRORS, *files.ZIP_ERRORS) as error:
    raise ValueError(f'{path} is not a file of Keras, or damaged: {error}.') from error


def _read_archive(path: pathlib.Path, network: network_lib.Network) -> _Arrays:
  """Returns the parameters in a `.keras` archive."""
  with archives.open_zip(path, stored=True) as archive:
    layers = keras_archive.read_layers(archive)
    most = 8 * network.num_parameters + _MOST_BESIDE
    weights = archives.read_member(archive, keras_archive.WEIGHTS, most)
  try:
    layers = layers['config']['layers']
    reference = _reference(network, _sides(layers))
    _check_layers(_summaries(layers), _summaries(_described(reference)))
  except (TypeError, KeyError, IndexError, AttributeError) as error:
    raise ValueError(
      'has a description that is not of a functional model of Keras'
    ) from error
  with h5py.File(io.BytesIO(weights), 'r') as file:
    return _read_arrays(file, layers, reference, network)


def _reference(
  network: network_lib.Network, sides: tuple[int | None, int | None]
) -> tf.keras.Model:
  """Returns the model of keras.applications, without a head and with any weights."""
  return _FAMILIES[type(network.config)].build(
    network.config.width, weights=None, include_top=False, input_shape=(*sides, 3)
  )


def _sides(layers: list[Any]) -> tuple[int | None, int | None]:
  """Returns height and width of the inputs; Keras's zeros depend on them."""
  options = layers[0]['config']
  shape = options.get('batch_shape') or options['batch_input_shape']
  height, width = (
    side if type(side) is int and 32 <= side < 2**16 else None for side in shape[1:3]
  )
  return height, width


def _described(model: tf.keras.Model) -> list[Any]:
  """Returns the layers of a model as in a file."""
  own = tf.keras.saving.serialize_keras_object(model)
  layers: list[Any] = files.through_json(own)['config']['layers']
  return layers


def _summaries(layers: list[Any]) -> dict[str, Any]:
  """Returns kind, options and inputs of each layer, by name; equal in Keras 2 and 3."""
  inputs = {
    layer['config']['name']: _INPUT
    for layer in layers
    if layer['class_name'] == 'InputLayer'
  }
  result = {}
  for layer in layers:
    name, kind = layer['config']['name'], layer['class_name']
    options = {key: layer['config'].get(key) for key in _OPTIONS.get(kind, ())}
    before = [inputs.get(each, each) for each in _sources(layer['inbound_nodes'])]
    result[inputs.get(name, name)] = (kind, options, before)
  return result


def _sources(nodes: Any) -> Iterator[str]:
  """Yields the names of the layers in a description of a layer's inputs."""
  if isinstance(nodes, Mapping):
    nodes = nodes.get('keras_history', [*nodes.values()])
  if not isinstance(nodes, list):
    return
  if len(nodes) >= 3 and isinstance(nodes[0], str) and type(nodes[1]) is int:
    yield nodes[0]
    return
  for each in nodes:
    yield from _sources(each)


def _check_layers(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
  """Compares the layers of a file with those of the model."""
  for name, layer in found.items():
    if name not in expected:
      if layer[0] not in _HEADS:
        raise ValueError(
          f'has the layer {name!r} ({layer[0]}), for which this encoder has no place; '
          'it must not'
        )
    elif layer != expected[name]:
      raise ValueError(
        f'has a layer {name!r} that differs from that of keras.applications; it must '
        'be the same'
      )
  for name, (kind, *_) in expected.items():
    if name not in found:
      raise ValueError(f'has no layer {name!r} ({kind}); this encoder needs it')


def _read_arrays(
  file: h5py.File,
  layers: list[Any],
  reference: tf.keras.Model,
  network: network_lib.Network,
) -> _Arrays:
  """Returns the parameters in an HDF5 file.

  Args:
    file: The file.
    layers: The layers in whose order it has the arrays, if it does not name them.
    reference: The model.
    network: The encoder.
  """
  found = _by_layer(file, layers)
  expected = {
    f'{layer.name}/{name}': tuple(weight.shape)
    for layer in reference.layers
    for name, weight in zip(
      _names(type(layer).__name__, len(layer.weights)), layer.weights, strict=True
    )
  }
  known = {name.partition('/')[0] for name in expected}
  heads = {
    layer['config']['name'] for layer in layers if layer['class_name'] in _HEADS
  } | {*_HEAD_NAMES}
  for name in found:
    layer = name.partition('/')[0]
    if name not in expected and (layer in known or layer not in heads):
      raise ValueError(
        f'has {name!r}, for which this encoder has no place; it must not'
      )
  for name, shape in expected.items():
    if name not in found:
      raise ValueError(f'has no {name!r}; this encoder needs it')
    if found[name].shape != shape:
      raise ValueError(
        f'has {name!r} of shape {list(found[name].shape)}; this encoder needs '
        f'{list(shape)}'
      )
    if found[name].chunks is not None:
      raise ValueError(f'has {name!r} in chunks; it must be stored as it is')
  values = {}
  for name in expected:
    values[name] = value = found[name][()].astype(np.float64)
    if not np.all(np.isfinite(value.astype(np.float32))):
      raise ValueError(f'has a value of {name!r} that is not finite; it must be')
    if name.endswith('/moving_variance') and value.min() < 0:
      raise ValueError(f'has a negative value of {name!r}; it must be a variance')
  return _converted(values, reference, network)


def _names(kind: str, count: int) -> tuple[str, ...]:
  """Returns the names of a layer's weights."""
  return _WEIGHTS[kind][:count] if count else ()


def _by_layer(file: h5py.File, layers: list[Any]) -> dict[str, h5py.Dataset]:
  """Returns arrays by the names of layers and weights, whatever wrote the file."""
  numbered = hdf5.group(file, keras_archive.ARRAYS, keras_archive.ALSO)
  if numbered is None:
    # An old file, by names. Of a whole model they are in a group of their own.
    group = hdf5.group(file, 'model_weights') or file
    found = {}
    for path, value in hdf5.arrays(group).items():
      parts = path.removeprefix(group.name).strip('/').split('/')
      last = parts[-1].partition(':')[0].removeprefix('depthwise_')
      found[f'{parts[0]}/{last}'] = value
    return found
  # A new one, by kinds of layers and their numbers.
  names: dict[str, tuple[str, tuple[str, ...]]] = {}
  counts: dict[str, int] = {}
  for layer in layers:
    kind = layer['class_name']
    snake = re.sub(r'(?<=[a-z])(?=[A-Z][a-z])', '_', kind).lower()
    number = counts[snake] = counts.get(snake, -1) + 1
    key = f'{snake}_{number}' if number else snake
    names[key] = layer['config']['name'], _WEIGHTS.get(kind, ())
  found = {}
  for path, value in hdf5.arrays(numbered).items():
    _, _, key, *_, last = path.split('/')
    name, weights = names.get(key, (key, ()))
    place = int(last) if last.isdecimal() else len(weights)
    found[f'{name}/{weights[place] if place < len(weights) else last}'] = value
  return found


def _converted(
  values: Mapping[str, np.ndarray],
  reference: tf.keras.Model,
  network: network_lib.Network,
) -> _Arrays:
  """Returns our parameters, of Keras's weights in float64."""
  layer = _FAMILIES[type(network.config)].layer
  folded = not network.statistics
  result = {}
  for own in (*network.specs, *network.statistics):
    scope, _, last = own.rpartition('/')
    head, _, unit = scope.rpartition('/')
    conv = layer(f'{head}/{unit.replace("norm", "conv")}')
    norm = layer(f'{head}/{unit.replace("conv", "norm")}')
    gamma, beta, mean, variance = (
      values[f'{norm}/{each}'] for each in _WEIGHTS['BatchNormalization']
    )
    mean = mean - values.get(f'{conv}/bias', 0.0)
    factor = gamma / np.sqrt(variance + reference.get_layer(norm).epsilon)
    if last.endswith('kernel'):
      value = values[f'{conv}/kernel']
      if head == 'stem' and network.config.pixels == 'caffe':
        value = value[:, :, ::-1]
      if folded:
        # Of a depthwise kernel the outputs are the last axis but one.
        value = value * factor.reshape(-1, *[1] * (last == 'depthwise_kernel'))
    else:
      value = {
        'bias': beta - mean * factor,
        'gamma': gamma,
        'beta': beta,
        batch_normalization.POPULATION_MEAN: mean,
        batch_normalization.POPULATION_SQUARE: variance + np.square(mean),
      }[last]
    result[own] = np.ascontiguousarray(value, np.float32)
  return result
