"""Parameters that come back from a Keras model compute what they did before."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import keras_import
from tff_ssl.encoders import registry


@pytest.mark.parametrize(
  ('name', 'shape', 'norm'),
  [
    ('conv2', (8, 8, 1), 'group'),
    ('conv2', (8, 8, 1), 'batch'),
    ('resnet8', (8, 8, 1), 'group'),
    ('resnet8', (8, 8, 1), 'batch'),
    ('mlp', (6,), 'batch'),
    ('vit_micro', (8, 8, 1), None),
  ],
)
def test_they_compute_the_same(name, shape, norm):
  field = 'image' if len(shape) == 3 else 'features'
  network = registry.build_encoder(name, shape, 0.25, None, None, norm, field)
  random = np.random.default_rng(0)
  params = {
    # Squares are above those of the means.
    key: (np.abs(value) + 2 if key.endswith('square') else value)
    + random.uniform(0.1, 0.5, value.shape).astype(np.float32)
    for key, value in {**network.init([0, 0]), **network.init_statistics()}.items()
  }
  found = keras_import.params(network, network.to_keras(params))
  assert found.keys() == params.keys()
  inputs = random.uniform(size=(3, *shape)).astype(np.float32)
  got, want = (network.infer(each, tf.constant(inputs)) for each in (found, params))
  assert np.std(want) > 1e-3
  np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)
  for key, value in found.items():
    if not key.endswith('kernel'):
      np.testing.assert_allclose(value, params[key], rtol=1e-5)


def test_layers_of_another_form_are_refused():
  network = registry.build_encoder('vit_micro', (8, 8, 1), 1.0)
  other = registry.build_encoder('conv2', (8, 8, 1), 1.0)
  model = other.to_keras(other.init([0, 0]))
  with pytest.raises(ValueError, match='embedding/patch/kernel in a different form'):
    keras_import.params(network, model)
