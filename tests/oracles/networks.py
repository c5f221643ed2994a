"""Outputs of small encoders and heads, written from their papers.

TensorFlow's GELU rounds the root of 2 to float32: float64 agrees to about 1e-8.
"""

import numpy as np

from tests.encoders import numpy_transformer
from tests.oracles import layers


def _dense(params, name, x):
  return x @ params[f'{name}/kernel'] + params[f'{name}/bias']


def _scaled(params, name):
  return params[f'{name}/gamma'], params[f'{name}/beta']


def cnn(params, x):
  """Two blocks without norm."""
  for stage in ('stage1', 'stage2'):
    x = layers.conv(x, params[f'{stage}/conv/kernel']) + params[f'{stage}/conv/bias']
    x = layers.max_pool(np.maximum(x, 0), 2, 2)
  return x.mean((1, 2))


def resnet8(params, x, batch_norm=False, standardized=True):
  """Groups have 8 channels, or all."""

  def normed(name, x):
    if batch_norm:
      return layers.batch_norm(x, *_scaled(params, name))
    return layers.group_norm(x, *_scaled(params, name), max(1, x.shape[-1] // 8))

  def conv(name, x, strides=1):
    kernel = params[f'{name}/kernel']
    kernel = layers.standardize(kernel) if standardized else kernel
    return layers.conv(x, kernel, strides)

  x = np.maximum(normed('stem/norm', conv('stem/conv', x)), 0)
  for stage, strides in (('stage1', 1), ('stage2', 2), ('stage3', 2)):
    block = f'{stage}/block0'
    y = normed(f'{block}/norm1', conv(f'{block}/conv1', x, strides))
    y = normed(f'{block}/norm2', conv(f'{block}/conv2', np.maximum(y, 0)))
    if strides > 1:
      x = normed(f'{block}/norm_shortcut', conv(f'{block}/conv_shortcut', x, strides))
    x = np.maximum(x + y, 0)
  return x.mean((1, 2))


def convnext(params, x):
  """Three stages of one block, with kernels of 3 x 3 in the place of 7 x 7."""
  norm = numpy_transformer.layer_norm
  for stage in ('stage1', 'stage2', 'stage3'):
    if stage != 'stage1':
      x = norm(params, f'{stage}/norm', x)
    x = layers.conv(x, params[f'{stage}/conv/kernel'], 2) + params[f'{stage}/conv/bias']
    if stage == 'stage1':
      x = norm(params, 'stage1/stem_norm', x)
    block = f'{stage}/block0'
    y = layers.depthwise(x, params[f'{block}/conv/depthwise_kernel'])
    y = norm(params, f'{block}/norm', y + params[f'{block}/conv/bias'])
    y = numpy_transformer.gelu(_dense(params, f'{block}/mlp1', y))
    x = x + _dense(params, f'{block}/mlp2', y) * params[f'{block}/scale/kernel']
  return norm(params, 'norm', x.mean((1, 2)))


def vit(params, x):
  """Two blocks of two heads, of patches of 2 x 2."""
  tokens = numpy_transformer.embed(params, x, 2)
  return numpy_transformer.blocks(params, tokens, depth=2, heads=2).mean(1)


def decoder(params, x):
  """Two blocks of three heads and 12 units, for 2 x 3 patches.

  As in the paper: a linear layer of the visible tokens, a mask token elsewhere.
  """
  encoded, masked = x[..., :-1], x[..., -1:]
  kernel, bias = params['embedding/kernel'], params['embedding/bias']
  tokens = np.where(masked, kernel[-1] + bias, encoded @ kernel[:-1] + bias)
  tokens = tokens + numpy_transformer.positions(2, 3, 12)
  tokens = numpy_transformer.blocks(params, tokens, depth=2, heads=3)
  return numpy_transformer.dense(params, 'pixels', tokens)


def mlp(params, x):
  for k in range(2):
    x = np.maximum(_dense(params, f'dense{k}', x), 0)
  return x


def projector(params, x):
  """Groups of 8 units and standardized kernels in all layers but the last."""
  last = sum(name.endswith('kernel') for name in params) - 1
  for k in range(last):
    x = x @ layers.standardize(params[f'dense{k}/kernel'])
    x = layers.group_norm(x, *_scaled(params, f'norm{k}'), x.shape[-1] // 8)
    x = np.maximum(x, 0)
  x = x @ params[f'dense{last}/kernel']
  return x + params.get(f'dense{last}/bias', 0)
