"""The files for PyTorch, read without it; `make elsewhere` runs them in PyTorch."""

import ast
import json

import numpy as np
import pytest

from docs.elsewhere import __main__ as elsewhere
from tff_ssl.evaluation import linear_probe
from tff_ssl.export import exports

_ENCODERS = dict(elsewhere.encoders())
# One with each kind of layer.
_WRITTEN = (
  'resnet8-group-imagenet',
  'convnext_micro',
  'conv2-batch',
  'vit_micro',
  'mlp-group',
)


def _write(name, folder):
  """Writes an encoder with a classifier; returns the code and the arrays."""
  network = _ENCODERS[name]
  width, rng = network.output_dim, np.random.default_rng(0)
  classifier = linear_probe.LinearClassifier(
    *(rng.normal(size=size).astype('f4') for size in (width, width, (width, 3), 3))
  )
  scaling = None
  if len(network.input_shape) == 1:
    scaling = exports.Scaling(*rng.normal(size=(2, *network.input_shape)))
  keras = network.to_keras(elsewhere.values(network))
  model = exports.with_preprocessing(keras, scaling, classifier)
  path = exports.write(model, exports.TORCH, folder, network)
  code = (path / 'model.py').read_text()
  return code, _arrays((path / 'model.safetensors').read_bytes()), model


def _arrays(content):
  """Reads safetensors as its format says."""
  start = 8 + int.from_bytes(content[:8], 'little')
  assert start % 8 == 0
  arrays, end = {}, 0
  for name, entry in json.loads(content[8:start]).items():
    first, last = entry['data_offsets']
    # Without gaps.
    assert first == end and entry['dtype'] == 'F32'
    end = last
    flat = np.frombuffer(content[start + first : start + last], '<f4')
    arrays[name] = flat.reshape(entry['shape'])
  assert start + end == len(content)
  return arrays


def _numbers(call):
  return [each.value for each in call.args if isinstance(each, ast.Constant)]


def _shapes(call):
  """Yields names and shapes of the parameters of a module, or of an array."""
  kind, sizes = ast.unparse(call.func).rpartition('.')[2], _numbers(call)
  options = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
  if kind in ('ones', 'zeros'):
    yield '', tuple(sizes)
  elif kind == 'Parameter':
    yield from _shapes(call.args[0])
  elif kind == 'MultiheadAttention':
    units = sizes[0]
    yield from (('in_proj_weight', (3 * units, units)), ('in_proj_bias', (3 * units,)))
    yield from (('out_proj.weight', (units, units)), ('out_proj.bias', (units,)))
  elif kind in ('Conv2d', 'Linear'):
    inputs, outputs, *size = sizes
    yield 'weight', (outputs, inputs // options.get('groups', 1), *size * 2)
    if options.get('bias', True):
      yield 'bias', (outputs,)
  else:
    names = ['weight', 'bias']
    names += ['running_mean', 'running_var'] if 'Batch' in kind else []
    yield from ((name, (sizes[-1],)) for name in names)


def _state(classes, name, prefix=''):
  """Yields names and shapes of what a module of the code has, with those within."""
  for node in ast.walk(classes[name]):
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0])[:5] == 'self.':
      own = prefix + ast.unparse(node.targets[0])[5:]
      kind = ast.unparse(node.value.func)
      if kind in classes:
        yield from _state(classes, kind, f'{own}.')
      else:
        for part, shape in _shapes(node.value):
          yield f'{own}.{part}' if part else own, shape
    elif isinstance(node, ast.Call) and 'register_buffer' in ast.unparse(node.func):
      (shape,) = _shapes(node.args[1])
      yield prefix + node.args[0].value, shape[1]


@pytest.mark.long_for('resnet8-group-imagenet', 'convnext_micro', 'vit_micro')
@pytest.mark.parametrize('name', _WRITTEN)
def test_the_weights_are_those_that_the_code_wants(name, tmp_path):
  code, arrays, _ = _write(name, tmp_path)
  tree = ast.parse(code)
  classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
  wanted = list(_state(classes, 'Model'))
  assert len(dict(wanted)) == len(wanted)
  assert dict(wanted) == {key: value.shape for key, value in arrays.items()}
  # Nothing of ours.
  assert {
    ast.unparse(node) for node in tree.body if 'import' in ast.unparse(node)[:6]
  } == {'import json', 'import pathlib', 'import torch'}
  assert max(map(len, code.splitlines())) <= 88


def test_scaling_and_classifier_are_the_model_s(tmp_path):
  code, arrays, model = _write('mlp-group', tmp_path)
  for prefix, name in (('', 'scale'), ('classifier.', 'standardise')):
    center, factor = (
      model.get_layer(f'{name}_{part}') for part in ('center', 'factor')
    )
    np.testing.assert_allclose(arrays[f'{prefix}offset'], center.offset, rtol=1e-6)
    np.testing.assert_allclose(arrays[f'{prefix}factor'], factor.scale, rtol=1e-6)
  kernel, bias = model.get_layer('probabilities').get_weights()
  np.testing.assert_array_equal(arrays['classifier.linear.weight'], kernel.T)
  np.testing.assert_array_equal(arrays['classifier.linear.bias'], bias)
  assert 'x = (inputs + self.offset) * self.factor' in code
  code, _, _ = _write('conv2-batch', tmp_path)
  assert 'x = inputs.permute(0, 3, 1, 2).float() / 255' in code
