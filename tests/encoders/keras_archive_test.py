"""The form of the archive is the one that Keras 2 and Keras 3 read."""

import io
import json
import zipfile

import h5py
import numpy as np
import pytest
import tensorflow as tf

from docs.elsewhere import __main__ as elsewhere
from tff_ssl.encoders import keras_archive
from tff_ssl.encoders import keras_import
from tff_ssl.encoders import registry

_ENCODERS = dict(elsewhere.encoders())
# One with each kind of layer.
_LOADED = (
  'resnet8-group-imagenet',
  'resnet8-batch-cifar',
  'conv2-batch',
  'convnext_micro',
  'vit_micro',
  'mlp-group',
)


def _objects(described):
  """Yields every described object: the model, its layers, their initializers."""
  if isinstance(described, dict):
    if 'class_name' in described:
      yield described
    for value in described.values():
      yield from _objects(value)
  elif isinstance(described, list):
    for value in described:
      yield from _objects(value)


@pytest.mark.long_for(*(_ENCODERS.keys() - {*_LOADED}))
@pytest.mark.parametrize('name', _ENCODERS)
def test_layers_are_public_classes_with_options_that_both_take(name):
  model = _ENCODERS[name].to_keras(elsewhere.values(_ENCODERS[name]))
  described = keras_archive.layers(model)
  assert (described['module'], described['class_name']) == ('keras', 'Model')
  # Without a list around it: Keras 3 would return a list of outputs.
  assert described['config']['input_layers'] == ['input', 0, 0]
  assert isinstance(described['config']['output_layers'][0], str)
  for each in _objects(described):
    assert each['module'] in ('keras', 'keras.layers', 'keras.initializers')
    assert each['registered_name'] is None
    assert each['class_name'] not in ('Functional', 'MultiHeadAttention')
    if each['class_name'] == 'BatchNormalization':
      assert isinstance(each['config']['axis'], int)
    if each['class_name'] == 'DepthwiseConv2D':
      assert 'groups' not in each['config']
  assert keras_archive.portable(described) == described


def test_arrays_are_there_by_the_names_of_all_versions(tmp_path):
  encoder = registry.build_encoder('mlp', (3,), 0.125)
  model = encoder.to_keras(encoder.init([0, 1]))
  paths = [tmp_path / name for name in ('a.keras', 'b.keras')]
  for path in paths:
    keras_archive.save(model, path)
  # Equal models are equal files.
  assert paths[0].read_bytes() == paths[1].read_bytes()
  with zipfile.ZipFile(paths[0]) as archive:
    assert {each.compress_type for each in archive.infolist()} == {zipfile.ZIP_STORED}
    assert json.loads(archive.read('config.json')) == keras_archive.layers(model)
    weights = io.BytesIO(archive.read('model.weights.h5'))
  with h5py.File(weights) as file:
    # One array with two names.
    kernels = [
      file[f'{place}/dense/vars/0']
      for place in ('layers', '_layer_checkpoint_dependencies')
    ]
    assert kernels[0] == kernels[1]
    np.testing.assert_array_equal(kernels[0], model.weights[0])


def test_a_model_within_a_model_is_refused(tmp_path):
  inputs = tf.keras.Input([3])
  inner = tf.keras.Model(inputs, tf.keras.layers.ReLU()(inputs), name='inner')
  outer = tf.keras.Model(inputs, inner(inputs), name='outer')
  with pytest.raises(ValueError, match='The layer inner of outer is a model; it must'):
    keras_archive.save(outer, tmp_path / 'outer.keras')
  assert not list(tmp_path.iterdir())


def test_layers_of_another_form_are_not_read_back():
  network = registry.build_encoder('vit_micro', (8, 8, 1), 1.0)
  other = registry.build_encoder('conv2', (8, 8, 1), 1.0)
  model = other.to_keras(other.init([0, 0]))
  with pytest.raises(ValueError, match='embedding/patch/kernel in a different form'):
    keras_import.params(network, model)
