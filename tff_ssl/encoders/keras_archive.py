"""Writes a Keras model as a `.keras` archive that Keras 2 and Keras 3 read.

Keras of this TensorFlow, 2.14, writes archives that it alone reads: others know layers
by other modules, take some options in another form, and look for arrays elsewhere. What
is written here is read by all from 2.14 on, but for Keras 3.0 to 3.3, which need a list
where 3.4 and later ones would then return a list. A model must be flat, because they
look for the arrays of a model within a model in different places.
"""

from collections.abc import Callable, Mapping
import importlib.metadata
import json
import os
import pathlib
import tempfile
from typing import Any
import zipfile

import h5py
import tensorflow as tf

from tff_ssl.storage import archives
from tff_ssl.storage import files

# The files in the archive; Keras needs all of them.
LAYERS, WEIGHTS, ABOUT = 'config.json', 'model.weights.h5', 'metadata.json'
# Where Keras 2.14 has the arrays, in HDF5, and where Keras 2.15 and the first releases
# of Keras 3 look for them. Later ones look in both places.
ARRAYS, ALSO = '_layer_checkpoint_dependencies', 'layers'


def save(model: tf.keras.Model, path: str | os.PathLike[str]) -> None:
  """Writes a model, uncompressed.

  Args:
    model: A functional model of standard layers, without models within it.
    path: The file, which is replaced; a temporary folder of the process holds the
      arrays meanwhile.

  Raises:
    ValueError: A layer is a model.
  """
  inner = [each.name for each in model.layers if isinstance(each, tf.keras.Model)]
  if inner:
    raise ValueError(
      f'The layer {inner[0]} of {model.name} is a model; it must be a layer.'
    )
  with tempfile.TemporaryDirectory() as folder:
    weights = pathlib.Path(folder) / WEIGHTS
    model.save_weights(weights)
    with h5py.File(weights, 'r+') as file:
      # A second name; nothing is copied.
      file[ALSO] = file[ARRAYS]
    contents: dict[str, str | bytes] = {
      ABOUT: json.dumps({'keras_version': importlib.metadata.version('keras')}),
      LAYERS: json.dumps(layers(model)),
      WEIGHTS: weights.read_bytes(),
    }
  with zipfile.ZipFile(path, 'w') as archive:
    for name, content in contents.items():
      # Of no date: equal models are equal files.
      archive.writestr(zipfile.ZipInfo(name), content)


def layers(model: tf.keras.Model) -> Any:
  """Returns a model's layers as JSON values that Keras 2 and 3 read."""
  own = tf.keras.saving.serialize_keras_object(model)
  return portable(files.through_json(own))


def read_layers(archive: zipfile.ZipFile) -> Any:
  """Returns the layers in an archive that may be a stranger's, as JSON values.

  Args:
    archive: From `archives.open_zip`.

  Raises:
    KeyError, ValueError: If there are none, or they are too large, or no JSON.
  """
  content = archives.read_member(archive, LAYERS, files.MOST_JSON)
  return files.parse_json(content, LAYERS)


def portable(described: Any) -> Any:
  """Returns layers, as Keras 2 or `layers` describe them, in the form for both.

  Args:
    described: JSON values.
  """
  if isinstance(described, list):
    return [portable(each) for each in described]
  if not isinstance(described, Mapping):
    return described
  result = {name: portable(value) for name, value in described.items()}
  for name, change in _CHANGES.items():
    if result.get('class_name') == name:
      change(result)
  return result


def _change_model(described: dict[str, Any]) -> None:
  """Names the public class, and one input or output by itself.

  Keras 2 names a private module. From a list of one output, Keras 3 makes a model that
  returns a list.
  """
  described.update(module='keras', class_name='Model', registered_name=None)
  graph = described['config']
  for name in ('input_layers', 'output_layers'):
    ends = graph[name]
    if isinstance(ends, list) and len(ends) == 1:
      (graph[name],) = ends


def _change_batch_norm(described: dict[str, Any]) -> None:
  """Keras 3 takes one axis, Keras 2 writes a list of them."""
  options = described['config']
  if isinstance(options['axis'], list):
    (options['axis'],) = options['axis']


def _change_depthwise(described: dict[str, Any]) -> None:
  """Keras 3 takes no groups; in Keras 2, 1 is the default."""
  described['config'].pop('groups', None)


_CHANGES: Mapping[str, Callable[[dict[str, Any]], None]] = {
  'Functional': _change_model,
  'BatchNormalization': _change_batch_norm,
  'DepthwiseConv2D': _change_depthwise,
}
