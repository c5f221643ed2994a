"""Files named encoder.keras: as a run leaves them, and with a program inside."""

import json
import pathlib
import zipfile

import tensorflow as tf

from tff_ssl.encoders import network
from tff_ssl.encoders import registry
from tff_ssl.export import encoder_file
from tff_ssl.runs import run_folder


def write(folder: pathlib.Path, encoder: network.Network) -> pathlib.Path:
  """Writes an encoder and its card as a run does; returns the file of the encoder."""
  params = {**encoder.init([1, 2]), **encoder.init_statistics()}
  card = {encoder_file.NETWORK: registry.describe(encoder)}
  with run_folder.RunFolder(folder / 'run', {}) as opened:
    return opened.save_encoder(encoder.to_keras(params), card)


def with_program(ran: pathlib.Path) -> tf.keras.Model:
  """Returns a model whose layers make the file `ran` as soon as they are computed."""

  def run(images, path=str(ran)):
    import pathlib

    pathlib.Path(path).touch()
    return images

  images = tf.keras.Input((8, 8, 1))
  means = tf.keras.layers.GlobalAveragePooling2D()(images)
  model = tf.keras.Model(images, tf.keras.layers.Lambda(run)(means))
  assert ran.exists()
  ran.unlink()
  return model


def hdf5(path: pathlib.Path, ran: pathlib.Path) -> None:
  """Replaces an encoder by an HDF5 file with a Lambda layer."""
  with_program(ran).save(path.with_suffix('.h5'))
  path.with_suffix('.h5').replace(path)


def archive(path: pathlib.Path, ran: pathlib.Path) -> None:
  """Replaces an encoder by a `.keras` archive with a Lambda layer."""
  with_program(ran).save(path)


def saved_model(path: pathlib.Path, ran: pathlib.Path) -> None:
  """Replaces an encoder by a SavedModel folder with a Lambda layer."""
  path.unlink()
  with_program(ran).save(path.with_suffix('.tf'), save_format='tf')
  path.with_suffix('.tf').replace(path)
  ran.unlink(missing_ok=True)


def layer_in_archive(path: pathlib.Path, ran: pathlib.Path) -> None:
  """Adds a Lambda layer to the layers that an encoder's archive lists."""
  other = path.with_name('lambda.keras')
  with_program(ran).save(other)
  with zipfile.ZipFile(other) as program, zipfile.ZipFile(path) as ours:
    kept = {name: ours.read(name) for name in ours.namelist()}
    layers = json.loads(kept['config.json'])
    layers['config']['layers'].append(
      json.loads(program.read('config.json'))['config']['layers'][-1]
    )
  with zipfile.ZipFile(path, 'w') as changed:
    for name, content in {**kept, 'config.json': json.dumps(layers)}.items():
      changed.writestr(name, content)


# Name -> puts a program that makes a file in the place of an encoder.
PROGRAMS = {
  'hdf5': hdf5,
  'archive': archive,
  'saved_model': saved_model,
  'layer_in_archive': layer_in_archive,
}
