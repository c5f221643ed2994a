"""What no network can be made of, or take, is named with what is allowed."""

import numpy as np
import pytest

from tff_ssl.encoders import decoder
from tff_ssl.encoders import frozen_layers
from tff_ssl.encoders import lora
from tff_ssl.encoders import mlp
from tff_ssl.encoders import network
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry
from tff_ssl.encoders import transformer
from tff_ssl.encoders import vit
from tff_ssl.encoders.operations import group_normalization

_VIT = vit.ViTConfig(dim=8, depth=2, heads=2, patch_size=2)
_SQUARES = (8, 8, 3)


def _vit(shape=(4, 6, 3)):
  return vit.from_config(_VIT, shape)


def _adapted(rank=2, base=None, plain=None):
  plain = plain or _vit()
  return lora.adapt(plain, base or plain.init([0, 0]), rank)


def _frozen(share):
  plain = registry.build_encoder('resnet8', _SQUARES, 0.25)
  return frozen_layers.freeze(plain, plain.init([0, 0]), share)


def _one(forward, shape=(5, 4, 3)):
  return network.Network('net', shape, forward)


def _resnet(size, **options):
  return registry.build_encoder('resnet8', (size, size, 3), 0.25, **options)


def _conv_norm():
  def forward(ops, x):
    x = ops.conv2d(x, 'conv', filters=8, kernel_size=3, use_bias=True)
    return ops.global_average_pool(ops.group_norm(x, 'norm', groups=4))

  return _one(forward)


def _params(**change):
  """Parameters of `_conv_norm`; None leaves one out."""
  params = {**_conv_norm().init([0, 0]), **change}
  return {name: value for name, value in params.items() if value is not None}


def _same_name(ops, x):
  return ops.dense(ops.dense(x, 'same', units=3), 'same', units=3)


def _in_a_block(layer):
  def forward(ops, x):
    with ops.scope('block'):
      return layer(ops, x)

  return lambda: _one(forward, (7,))


_REFUSED = (
  (lambda: registry.build_encoder('resnet9', _SQUARES), "is 'resnet9'; it must be one"),
  (
    lambda: registry.build_encoder('vit_micro', _SQUARES, stem='cifar'),
    "stem is 'cifar' with the encoder vit_micro; it is only for",
  ),
  (
    lambda: registry.build_encoder('vit_micro', _SQUARES, normalization='batch'),
    "normalization is 'batch' with the encoder vit_micro; it is",
  ),
  (
    lambda: _resnet(8, patch_size=2),
    'patch_size is 2 with the encoder resnet8; it is only for',
  ),
  (
    lambda: registry.build_encoder('resnet8', (0, 8, 1)),
    'image_shape is .*; it must be',
  ),
  (
    lambda: registry.build_encoder('mlp', (5,), 0),
    r'width is 0; it must be a number in \[0.0625, 1000\]',
  ),
  (
    lambda: registry.build_encoder('torch_resnet18', _SQUARES, normalization='group'),
    "normalization is 'group'; it must be one of",
  ),
  (
    lambda: registry.build_encoder('conv2', (8,)),
    r'image_shape is \(8,\); it must be \(height, width',
  ),
  (
    lambda: registry.build_encoder('mlp', (5, 5, 1)),
    r'shape is \(5, 5, 1\); it must be \(features,\)',
  ),
  (lambda: mlp.MlpConfig(()), 'widths is empty; it must have an entry'),
  (
    lambda: registry.build_encoder('vit_tiny', (32, 32, 3), patch_size=3),
    r'patch_size is 3; it must divide .* \(32, 32\)',
  ),
  *(
    (
      lambda dim=dim: vit.ViTConfig(dim, depth=1, heads=3, patch_size=2),
      f'dim is {dim}; it must be a multiple of 4 and of the 3 heads',
    )
    for dim in (6, 8)
  ),
  (
    lambda: transformer.positions((2, 2), 6),
    'dim of positions is 6; it must be a multiple of 4',
  ),
  # Crops are not padded.
  (
    lambda: registry.build_encoder('vit_micro', (28, 28, 1), patch_size=4).for_inputs(
      (14, 14, 1)
    ),
    r'take .* \(14, 14, 1\): patch_size is 4; it must divide .*, \(14, 14\)',
  ),
  *(
    (
      lambda shape=shape: _resnet(16).for_inputs(shape),
      r'resnet8 for inputs .* \(16, 16, 3\) cannot take',
    )
    for shape in ((8, 8, 1), (5,), (0, 8, 3))
  ),
  (
    lambda: decoder.build_decoder(_vit(), dim=6),
    r'dim is 6; it must be .* the 2 heads',
  ),
  (
    lambda: decoder.build_decoder(_vit(), depth=0),
    'depth is 0; it must be a whole',
  ),
  (
    lambda: projector.build_projector(0),
    'input_dim is 0; it must be at least 1',
  ),
  (
    lambda: projector.build_projector(4, (8, 0)),
    r'widths is \(8, 0\); it must be',
  ),
  (
    lambda: projector.build_projector(1, (8, 4)),
    'dense0: the inputs per output are 1; they must be at least 2',
  ),
  (lambda: projector.build_linear(4, 0), 'num_classes is 0; it must be at least 1'),
  (
    lambda: projector.build_projector(8, (1_000_000, 1_000_000)),
    r'projector would have 1,000,01.* at most',
  ),
  (
    lambda: predictor.build_predictor(4, 0),
    r'widths is \(0, 4\); it must be',
  ),
  (lambda: _conv_norm().init(3), r'seed of net is \(\); it must be \[2\]'),
  (
    lambda: _conv_norm().with_precision('half'),
    r"of net is 'half'; it must be one of .'float32',",
  ),
  (
    lambda: _conv_norm().apply(_params(), np.zeros((2, 5, 4, 1), np.float32)),
    r'is \(2, 5, 4, 1\); it must be \(None, 5, 4, 3\)',
  ),
  (
    lambda: _conv_norm().apply(_params(), np.zeros((2, 5, 4, 3), np.uint8)),
    'is uint8; it must be floating',
  ),
  (lambda: _one(_same_name, (3,)), "'same/kernel' is there twice; names"),
  (
    lambda: _one(lambda ops, x: ops.add(x, ops.dense(x, 'dense', units=4)), (3,)),
    r'add: .* shape is \(4,\); it must be .* \(3,\)',
  ),
  (
    lambda: _one(lambda ops, x: ops.attention(x, 'mixing', heads=4), (5, 6)),
    'mixing: heads is 4; it must divide the 6',
  ),
  (
    lambda: _one(lambda ops, x: ops.offset(x, 'add', values=np.zeros((5, 4))), (5, 6)),
    r'add: the shape of values is \(5, 4\); it',
  ),
  (
    lambda: _one(lambda ops, x: ops.max_pool(x, size=5, strides=1, padding='valid')),
    r'maxpool: the sides are \(5, 4\); they must be at least the 5 of a window',
  ),
  (
    lambda: _one(lambda ops, x: ops.rescale(x, (1.0,), (0.0,))),
    'rescale: the number of channels is 3; it must be 1',
  ),
  # Of one value nothing is left but 0, of two their order, whatever they are.
  *(
    (
      lambda sizes=sizes: group_normalization.num_groups(*sizes, 32),
      f'values per example is {sizes[0] * sizes[1]} .*; it must be at least 8',
    )
    for sizes in ((1, 1), (7, 1), (1, 7), (2, 3))
  ),
  *(
    (_in_a_block(layer), 'block/norm: the number of values per example is 7')
    for layer in (
      lambda ops, x: ops.group_norm(x, 'norm', groups=1),
      lambda ops, x: ops.layer_norm(x, 'norm'),
    )
  ),
  (lambda: _adapted(rank=0), 'rank is 0; it must be at least 1'),
  (
    lambda: _adapted(rank=9),
    'The rank of adapters is 9; it must be at most 8, a side of block0/',
  ),
  (
    lambda: _adapted(base=_vit((4, 6, 1)).init([0, 0])),
    'shape of embedding/patch/kernel of the base',
  ),
  (
    lambda: _adapted(base={'norm/gamma': np.ones(8)}),
    'params of the base of vit has no embedding/',
  ),
  (
    lambda: _adapted(plain=registry.build_encoder('conv2', _SQUARES, 0.25)),
    'conv2 has only convolutions of several posit',
  ),
  *(
    (lambda share=share: _frozen(share), rf'^frozen is {share}.* must ')
    for share in (0.0, 1.0, 0.95)
  ),
)


@pytest.mark.parametrize(('build', 'message'), _REFUSED)
def test_it_is_refused(build, message):
  with pytest.raises(ValueError, match=message):
    build()


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    ({'norm/beta': None}, 'has no norm/beta; it must hold all'),
    ({'extra': np.zeros(1)}, 'has extra; it must hold only'),
    ({'conv/bias': np.zeros(9)}, r'conv/bias of net is \(9,\); it must be \(8,\)'),
  ],
)
def test_wrong_params_are_named_in_training_and_in_export(change, message):
  params = _params(**change)
  with pytest.raises(ValueError, match=message):
    _conv_norm().apply(params, np.zeros((1, 5, 4, 3)))
  with pytest.raises(ValueError, match=message):
    _conv_norm().to_keras(params)
