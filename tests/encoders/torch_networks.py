"""PyTorch's networks in NumPy and float64, written from torchvision's and timm's code.

Weights have PyTorch's names and order of axes. Only what is needed of one size.
"""

import json
import struct

import numpy as np

from tests.encoders import numpy_transformer
from tests.oracles import layers

_MEAN, _DEVIATION = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])


def write(path, weights) -> None:
  """Writes a `.safetensors` file, in float32; what is named `num_...` as integers."""
  header, data = {}, b''
  for name, value in weights.items():
    counts = name.rpartition('.')[2].startswith('num_')
    content = np.asarray(value, '<i8' if counts else '<f4').tobytes()
    header[name] = {
      'dtype': 'I64' if counts else 'F32',
      'shape': list(np.shape(value)),
      'data_offsets': [len(data), len(data) + len(content)],
    }
    data += content
  text = json.dumps(header).encode()
  path.write_bytes(struct.pack('<Q', len(text)) + text + data)


class _Convolutions:
  """Convolutions, batch norms in inference, and their weights."""

  def __init__(self, epsilon, seed=0):
    self._rng, self._epsilon = np.random.default_rng(seed), epsilon
    self.weights = {}

  def _conv_norm(self, conv, norm, outputs, inputs, size):
    shape = outputs, inputs, size, size
    draw = self._rng
    values = {
      f'{conv}.weight': draw.normal(0, (2 / (inputs * size**2)) ** 0.5, shape),
      f'{norm}.weight': draw.uniform(0.5, 1.5, outputs),
      f'{norm}.bias': draw.normal(0, 0.3, outputs),
      f'{norm}.running_mean': draw.normal(0, 0.3, outputs),
      f'{norm}.running_var': draw.uniform(0.5, 1.5, outputs),
    }
    # As the file has them.
    self.weights |= {k: v.astype('f4').astype('f8') for k, v in values.items()}
    self.weights[f'{norm}.num_batches_tracked'] = 3

  def _conv(self, x, name, strides):
    """Pads as much before as behind."""
    kernel = self.weights[f'{name}.weight']
    size = kernel.shape[-1]
    x = np.pad(x, [(0, 0), *[(size // 2,) * 2] * 2, (0, 0)])
    return np.einsum('nhwijc,ocij->nhwo', _windows(x, size, strides), kernel)

  def _normed(self, x, name):
    scale, shift, mean, variance = (
      self.weights[f'{name}.{part}']
      for part in ('weight', 'bias', 'running_mean', 'running_var')
    )
    return (x - mean) / np.sqrt(variance + self._epsilon) * scale + shift


class Resnet18(_Convolutions):
  """`torchvision.models.resnet18` with fewer channels, and without its head."""

  def __init__(self, channels=(4, 8, 16, 32)):
    super().__init__(epsilon=1e-5)
    self._conv_norm('conv1', 'bn1', channels[0], 3, 7)
    inputs = channels[0]
    for stage, outputs in enumerate(channels, start=1):
      for block in range(2):
        name = f'layer{stage}.{block}'
        self._conv_norm(f'{name}.conv1', f'{name}.bn1', outputs, inputs, 3)
        self._conv_norm(f'{name}.conv2', f'{name}.bn2', outputs, outputs, 3)
        if stage > 1 and block == 0:
          parts = f'{name}.downsample.0', f'{name}.downsample.1'
          self._conv_norm(*parts, outputs, inputs, 1)
        inputs = outputs
    self.weights |= {'fc.weight': np.ones((2, inputs)), 'fc.bias': np.ones(2)}

  def features(self, images):
    """Returns what `eval()` computes of [n, h, w, 3] in [0, 1]."""
    x = (images - _MEAN) / _DEVIATION
    x = np.maximum(self._normed(self._conv(x, 'conv1', 2), 'bn1'), 0)
    seen = _windows(np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]), 3, 2)
    x = seen.max((3, 4))
    for stage in range(1, 5):
      for block in range(2):
        strides = 2 if stage > 1 and block == 0 else 1
        x = self._block(f'layer{stage}.{block}', x, strides)
    return x.mean((1, 2))

  def _block(self, name, x, strides):
    y = self._normed(self._conv(x, f'{name}.conv1', strides), f'{name}.bn1')
    y = self._conv(np.maximum(y, 0), f'{name}.conv2', 1)
    y = self._normed(y, f'{name}.bn2')
    if f'{name}.downsample.0.weight' in self.weights:
      x = self._conv(x, f'{name}.downsample.0', strides)
      x = self._normed(x, f'{name}.downsample.1')
    return np.maximum(x + y, 0)


class EfficientNetLite0(_Convolutions):
  """That of efficientnet_lite_pytorch with a 16th of the width, without its head."""

  # Of each block: channels before and behind it, side of its kernels, stride.
  _BLOCKS = (
    (32, 8, 3, 1),
    *((8, 8, 3, 2), (8, 8, 3, 1)),
    *((8, 8, 5, 2), (8, 8, 5, 1)),
    *((8, 8, 3, 2), (8, 8, 3, 1), (8, 8, 3, 1)),
    *((8, 8, 5, 1), (8, 8, 5, 1), (8, 8, 5, 1)),
    *((8, 16, 5, 2), (16, 16, 5, 1), (16, 16, 5, 1), (16, 16, 5, 1)),
    (16, 24, 3, 1),
  )

  def __init__(self):
    super().__init__(epsilon=1e-3)
    self._conv_norm('_conv_stem', '_bn0', 32, 3, 3)
    for index, (inputs, outputs, size, _) in enumerate(self._BLOCKS):
      name, inside = f'_blocks.{index}', 6 * inputs if index else inputs
      if index:
        self._conv_norm(f'{name}._expand_conv', f'{name}._bn0', inside, inputs, 1)
      self._conv_norm(f'{name}._depthwise_conv', f'{name}._bn1', inside, 1, size)
      self._conv_norm(f'{name}._project_conv', f'{name}._bn2', outputs, inside, 1)
    self._conv_norm('_conv_head', '_bn1', 1280, outputs, 1)
    self.weights |= {'_fc.weight': np.ones((2, 1280)), '_fc.bias': np.ones(2)}

  def features(self, images):
    """Returns what `eval()` computes of [n, h, w, 3] in [0, 1]."""
    x = (255 * images - 127) / 128
    x = self._active(self._conv(x, '_conv_stem', 2), '_bn0')
    for index, (inputs, outputs, _, strides) in enumerate(self._BLOCKS):
      name, y = f'_blocks.{index}', x
      if index:
        y = self._active(self._conv(y, f'{name}._expand_conv', 1), f'{name}._bn0')
      y = self._conv(y, f'{name}._depthwise_conv', strides)
      y = self._conv(self._active(y, f'{name}._bn1'), f'{name}._project_conv', 1)
      y = self._normed(y, f'{name}._bn2')
      x = x + y if inputs == outputs and strides == 1 else y
    return self._active(self._conv(x, '_conv_head', 1), '_bn1').mean((1, 2))

  def _active(self, x, name):
    return np.clip(self._normed(x, name), 0, 6)

  def _conv(self, x, name, strides):
    """Pads as TensorFlow does: where a whole step needs it, and rather behind."""
    kernel = self.weights[f'{name}.weight']
    seen = layers.windows(x, kernel.shape[-1], strides)
    if kernel.shape[1] == 1:
      return np.einsum('nhwijc,cij->nhwc', seen, kernel[:, 0])
    return np.einsum('nhwijc,ocij->nhwo', seen, kernel)


def _windows(x, size, strides):
  """Returns what whole windows see: [n, rows, columns, size, size, channels]."""
  every = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))
  return np.moveaxis(every[:, ::strides, ::strides], 3, -1)


class ViT:
  """`timm`'s `VisionTransformer` with few units, and without its head.

  Args:
    dim: Units; a third of them is a head's.
    grid: Rows and columns of the table of positions.
    registers: Register tokens, after which the class token has no position.
  """

  def __init__(self, dim, depth, patch, grid, registers=0, layer_scale=False):
    draw = np.random.default_rng(1)
    self._patch, self._depth, self._registers = patch, depth, registers
    count = grid[0] * grid[1] + (0 if registers else 1)
    shapes = {
      'cls_token': (1, 1, dim),
      'pos_embed': (1, count, dim),
      'patch_embed.proj.weight': (dim, 3, patch, patch),
      'patch_embed.proj.bias': (dim,),
    }
    if registers:
      shapes['reg_token'] = (1, registers, dim)
    for index in range(depth):
      for part, shape in (
        ('norm1.weight', (dim,)),
        ('norm1.bias', (dim,)),
        ('attn.qkv.weight', (3 * dim, dim)),
        ('attn.qkv.bias', (3 * dim,)),
        ('attn.proj.weight', (dim, dim)),
        ('attn.proj.bias', (dim,)),
        ('ls1.gamma', (dim,)),
        ('norm2.weight', (dim,)),
        ('norm2.bias', (dim,)),
        ('mlp.fc1.weight', (4 * dim, dim)),
        ('mlp.fc1.bias', (4 * dim,)),
        ('mlp.fc2.weight', (dim, 4 * dim)),
        ('mlp.fc2.bias', (dim,)),
        ('ls2.gamma', (dim,)),
      ):
        if layer_scale or 'gamma' not in part:
          shapes[f'blocks.{index}.{part}'] = shape
    shapes |= {'norm.weight': (dim,), 'norm.bias': (dim,), 'head.bias': (4,)}
    self.weights = {
      name: draw.normal(0, 0.3, shape).astype('f4').astype('f8')
      for name, shape in shapes.items()
    }

  def features(self, images, pool='class'):
    """Returns the encodings of [n, h, w, 3] in [0, 1] of the table's grid."""
    own = self.weights
    x = (images - _MEAN) / _DEVIATION
    seen = _windows(x, self._patch, self._patch)
    x = np.einsum('nhwijc,ocij->nhwo', seen, own['patch_embed.proj.weight'])
    x = x.reshape(len(x), -1, x.shape[-1]) + own['patch_embed.proj.bias']
    token = np.repeat(own['cls_token'], len(x), 0)
    if self._registers:
      registers = np.repeat(own['reg_token'], len(x), 0)
      x = np.concatenate([token, registers, x + own['pos_embed']], 1)
    else:
      x = np.concatenate([token, x], 1) + own['pos_embed']
    for index in range(self._depth):
      x = self._block(f'blocks.{index}', x)
    x = self._norm('norm', x)
    return x[:, 0] if pool == 'class' else x[:, 1 + self._registers :].mean(1)

  def _block(self, name, x):
    y = self._attention(f'{name}.attn', self._norm(f'{name}.norm1', x))
    x = x + y * self.weights.get(f'{name}.ls1.gamma', 1.0)
    y = self._dense(f'{name}.mlp.fc1', self._norm(f'{name}.norm2', x))
    y = self._dense(f'{name}.mlp.fc2', numpy_transformer.gelu(y))
    return x + y * self.weights.get(f'{name}.ls2.gamma', 1.0)

  def _attention(self, name, x):
    heads, (n, tokens, dim) = 3, x.shape
    q, k, v = np.moveaxis(
      self._dense(f'{name}.qkv', x).reshape(n, tokens, 3, heads, -1), 2, 0
    )
    scores = np.exp(np.einsum('nqhu,nkhu->nhqk', q, k) / (dim / heads) ** 0.5)
    mixed = np.einsum('nhqk,nkhu->nqhu', scores / scores.sum(-1, keepdims=True), v)
    return self._dense(f'{name}.proj', mixed.reshape(x.shape))

  def _dense(self, name, x):
    return x @ self.weights[f'{name}.weight'].T + self.weights[f'{name}.bias']

  def _norm(self, name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-6)
    return x * self.weights[f'{name}.weight'] + self.weights[f'{name}.bias']
