"""ConvNeXt against NumPy in float64, written from the paper's equations."""

import numpy as np

from tests.encoders import numpy_transformer
from tff_ssl.encoders import convnext


def _depthwise(params, name, x):
  """A depthwise convolution of 3 x 3 with padding of zeros, place by place."""
  kernel, bias = params[f'{name}/depthwise_kernel'], params[f'{name}/bias']
  _, height, width, _ = x.shape
  padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
  return bias + sum(
    padded[:, i : i + height, j : j + width] * kernel[i, j, :, 0]
    for i in range(3)
    for j in range(3)
  )


def _patches(params, name, x):
  """A convolution of 2 x 2 with strides of 2: one matrix for each patch."""
  n, height, width, channels = x.shape
  cut = x.reshape(n, height // 2, 2, width // 2, 2, channels).swapaxes(2, 3)
  kernel = params[f'{name}/kernel']
  cut = cut.reshape(n, height // 2, width // 2, 4 * channels)
  return cut @ kernel.reshape(4 * channels, -1) + params[f'{name}/bias']


def _dense(params, name, x):
  return x @ params[f'{name}/kernel'] + params[f'{name}/bias']


def _numpy(params, x):
  norm = numpy_transformer.layer_norm
  for stage in ('stage1', 'stage2', 'stage3'):
    if stage == 'stage1':
      x = norm(params, 'stage1/stem_norm', _patches(params, 'stage1/conv', x))
    else:
      x = _patches(params, f'{stage}/conv', norm(params, f'{stage}/norm', x))
    block = f'{stage}/block0'
    y = norm(params, f'{block}/norm', _depthwise(params, f'{block}/conv', x))
    y = numpy_transformer.gelu(_dense(params, f'{block}/mlp1', y))
    x = x + _dense(params, f'{block}/mlp2', y) * params[f'{block}/scale/kernel']
  return norm(params, 'norm', x.mean((1, 2)))


def test_convnext_matches_numpy():
  net = convnext.build_encoder('convnext_micro', (8, 16, 3), width=0.25)
  params = numpy_transformer.random_params(net.specs)
  x = np.random.default_rng(1).normal(size=(2, 8, 16, 3))
  # TensorFlow's GELU rounds the root of 2 to float32.
  np.testing.assert_allclose(net.apply(params, x), _numpy(params, x), rtol=1e-6)
  assert net.tap_shapes['stage3'] == (1, 2, 32)


def test_convnext_tiny_has_the_papers_size():
  net = convnext.build_encoder('convnext_tiny', (224, 224, 3))
  # 28.6 M in table 9, of which the classifier has 769,000.
  assert 27.7e6 < net.num_parameters < 27.9e6
  assert net.output_dim == 768
