"""The code that a network becomes for PyTorch, line by line.

`make elsewhere` runs the code of every encoder in PyTorch.
"""

import numpy as np
import pytest

from tff_ssl.encoders import network
from tff_ssl.encoders import torch_code


def _block(ops, x, strides):
  options = {'filters': 4, 'kernel_size': 3, 'strides': strides}
  y = ops.relu(ops.group_norm(ops.conv2d(x, 'conv', **options), 'norm', groups=2))
  if strides > 1:
    x = ops.conv2d(x, 'shortcut', filters=4, kernel_size=1, strides=2, use_bias=True)
  return ops.add(y, x)


def _forward(ops, x):
  for index, strides in enumerate((1, 1, 2)):
    with ops.scope(f'block{index}'):
      x = _block(ops, x, strides)
  return ops.global_average_pool(ops.max_pool(x, size=3, strides=2))


def _code(forward, shape):
  """Returns the interpreter, the parameters, and the Keras model's weights by layer."""
  net = network.Network('net', shape, forward)
  params = {**net.init([0, 1]), **net.init_statistics()}
  layers = {layer.name: layer for layer in net.to_keras(params).layers}
  code = torch_code.ToTorch(lambda name: layers[name].get_weights())
  code.network(net.forward, net.input_shape, 'Net')
  return code, params


def test_a_scope_is_a_class_and_equal_scopes_are_one():
  code, params = _code(_forward, (6, 5, 4))
  plain, strided, whole = code.classes
  assert [each.name for each in code.classes] == ['Block0', 'Block2', 'Net']
  assert plain.paths == ['block0', 'block1'] and strided.paths == ['block2']
  assert plain.modules == (
    'self.conv = nn.Conv2d(4, 4, 3, padding=1, bias=False)',
    'self.norm = nn.GroupNorm(2, 4, eps=1e-05)',
  )
  # The input is kept under its name as long as it is needed.
  assert plain.lines == (
    'y = self.conv(x)',
    'y = self.norm(y)',
    'y = F.relu(y)',
    'y = y + x',
  )
  assert plain.result == 'y'
  # Of 6 x 5 positions to 3 x 3: 'same' pads the even side at its end alone.
  assert strided.modules == (
    'self.conv = nn.Conv2d(4, 4, 3, stride=2, bias=False)',
    'self.norm = nn.GroupNorm(2, 4, eps=1e-05)',
    'self.shortcut = nn.Conv2d(4, 4, 1, stride=2)',
  )
  assert strided.lines[0] == 'y = self.conv(F.pad(x, (1, 1, 0, 1)))'
  assert strided.lines[3:] == ('x = self.shortcut(x)', 'y = y + x')
  assert whole.modules == (
    'self.block0 = Block0()',
    'self.block1 = Block0()',
    'self.block2 = Block2()',
  )
  assert whole.lines[3:] == (
    'x = F.max_pool2d(x, 3, 2, padding=1)',
    'x = x.mean((2, 3))',
  )
  np.testing.assert_array_equal(
    code.state['block2.shortcut.weight'][:, :, 0, 0],
    np.transpose(params['block2/shortcut/kernel'][0, 0]),
  )
  assert code.state['block1.conv.weight'][3, 2, 1, 0] == pytest.approx(
    params['block1/conv/kernel'].numpy()[1, 0, 2, 3]
  )


@pytest.mark.parametrize(
  ('name', 'shape', 'options', 'module', 'line'),
  [
    (
      'layer_norm',
      (4, 4, 8),
      {},
      'nn.LayerNorm(8, eps=1e-05)',
      'self.op(x.movedim(1, -1)).movedim(-1, 1)',
    ),
    ('layer_norm', (3, 8), {}, 'nn.LayerNorm(8, eps=1e-05)', 'self.op(x)'),
    (
      'dense',
      (4, 4, 3),
      {'units': 2, 'use_bias': False},
      'nn.Conv2d(3, 2, 1, bias=False)',
      'self.op(x)',
    ),
    ('dense', (3,), {'units': 2, 'use_bias': True}, 'nn.Linear(3, 2)', 'self.op(x)'),
    (
      'layer_scale',
      (4, 4, 3),
      {},
      'nn.Parameter(torch.ones(3))',
      'x * self.op[:, None, None]',
    ),
    ('layer_scale', (4, 3), {}, 'nn.Parameter(torch.ones(3))', 'x * self.op'),
    ('batch_norm', (4, 4, 3), {}, 'nn.BatchNorm2d(3, eps=1e-05)', 'self.op(x)'),
    ('batch_norm', (3,), {}, 'nn.BatchNorm1d(3, eps=1e-05)', 'self.op(x)'),
    (
      'batch_norm',
      (4, 4, 3),
      {'epsilon': 1e-3},
      'nn.BatchNorm2d(3, eps=0.001)',
      'self.op(x)',
    ),
    ('relu6', (4, 4, 3), {}, None, 'F.relu6(x)'),
    (
      'depthwise_conv2d',
      (4, 4, 3),
      {'kernel_size': 2},
      'nn.Conv2d(3, 3, 2, groups=3, bias=False)',
      'self.op(F.pad(x, (0, 1, 0, 1)))',
    ),
    (
      'max_pool',
      (5, 4, 3),
      {'size': 2, 'strides': 2},
      None,
      "F.max_pool2d(F.pad(x, (0, 0, 0, 1), value=float('-inf')), 2, 2)",
    ),
    (
      'average_pool',
      (5, 4, 3),
      {'size': 2, 'strides': 2},
      None,
      (
        'F.avg_pool2d(F.pad(x, (0, 0, 0, 1)), 2, 2) / '
        'F.avg_pool2d(F.pad(torch.ones_like(x), (0, 0, 0, 1)), 2, 2)'
      ),
    ),
    ('tokens', (4, 4, 3), {}, None, 'x.flatten(2).transpose(1, 2)'),
    ('global_average_pool', (4, 3), {}, None, 'x.mean(1)'),
  ],
)
def test_an_operation_is_one_line(name, shape, options, module, line):
  named = {'name': 'op'} if module else {}
  code, _ = _code(lambda ops, x: getattr(ops, name)(x, **named, **options), shape)
  (whole,) = code.classes
  assert whole.lines == (f'x = {line}',)
  assert whole.modules == ((f'self.op = {module}',) if module else ())


def test_attention_is_that_of_pytorch():
  code, params = _code(lambda ops, x: ops.attention(x, 'op', heads=2), (5, 6))
  (whole,) = code.classes
  assert whole.modules == ('self.op = nn.MultiheadAttention(6, 2, batch_first=True)',)
  assert whole.lines == ('x = self.op(x, x, x, need_weights=False)[0]',)
  for name, key in (
    ('op.in_proj_weight', 'qkv/kernel'),
    ('op.in_proj_bias', 'qkv/bias'),
    ('op.out_proj.weight', 'output/kernel'),
    ('op.out_proj.bias', 'output/bias'),
  ):
    # Keras's queries were scaled, and are scaled back.
    np.testing.assert_allclose(
      code.state[name], np.transpose(params[f'op/{key}']), rtol=1e-6
    )


def test_what_has_no_code_is_refused():
  # Tokens have no group norm in PyTorch that is one module.
  with pytest.raises(ValueError, match=r'GroupNorm of inputs of shape .* cannot be'):
    _code(lambda ops, x: ops.group_norm(x, 'norm', groups=2), (5, 8))

  def two_results(ops, x):
    with ops.scope('first'):
      y = ops.relu(x)
      ops.gelu(x)
    return ops.add(x, y)

  with pytest.raises(ValueError, match='A scope of Net has more than one result'):
    _code(two_results, (5, 8))
