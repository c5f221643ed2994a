import io
import json
import shutil
import zipfile

import h5py
import numpy as np
import pytest
import tensorflow as tf

from tests.export import encoder_files
from tff_ssl.encoders import registry
from tff_ssl.encoders import vit
from tff_ssl.export import encoder_file


def small():
  return registry.build_encoder('conv2', (8, 8, 1), width=0.25)


@pytest.fixture(scope='module')
def written(tmp_path_factory):
  return encoder_files.write(tmp_path_factory.mktemp('written'), small())


@pytest.fixture
def path(written, tmp_path):
  """A copy of a small encoder with its card, to be changed."""
  return shutil.copytree(written.parent, tmp_path / 'run') / written.name


def edit(path, name, change):
  """Replaces a file of an archive by what a function makes of it."""
  with zipfile.ZipFile(path) as archive:
    kept = {name: archive.read(name) for name in archive.namelist()}
  with zipfile.ZipFile(path, 'w') as archive:
    for other, content in kept.items():
      archive.writestr(other, change(content) if other == name else content)


def edit_arrays(path, change):
  """Lets a function change the HDF5 file of an archive."""

  def edited(content):
    file = io.BytesIO(content)
    with h5py.File(file, 'r+') as opened:
      change(opened)
    return file.getvalue()

  edit(path, 'model.weights.h5', edited)


def edit_card(path, change):
  card = path.with_suffix('.json')
  content = json.loads(card.read_text())
  change(content)
  card.write_text(json.dumps(content))


def _card(change):
  """Returns a change of a path that changes its card's content."""
  return lambda path: edit_card(path, change)


def _network(change):
  return _card(lambda card: change(card['network']))


def _config(**fields):
  return _network(lambda network: network['config'].update(fields))


def _kernel(link):
  """Returns a change that puts a link or an array in the place of a kernel."""

  def change(file):
    group = file['_layer_checkpoint_dependencies/conv2d/vars']
    del group['0']
    group['0'] = link

  return lambda path: edit_arrays(path, change)


@pytest.mark.long_for('resnet14', 'resnet8_0', 'resnet8_1', 'vit_micro')
@pytest.mark.parametrize(
  'encoder',
  [
    registry.build_encoder('resnet8', (8, 8, 2), 0.25, normalization='batch'),
    registry.build_encoder(
      'resnet14', (9, 8, 1), 0.25, stem='imagenet', normalization='none'
    ),
    registry.build_encoder('resnet8', (8, 8, 1), 0.5, groups=2),
    registry.build_encoder('conv2', (9, 8, 1), 0.25, normalization='batch'),
    registry.build_encoder('vit_micro', (8, 8, 1), patch_size=4),
    vit.from_config(vit.ViTConfig(8, 1, 2, 2), (8, 4, 3)),
    registry.build_encoder('mlp', (5,), 0.25, normalization='batch'),
  ],
  ids=lambda encoder: encoder.name,
)
def test_a_rebuilt_encoder_is_the_one_that_was_written(tmp_path, encoder):
  path = encoder_files.write(tmp_path, encoder)
  rebuilt = encoder_file.read(path)
  written = tf.keras.models.load_model(path)
  images = np.random.default_rng(0).random((5, *encoder.input_shape)).astype('float32')
  np.testing.assert_array_equal(rebuilt(images), written(images))
  assert rebuilt.input_shape[1:] == encoder.input_shape


@pytest.mark.long_for('convnext_micro')
@pytest.mark.parametrize(
  'encoder',
  [
    registry.build_encoder('resnet8', (8, 8, 2), 0.25, normalization='batch'),
    registry.build_encoder('convnext_micro', (8, 8, 1), 0.25),
  ],
  ids=lambda encoder: encoder.name,
)
def test_a_file_as_keras_2_writes_it_is_read(tmp_path, encoder):
  """As earlier releases left it."""
  path = encoder_files.write(tmp_path, encoder)
  written = tf.keras.models.load_model(path)
  model = encoder.to_keras({**encoder.init([1, 2]), **encoder.init_statistics()})
  model.save(path)
  images = np.random.default_rng(0).random((5, *encoder.input_shape)).astype('float32')
  np.testing.assert_array_equal(encoder_file.read(path)(images), written(images))


def test_the_programs_would_run(tmp_path):
  """That nothing ran, below, says something only if load_model runs it."""
  path, ran = tmp_path / 'encoder.keras', tmp_path / 'ran'
  path.touch()
  encoder_files.hdf5(path, ran)
  model = tf.keras.models.load_model(path)
  model(np.zeros([1, 8, 8, 1], np.float32))
  assert ran.exists()


@pytest.mark.parametrize(
  ('kind', 'message'),
  [
    ('hdf5', 'it is not a zip file'),
    ('archive', 'too few for the'),
    ('saved_model', 'is not a file'),
    (
      'layer_in_archive',
      'has different layers from the conv2 that its card describes',
    ),
  ],
)
def test_a_program_is_refused_and_not_run(path, tmp_path, kind, message):
  ran = tmp_path / 'ran'
  encoder_files.PROGRAMS[kind](path, ran)
  with pytest.raises(ValueError, match=message):
    encoder_file.read(path)
  assert not ran.exists()


def pack(path, method=zipfile.ZIP_DEFLATED):
  """Writes the files of an archive again, compressed or not."""
  with zipfile.ZipFile(path) as archive:
    kept = {name: archive.read(name) for name in archive.namelist()}
  with zipfile.ZipFile(path, 'w', method) as archive:
    archive.writestr('config.json', kept['config.json'])
    archive.writestr('model.weights.h5', kept['model.weights.h5'])


def flip(path, text, behind):
  """Changes a byte, so many behind the first place of a text."""
  content = bytearray(path.read_bytes())
  content[content.index(text) + behind] ^= 0xFF
  path.write_bytes(content)


# Each is another kind of error in Python's zipfile.
@pytest.mark.parametrize(
  ('text', 'behind'),
  [
    # In the layers; and the flags, the method and the version in the entry of
    # the first file in the archive's directory.
    (b'config.json', 40),
    (b'PK\x01\x02', 8),
    (b'PK\x01\x02', 10),
    (b'PK\x01\x02', 6),
  ],
)
def test_a_damaged_archive_is_refused(path, text, behind):
  pack(path, zipfile.ZIP_STORED)
  assert encoder_file.read(path).count_params() == small().num_parameters
  flip(path, text, behind)
  with pytest.raises(ValueError, match=r'encoder\.keras is not a \.keras archive: '):
    encoder_file.read(path)


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    *(
      (
        lambda path, name=name: edit(path, name, lambda _: bytes(2**27)),
        f'{name} has {2**27:,} bytes; .*at most',
      )
      for name in ('config.json', 'model.weights.h5')
    ),
    # A few kilobytes may unpack to more than the memory, whatever the card says.
    (pack, r'compressed, to .* bytes; it must be'),
    (
      lambda path: edit(path, 'config.json', lambda _: b'[' * 10**5),
      r'encoder\.keras is not a \.keras archive: ',
    ),
  ],
  ids=['layers', 'arrays', 'compressed', 'nested'],
)
def test_files_that_would_take_memory_are_refused(path, change, message):
  change(path)
  with pytest.raises(ValueError, match=message):
    encoder_file.read(path)


def test_an_array_that_cannot_be_unpacked_is_refused(path):
  values = np.arange(144, dtype=np.float32).reshape(3, 3, 1, 16)

  def change(file):
    group = file['_layer_checkpoint_dependencies/conv2d/vars']
    del group['0']
    group.create_dataset('0', data=values, chunks=values.shape, compression='gzip')

  edit_arrays(path, change)
  assert encoder_file.read(path).count_params() == small().num_parameters

  def damage(content):
    # How deflated bytes begin, as of zlib's level 4.
    start = content.rindex(b'x^')
    return content[:start] + bytes(20) + content[start + 20 :]

  edit(path, 'model.weights.h5', damage)
  with pytest.raises(ValueError, match=r'encoder\.keras is damaged'):
    encoder_file.read(path)


def add_time(file):
  """Adds an array of a type that NumPy does not have."""
  space = h5py.h5s.create_simple((2,))
  h5py.h5d.create(file.id, b'times', h5py.h5t.UNIX_D32LE, space)


def other_layers(file):
  """Both names must be of the same arrays."""
  file.pop('layers')
  file.create_dataset('layers/x', data=[0.5])


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    (lambda path: path.with_suffix('.json').unlink(), r'encoder\.json is missing'),
    (lambda path: path.with_suffix('.json').write_text('{'), "has no 'network'"),
    (_card(dict.clear), "has no 'network'"),
    (
      _card(lambda card: card.update(network=None)),
      'describes no network: the description .* has no family',
    ),
    (
      _network(lambda network: network.update(family='os')),
      r"has no family; it must be one of \('resnet', 'cnn', 'convnext', 'vit', 'mlp', ",
    ),
    (
      _network(lambda network: network.pop('image_shape')),
      "description of a network is incomplete or wrong: 'image_shape'",
    ),
    (_network(lambda network: network.update(image_shape='888')), "image_shape '888'"),
    (_config(x=1), "its config has 'x'; the fields are blocks"),
    (_config(blocks=0), 'blocks is 0; it must be'),
    (_config(channels=4096), 'bytes of arrays, too few for'),
    (
      _config(normalization='none'),
      'has different layers from the conv2 that its card describes',
    ),
    (lambda path: edit(path, 'config.json', lambda _: b'{'), 'not a .keras archive'),
    (
      lambda path: edit(path, 'model.weights.h5', lambda content: bytes(len(content))),
      'encoder.keras is damaged',
    ),
    (_kernel(h5py.ExternalLink('/etc/passwd', '/x')), 'is a link'),
    (
      _kernel(np.zeros([3, 3])),
      r"conv2d/vars/0' has shape \(3, 3\); it must be \(3, 3, 1, 16\)",
    ),
    (_kernel(np.array(b'x')), 'is not an array of floats'),
    # A type by itself.
    (_kernel(np.dtype('f4')), "conv2d/vars/0' is not an array of floats"),
    (lambda path: edit_arrays(path, other_layers), "array '/layers/x' has shape"),
    (
      lambda path: edit_arrays(path, add_time),
      "'/times' is not an array of floats",
    ),
  ],
)
def test_card_of_no_network_is_refused(path, change, message):
  change(path)
  with pytest.raises(ValueError, match=message):
    encoder_file.read(path)
