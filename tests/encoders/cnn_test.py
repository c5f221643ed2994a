"""Plain convolutional networks, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import cnn


def _block(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
  """A 3 x 3 convolution with zeros around, relu, and 2 x 2 maxima, in float64."""
  n, height, width, _ = x.shape
  padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
  y = np.zeros((n, height, width, kernel.shape[-1]))
  for i in range(3):
    for j in range(3):
      y += padded[:, i : i + height, j : j + width] @ kernel[i, j]
  y = np.maximum(y + bias, 0)
  return y.reshape(n, height // 2, 2, width // 2, 2, -1).max(axis=(2, 4))


def test_without_norm_it_is_convolutions_and_maxima():
  net = cnn.build_encoder('conv2', (8, 4, 3), 1 / 16, 'none')
  assert net.output_dim == 4
  assert dict(net.tap_shapes) == {'stage1': (4, 2, 4), 'stage2': (2, 1, 4)}
  params = net.init([1, 2], tf.float64)
  x = np.random.default_rng(0).normal(size=(5, 8, 4, 3))
  expected = x
  for k in (1, 2):
    expected = _block(
      expected,
      params[f'stage{k}/conv/kernel'].numpy(),
      params[f'stage{k}/conv/bias'].numpy(),
    )
  np.testing.assert_allclose(
    net.apply(params, x), expected.mean(axis=(1, 2)), rtol=1e-12
  )


@pytest.mark.parametrize('normalization', ['group', 'batch', 'none'])
def test_it_is_exported(normalization):
  # Odd sizes, and more poolings than the image has halves.
  net = cnn.build_encoder('conv4', (7, 5, 1), 1 / 4, normalization)
  assert net.output_dim == 16
  assert net.mixes_examples == (normalization == 'batch')
  params = net.init([1, 2]) | net.init_statistics()
  x = np.random.default_rng(0).normal(size=(3, 7, 5, 1)).astype(np.float32)
  exported = net.to_keras(params)
  np.testing.assert_allclose(exported(x), net.infer(params, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (('conv3', (8, 8, 1)), "encoder is 'conv3'; it must be one of"),
    (('conv2', (8,)), r'image_shape is \(8,\); it must be \(height, width'),
  ],
)
def test_bad_arguments_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    cnn.build_encoder(*arguments)
  with pytest.raises(ValueError, match='blocks is 0; it must be between 1'):
    cnn.CnnConfig(0)
