"""The MLP, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import mlp


def _numpy(params, x: np.ndarray) -> np.ndarray:
  """Two layers of relu(kernel x + bias), in float64."""
  for k in range(2):
    kernel, bias = (params[f'dense{k}/{name}'].numpy() for name in ('kernel', 'bias'))
    x = np.maximum(x @ kernel + bias, 0)
  return x


def test_without_norm_it_is_two_layers():
  net = mlp.build_encoder('mlp', (5,), 1 / 16, 'none')
  assert net.output_dim == 8
  params = net.init([1, 2], tf.float64)
  x = np.random.default_rng(0).normal(size=(3, 5))
  np.testing.assert_allclose(net.apply(params, x), _numpy(params, x), rtol=1e-12)


@pytest.mark.parametrize('normalization', ['group', 'batch', 'none'])
def test_it_is_exported(normalization):
  net = mlp.build_encoder('mlp', (5,), 1 / 4, normalization)
  assert net.mixes_examples == (normalization == 'batch')
  params = net.init([1, 2]) | net.init_statistics()
  x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
  exported = net.to_keras(params)
  np.testing.assert_allclose(exported(x), net.infer(params, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (('mlp2', (5,)), "encoder is 'mlp2'; it must be one of"),
    (('mlp', (5, 5, 1)), r'example of mlp is \(5, 5, 1\); it must be'),
  ],
)
def test_bad_arguments_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    mlp.build_encoder(*arguments)
  with pytest.raises(ValueError, match=r'widths is \(\); it must have an entry'):
    mlp.MlpConfig(())
