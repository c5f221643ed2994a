"""Models of keras.applications as ours: Keras's own numbers, and what is refused."""

import functools
import json
import re
import zipfile

import h5py
import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import keras_applications
from tff_ssl.encoders import registry

_SIDE = 32
_APPLICATIONS = tf.keras.applications
# Our name -> (Keras's model, width, what it does with pixels in [0, 255]).
_MODELS = {
  'keras_resnet50': (
    _APPLICATIONS.ResNet50,
    1.0,
    _APPLICATIONS.resnet.preprocess_input,
  ),
  'keras_mobilenet_v2': (
    functools.partial(_APPLICATIONS.MobileNetV2, alpha=0.35),
    0.35,
    _APPLICATIONS.mobilenet_v2.preprocess_input,
  ),
}
_SMALL = 'keras_mobilenet_v2'
both = pytest.mark.parametrize('name', _MODELS)
long_for_resnet = pytest.mark.long_for('keras_resnet50')


@functools.cache
def _model(name, dtype='float32'):
  """Returns a model none of whose vectors is as it was made."""
  tf.keras.backend.set_floatx(dtype)
  try:
    model = _MODELS[name][0](
      weights=None, include_top=False, input_shape=(_SIDE, _SIDE, 3)
    )
  finally:
    tf.keras.backend.set_floatx('float32')
  rng = np.random.default_rng(0)
  model.set_weights(
    [
      rng.normal(size=w.shape) * (2 / np.prod(w.shape[:-1])) ** 0.5
      if w.ndim > 1
      else w + 0.2 * rng.random(w.shape)
      for w in model.get_weights()
    ]
  )
  return model


_reference = keras_applications._reference


@functools.cache
def _built(kind, sides):
  name = 'keras_resnet50' if kind == 'ResNetConfig' else _SMALL
  return _reference(_encoder(name), sides)


@pytest.fixture(autouse=True)
def _built_once(monkeypatch):
  """Building a model takes seconds."""
  monkeypatch.setattr(
    keras_applications,
    '_reference',
    lambda network, sides: _built(type(network.config).__name__, sides),
  )


def _encoder(name, norm='batch', side=_SIDE):
  width = _MODELS[name][1]
  return registry.build_encoder(name, (side, side, 3), width, normalization=norm)


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
  """Returns a function from a model's name, and a suffix, to its file."""
  folder = tmp_path_factory.mktemp('saved')

  @functools.cache
  def save(name, suffix='.keras'):
    path = folder / f'{name}{suffix}'
    (_model(name).save if suffix == '.keras' else _model(name).save_weights)(path)
    return path

  return save


def _pictures():
  shape = (3, _SIDE, _SIDE, 3)
  return np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)


def _features(name, training=False, dtype='float32'):
  """Returns what Keras makes of pictures, averaged over positions."""
  prepared = _MODELS[name][2](_pictures().astype(dtype))
  return tf.reduce_mean(_model(name, dtype)(prepared, training=training), [1, 2])


@long_for_resnet
@both
def test_features_are_those_of_keras(saved, name):
  expected = _features(name).numpy()
  # Neither 0 nor cut off everywhere.
  assert np.std(expected) > 0.01
  params = keras_applications.read(saved(name), _encoder(name))
  folded = keras_applications.read(saved(name), _encoder(name, 'none'))
  pictures = _pictures() / np.float32(255)
  for found in (
    _encoder(name).infer(params, pictures),
    _encoder(name, 'none').apply(folded, pictures),
  ):
    assert np.abs(found - expected).max() < 1e-4 * max(1, np.abs(expected).max())


@pytest.mark.long
@both
def test_gradients_are_those_of_keras(saved, name):
  """In float64, with batch norm in training."""
  model, encoder = _model(name, 'float64'), _encoder(name)
  # Of the same weights: float32 ones.
  model.set_weights(_model(name).get_weights())
  params = keras_applications.read(saved(name), encoder)
  own = {key: tf.constant(params[key], tf.float64) for key in encoder.specs}
  weights = np.random.default_rng(2).normal(size=(3, encoder.output_dim))
  with tf.GradientTape(persistent=True) as tape:
    tape.watch(own)
    loss = tf.reduce_sum(encoder.apply(own, _pictures() / 255.0) * weights)
    other = tf.reduce_sum(_features(name, True, 'float64') * weights)
  assert float(loss) == pytest.approx(float(other), rel=1e-6)
  found = tape.gradient(loss, own)
  there = {
    variable.name.partition(':')[0].replace('depthwise_kernel', 'kernel'): gradient
    for variable, gradient in zip(
      model.trainable_variables,
      tape.gradient(other, model.trainable_variables),
      strict=True,
    )
  }
  layer = keras_applications._FAMILIES[type(encoder.config)].layer
  # Shifts that the next batch norm takes away have a gradient of 0.
  least = 1e-6 * max(float(tf.reduce_max(tf.abs(each))) for each in there.values())
  for key, gradient in found.items():
    scope, _, last = key.rpartition('/')
    expected = there[f'{layer(scope)}/{last.removeprefix("depthwise_")}'].numpy()
    if key == 'stem/conv/kernel' and name == 'keras_resnet50':
      expected = expected[:, :, ::-1]
    largest = max(least, np.abs(expected).max())
    assert np.abs(gradient - expected).max() < 1e-4 * largest, key


@pytest.mark.long
@pytest.mark.parametrize('suffix', ['.weights.h5', '.h5'])
@both
def test_weights_alone_are_the_same(saved, name, suffix):
  expected = keras_applications.read(saved(name), _encoder(name))
  found = keras_applications.read(saved(name, suffix), _encoder(name))
  assert list(found) == list(expected)
  for key, value in expected.items():
    np.testing.assert_array_equal(found[key], value)


@pytest.mark.long
def test_pixels_are_read_as_they_were_in_training(saved):
  """Else the colours of Caffe would be wrong without a word."""
  assert _encoder('keras_resnet50').config.pixels == 'caffe'
  assert _encoder(_SMALL).config.pixels == 'signed'
  shape = (_SIDE, _SIDE, 3)
  kernel = 'stem/conv/kernel'
  signed, caffe = (
    keras_applications.read(
      saved(_SMALL), registry.build_encoder(_SMALL, shape, 0.35, pixels=pixels)
    )[kernel]
    for pixels in ('signed', 'caffe')
  )
  np.testing.assert_array_equal(signed, caffe[:, :, ::-1])


def _changed_layers(saved, path, change):
  with zipfile.ZipFile(saved(_SMALL)) as archive:
    contents = {name: archive.read(name) for name in archive.namelist()}
  described = json.loads(contents['config.json'])
  change(described['config']['layers'])
  contents['config.json'] = json.dumps(described).encode()
  with zipfile.ZipFile(path, 'w') as archive:
    for name, content in contents.items():
      archive.writestr(name, content)


def _layer(layers, name):
  (layer,) = (each for each in layers if each['config']['name'] == name)
  return layer


def _with_lambda(layers):
  layers.append({**layers[-1], 'class_name': 'Lambda', 'config': {'name': 'code'}})


def _with_model(layers):
  layers[2]['class_name'] = 'Functional'


def _with_other_stride(layers):
  _layer(layers, 'block_1_depthwise')['config']['strides'] = [1, 1]


def _with_other_source(layers):
  _layer(layers, 'block_2_add')['inbound_nodes'][0][0][0] = 'block_1_expand'


@pytest.mark.long_for('model', 'source', 'missing', 'empty', 'damaged')
@pytest.mark.parametrize(
  ('change', 'said'),
  [
    (_with_lambda, "has the layer 'code' (Lambda), for which this encoder has no"),
    (_with_model, "has a layer 'bn_Conv1' that differs from that of keras"),
    (_with_other_stride, "has a layer 'block_1_depthwise' that differs"),
    (_with_other_source, "has a layer 'block_2_add' that differs"),
    (lambda layers: layers.pop(7), "has no layer 'expanded_conv_project' (Conv2D)"),
    (list.clear, 'has a description that is not of a functional model of Keras'),
    (lambda layers: layers[3].clear(), 'has a description that is not of a functional'),
  ],
  ids=['lambda', 'model', 'stride', 'source', 'missing', 'empty', 'damaged'],
)
def test_other_layers_are_refused_by_name(saved, tmp_path, change, said):
  path = tmp_path / 'other.keras'
  _changed_layers(saved, path, change)
  with pytest.raises(ValueError, match=re.escape(f'{path} {said}')):
    keras_applications.read(path, _encoder(_SMALL))


def _array(name, value):
  def change(file):
    old = file[name]
    made = np.full(old.shape, value, old.dtype) if np.isscalar(value) else value
    del file[name]
    file[name] = made

  return change


def _of_ten_gigabytes(file):
  del file[_KERNEL]
  file.create_dataset(_KERNEL, (50_000, 50_000), np.float32)


def _elsewhere(file):
  del file[_KERNEL]
  file[_KERNEL] = h5py.ExternalLink('/etc/other.h5', '/a')


def _compressed(file):
  value = file[_KERNEL][()]
  del file[_KERNEL]
  file.create_dataset(_KERNEL, data=value, compression='gzip')


_KERNEL = 'Conv1/Conv1/kernel:0'
_VARIANCE = 'bn_Conv1/bn_Conv1/moving_variance:0'


@pytest.mark.long_for('integers', 'compressed', 'missing', 'additional')
@pytest.mark.parametrize(
  ('change', 'said'),
  [
    (_array(_KERNEL, np.nan), "has a value of 'Conv1/kernel' that is not finite"),
    (_array(_VARIANCE, -1.0), "has a negative value of 'bn_Conv1/moving_variance'"),
    (_array(_KERNEL, np.zeros(3)), "has 'Conv1/kernel' of shape [3]; this encoder"),
    (_array(_KERNEL, np.zeros([3, 3, 3, 16], int)), "kernel:0' is not an array of"),
    (_of_ten_gigabytes, "has 'Conv1/kernel' of shape [50000, 50000]; this encoder"),
    (_elsewhere, "'/Conv1/Conv1/kernel:0' is a link"),
    (_compressed, "has 'Conv1/kernel' in chunks; it must be stored as it is"),
    (lambda file: file.pop(_KERNEL), "has no 'Conv1/kernel'; this encoder needs it"),
    (
      lambda file: file.create_dataset('a/b/c', (2,), 'f4'),
      "has 'a/c', for which this",
    ),
  ],
  ids=[
    *('nan', 'negative', 'shape', 'integers', 'declared', 'link', 'compressed'),
    *('missing', 'additional'),
  ],
)
def test_arrays_that_do_not_fit_are_refused(saved, tmp_path, change, said):
  path = tmp_path / 'other.h5'
  path.write_bytes(saved(_SMALL, '.h5').read_bytes())
  with h5py.File(path, 'r+') as file:
    change(file)
  with pytest.raises(ValueError, match=re.escape(said)):
    keras_applications.read(path, _encoder(_SMALL))


@pytest.mark.long_for('.keras')
@pytest.mark.parametrize('suffix', ['.keras', '.h5'])
def test_damaged_and_missing_files_are_refused(saved, tmp_path, suffix):
  path = tmp_path / f'half{suffix}'
  with pytest.raises(ValueError, match='is not a file; it must be a model of keras'):
    keras_applications.read(path, _encoder(_SMALL))
  whole = saved(_SMALL, suffix).read_bytes()
  for content in (whole[: len(whole) // 2], b'\x80\x04 a pickle', b''):
    path.write_bytes(content)
    with pytest.raises(ValueError, match='is not a file of Keras, or damaged'):
      keras_applications.read(path, _encoder(_SMALL))


@pytest.mark.long
def test_float16_is_read(saved, tmp_path):
  path = tmp_path / 'half.h5'
  path.write_bytes(saved(_SMALL, '.h5').read_bytes())
  with h5py.File(path, 'r+') as file:
    value = file[_KERNEL][()].astype(np.float16)
    _array(_KERNEL, value)(file)
  found = keras_applications.read(path, _encoder(_SMALL))['stem/conv/kernel']
  np.testing.assert_array_equal(found, value.astype(np.float32))
