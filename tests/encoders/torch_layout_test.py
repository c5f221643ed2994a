"""Tests of networks with PyTorch's weights, against NumPy in float64."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import torch_networks
from tff_ssl.encoders import registry
from tff_ssl.encoders import torch_convolutions
from tff_ssl.encoders import torch_layout

_WIDTH = 1 / 16


def _images(shape, n=2):
  return np.random.default_rng(3).uniform(size=(n, *shape))


def _read(path, weights, layout):
  torch_networks.write(path / 'a.safetensors', weights)
  return torch_layout.read(path / 'a.safetensors', layout)


def _infer(encoder, params, x):
  return encoder.infer({k: tf.constant(v, tf.float64) for k, v in params.items()}, x)


@pytest.fixture(scope='module')
def resnet():
  return torch_networks.Resnet18()


_CONVOLUTIONS = {
  'resnet18': (torch_networks.Resnet18, torch_convolutions.resnet, 18),
  'efficientnet_lite0': (
    *(torch_networks.EfficientNetLite0, torch_convolutions.mobilenet),
    'efficientnet_lite0',
  ),
}


# Even and odd sides: padding differs.
@pytest.mark.long_for('resnet18-shape1-batch', 'resnet18-shape0-none')
@pytest.mark.parametrize('norm', ['batch', 'none'])
@pytest.mark.parametrize('shape', [(40, 33, 3), (34, 32, 1)])
@pytest.mark.parametrize('name', _CONVOLUTIONS)
def test_a_network_of_convolutions_has_pytorchs_features(tmp_path, name, shape, norm):
  reference, layout, size = _CONVOLUTIONS[name]
  net = reference()
  params = _read(tmp_path, net.weights, layout(size, _WIDTH, folded=norm == 'none'))
  encoder = registry.build_encoder(f'torch_{name}', shape, _WIDTH, normalization=norm)
  assert encoder.mixes_examples == (norm == 'batch')
  x = _images(shape)
  expected = net.features(x)
  assert expected.std() > 0.1
  np.testing.assert_allclose(_infer(encoder, params, x), expected, rtol=0, atol=2e-5)


@pytest.mark.long_for('0-False-class', '2-False-mean')
@pytest.mark.parametrize(
  ('registers', 'layer_scale', 'pool'),
  [(0, False, 'class'), (2, True, 'class'), (0, True, 'mean'), (2, False, 'mean')],
)
def test_a_transformer_has_pytorchs_features(tmp_path, registers, layer_scale, pool):
  net = torch_networks.ViT(12, 12, 8, (2, 2), registers, layer_scale)
  layout = torch_layout.vit('vit_tiny', _WIDTH, 8, registers, layer_scale)
  params = _read(tmp_path, net.weights, layout)
  encoder = registry.build_encoder(
    'torch_vit_tiny',
    (16, 16, 3),
    _WIDTH,
    patch_size=8,
    registers=registers,
    layer_scale=layer_scale,
    pool=pool,
  )
  assert {name: spec.shape for name, spec in encoder.specs.items()} == {
    name: value.shape for name, value in params.items()
  }
  x = _images((16, 16, 3))
  expected = net.features(x, pool)
  assert expected.std() > 0.1
  np.testing.assert_allclose(_infer(encoder, params, x), expected, rtol=0, atol=1e-5)


_TORCHVISIONS = (
  ('cls_token', 'class_token'),
  ('pos_embed', 'encoder.pos_embedding'),
  ('patch_embed.proj', 'conv_proj'),
  (r'^norm\.', 'encoder.ln.'),
  ('attn.qkv.', 'self_attention.in_proj_'),
  ('attn.proj', 'self_attention.out_proj'),
  (r'\.norm', '.ln_'),
  ('fc1', '0'),
  ('fc2', '3'),
  (r'blocks\.', 'encoder.layers.encoder_layer_'),
  (r'^head\.', 'heads.head.'),
)


def test_names_of_torchvision_and_of_checkpoints_with_decoders_are_understood(tmp_path):
  weights = torch_networks.ViT(12, 12, 4, (3, 3)).weights
  layout = torch_layout.vit('vit_tiny', _WIDTH, 4)
  expected = _read(tmp_path, weights, layout)
  other = {}
  for name, value in weights.items():
    for old, new in _TORCHVISIONS:
      name = re.sub(old, new, name)
    other[name] = value
  assert not set(other) & set(weights)
  more = {'mask_token': np.ones(1), 'decoder_blocks.0.norm1.weight': np.ones(1)}
  for own in (other, weights | more):
    got = _read(tmp_path, own, layout)
    for name, value in expected.items():
      np.testing.assert_array_equal(got[name], value)


def _without(name):
  return lambda weights: weights.pop(name)


def _with(**more):
  return lambda weights: weights.update(more)


@pytest.mark.parametrize(
  ('change', 'said'),
  [
    (_without('bn1.bias'), "has no 'bn1.bias'; this encoder needs it."),
    (
      lambda weights: [weights.pop(f'layer4.1.bn2.{k}') for k in ('weight', 'bias')],
      "has no 'layer4.1.bn2.weight' and 1 more; this encoder needs it.",
    ),
    (_with(bn3=np.ones(1)), "has 'bn3', for which this encoder has no place; it must"),
    (
      _with(**{'conv1.weight': np.ones((4, 3, 3, 3))}),
      "has 'conv1.weight' of shape [4, 3, 3, 3]; this encoder needs [4, 3, 7, 7].",
    ),
    (
      _with(**{'bn1.running_var': np.array([1, 1, -1, 1])}),
      "has a negative value of 'bn1.running_var'; it must be a variance.",
    ),
    (
      _with(**{'layer4.1.bn2.bias': np.full(32, np.nan)}),
      "has a value of 'layer4.1.bn2.bias' that is not finite; all must be finite",
    ),
  ],
)
def test_other_tensors_are_named(tmp_path, resnet, change, said):
  weights = dict(resnet.weights)
  change(weights)
  with pytest.raises(ValueError, match=re.escape(said)) as caught:
    _read(tmp_path, weights, torch_convolutions.resnet(18, _WIDTH))
  assert str(caught.value).startswith(str(tmp_path / 'a.safetensors'))


@pytest.mark.parametrize(
  ('options', 'said'),
  [
    ({'patch_size': 14}, 'has patch=4, and the encoder patch=14; both must be equal'),
    ({'registers': 4}, 'has registers=0, and the encoder registers=4; both must'),
    ({'layer_scale': True}, 'has layer_scale=False, and the encoder layer_scale=True'),
    ({'name': 'vit_small'}, 'of shape [12, 3, 4, 4]; this encoder needs [24, 3, 4, 4]'),
  ],
)
def test_an_option_that_is_not_the_files_is_named(tmp_path, options, said):
  weights = torch_networks.ViT(12, 12, 4, (3, 3)).weights
  layout = torch_layout.vit(
    **{'name': 'vit_tiny', 'width': _WIDTH, 'patch_size': 4, **options}
  )
  with pytest.raises(ValueError, match=re.escape(said)):
    _read(tmp_path, weights, layout)


def test_a_table_of_positions_that_is_no_square_is_refused(tmp_path):
  weights = torch_networks.ViT(12, 12, 4, (2, 3)).weights
  with pytest.raises(ValueError, match=r"has 'pos_embed' of shape \[1, 7, 12\]; this"):
    _read(tmp_path, weights, torch_layout.vit('vit_tiny', _WIDTH, 4))


@pytest.mark.parametrize(
  'expected',
  [
    # By torch.nn.functional.interpolate(mode='bicubic', antialias=True) of PyTorch 2.13
    # in float64.
    [[1.2348471770983362, 2.849026998755569], [7.528708238755673, 14.38315611562135]],
    [
      [-0.15671641791044777, 0.791044776119403, 1.7388059701492538],
      [1.5294667913938262, 2.945743685687558, 4.151543498596819],
      [5.076707202993452, 8.266604303086996, 12.576239476145929],
      [8.261194029850747, 13.417910447761194, 21.731343283582092],
    ],
  ],
)
def test_positions_are_resized_as_pytorch_resizes(expected):
  table = np.array([[0.0, 1, 2], [3, 5, 7], [8, 13, 21]])[..., np.newaxis]
  got = torch_layout.resized(table, np.shape(expected))
  np.testing.assert_allclose(got[..., 0], expected, rtol=1e-12)


def test_positions_of_another_grid_are_resized_and_the_class_tokens_is_not(tmp_path):
  weights = torch_networks.ViT(12, 12, 4, (3, 3)).weights
  layout = torch_layout.vit('vit_tiny', _WIDTH, 4)
  own = _read(tmp_path, weights, layout)
  got = _read(tmp_path, weights, dataclasses.replace(layout, grid=(2, 4)))
  positions, table = 'embedding/positions/bias', weights['pos_embed'][0, 1:]
  assert got[positions].shape == (8, 12)
  # Every row of weights adds to 1, and the middle of the table stays in the middle.
  expected = torch_layout.resized(table.reshape(3, 3, 12), (2, 4)).reshape(8, 12)
  np.testing.assert_allclose(got[positions], expected, rtol=1e-6)
  for name, value in own.items():
    if name != positions:
      np.testing.assert_array_equal(got[name], value)
