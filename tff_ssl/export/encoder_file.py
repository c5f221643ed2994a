"""Reads `encoder.keras` of a run without executing anything in it.

`tf.keras.models.load_model` builds whatever a file asks for, and a Lambda layer in an
HDF5 file, a SavedModel or a `.keras` archive is a program. Here our own code rebuilds
the network from the file's card, `encoder.json`. The layers that the file lists are
compared, as JSON, with the layers of the rebuilt network. Only arrays are taken from
the file.
"""

from collections.abc import Callable
import io
import os
import pathlib
import tempfile
from typing import Any
import zipfile

import h5py
import tensorflow as tf

from tff_ssl.encoders import keras_archive
from tff_ssl.encoders import network as network_lib
from tff_ssl.encoders import registry
from tff_ssl.storage import archives
from tff_ssl.storage import files
from tff_ssl.storage import hdf5

# The entry of the card from which the network is rebuilt.
NETWORK = 'network'
_SHAPES = dict[str, tuple[int, ...]]
# Bytes that HDF5 and JSON need besides the arrays: a few million for the deepest
# network.
_MOST_BESIDE = 2**26


def untrained(network: network_lib.Network, layers: object = None) -> tf.keras.Model:
  """Returns the model of an encoder, with any weights.

  Args:
    network: The encoder.
    layers: The layers of its file; not needed.
  """
  del layers
  return network.to_keras({**network.init([0, 0]), **network.init_statistics()})


def read(
  path: str | os.PathLike[str],
  build: Callable[[network_lib.Network, Any], tf.keras.Model] = untrained,
) -> tf.keras.Model:
  """Returns the Keras model in a file that `RunFolder.save_encoder` wrote.

  Args:
    path: The file; its card is the `.json` file of the same name.
    build: Makes the model that the file must hold, with any weights, of the network of
      its card and the layers that the file lists, which are a stranger's.

  Raises:
    ValueError: If the file or its card is missing or damaged, or the file has another
      format or holds anything but the network of its card.
  """
  path = pathlib.Path(path)
  if not path.is_file():
    raise ValueError(f'{path} is not a file')
  if not zipfile.is_zipfile(path):
    raise ValueError(f'{path} is not a .keras archive: it is not a zip file')
  network = rebuild(path)
  try:
    # Keras compresses nothing, so that no file takes more memory than the archive.
    with archives.open_zip(path, stored=True) as archive:
      # Earlier releases wrote the layers as Keras 2 describes them.
      layers = keras_archive.portable(keras_archive.read_layers(archive))
      # Twice the bytes of the parameters: statistics, and what HDF5 leaves unused.
      most = 8 * network.num_parameters + _MOST_BESIDE
      weights = archives.read_member(archive, keras_archive.WEIGHTS, most)
  except (KeyError, TypeError, AttributeError, *files.ZIP_ERRORS) as error:
    raise ValueError(f'{path} is not a .keras archive: {error}') from error
  if 4 * network.num_parameters > len(weights):
    raise ValueError(
      f'{path} has {len(weights)} bytes of arrays, too few for the '
      f'{network.num_parameters} parameters of the network of its card'
    )
  model = build(network, layers)
  if layers != keras_archive.layers(model):
    raise ValueError(
      f'{path} has different layers from the {network.name} that its card describes'
    )
  _fill(model, weights, path)
  return model


def rebuild(path: str | os.PathLike[str]) -> network_lib.Network:
  """Returns the network that the card of a file describes.

  Args:
    path: See `read`.

  Raises:
    ValueError: If the card is missing or damaged.
  """
  card = pathlib.Path(path).with_suffix('.json')
  if not card.is_file():
    raise ValueError(f'{card} is missing; the network is rebuilt from it')
  try:
    description = files.read_json(card)[NETWORK]
  except (KeyError, ValueError) as error:
    raise ValueError(
      f"{card} has no '{NETWORK}', from which the network is rebuilt; repeat the "
      'command of the finished run to write it again'
    ) from error
  try:
    return registry.rebuild(description)
  except ValueError as error:
    raise ValueError(f'{card} describes no network: {error}') from error


def _fill(model: tf.keras.Model, content: bytes, path: pathlib.Path) -> None:
  """Gives a model the arrays of a file, which must be exactly the model's."""
  with tempfile.TemporaryDirectory() as folder:
    aside = pathlib.Path(folder) / keras_archive.WEIGHTS
    model.save_weights(aside)
    expected = _shapes(aside.read_bytes(), path)
    shapes = _shapes(content, path)
    if shapes != expected:
      name = min(name for name, _ in shapes.items() ^ expected.items())
      raise ValueError(
        f"{path} does not fit its card: the array '{name}' has shape "
        f'{shapes.get(name, "(none)")}; it must be {expected.get(name, "absent")}'
      )
    aside.write_bytes(content)
    try:
      # Reads only arrays, one for each weight of the model.
      model.load_weights(aside)
    except OSError as error:
      raise ValueError(f'{path} is damaged: {error}') from error


def _is_second_name(group: h5py.Group, name: str) -> bool:
  """Returns whether a name in an HDF5 file is only another name of all its arrays."""
  is_second = (group.name, name) == ('/', keras_archive.ALSO)
  return is_second and bool(
    hdf5.child(group, name) == hdf5.child(group, keras_archive.ARRAYS)
  )


def _shapes(content: bytes, path: pathlib.Path) -> _SHAPES:
  """Returns the shape of each array in an HDF5 file that holds nothing but arrays."""
  try:
    with h5py.File(io.BytesIO(content), 'r') as file:
      found = hdf5.arrays(file, _is_second_name)
      return {name: value.shape for name, value in found.items()}
  except (ValueError, *hdf5.ERRORS) as error:
    raise ValueError(f'{path} is damaged: {error}') from error
