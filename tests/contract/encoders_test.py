"""What holds for every network, one row each; a reference in NumPy where there is one.

The operations that they are made of: tests/encoders/operations_test.py.
"""

import functools
import json
import math

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import numpy_transformer
from tests.oracles import networks
from tff_ssl.encoders import decoder
from tff_ssl.encoders import keras_archive
from tff_ssl.encoders import keras_import
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry
from tff_ssl.encoders import vit

_SQUARE, _VECTOR, _COLOURED = (9, 9, 2), (5,), (32, 32, 3)
# Encoders at a quarter of their width; in 9 pixels every stride meets an odd size, and
# conv4 has more poolings than halves.
_ENCODERS = {
  'resnet8': ('resnet8', _SQUARE, {}),
  'resnet8 batch': ('resnet8', _SQUARE, {'normalization': 'batch'}),
  'resnet8 none': ('resnet8', _SQUARE, {'normalization': 'none'}),
  'resnet8 plain': ('resnet8', _SQUARE, {'weight_standardization': False}),
  'conv2': ('conv2', (8, 8, 1), {}),
  'conv2 none': ('conv2', (8, 4, 3), {'normalization': 'none'}),
  'conv4 batch': ('conv4', (7, 5, 1), {'normalization': 'batch'}),
  'convnext_micro': ('convnext_micro', (8, 16, 3), {}),
  'mlp': ('mlp', _VECTOR, {}),
  'mlp none': ('mlp', _VECTOR, {'normalization': 'none'}),
  'mlp batch': ('mlp', _VECTOR, {'normalization': 'batch'}),
}
# The others; patches of PyTorch's transformers have 16 pixels.
_LARGE = {
  name: (name, (16, 16, 3), {}) for name in registry.NAMES if name not in _ENCODERS
} | {
  'resnet18 imagenet': ('resnet18', _SQUARE, {'stem': 'imagenet'}),
  'resnet50 imagenet': ('resnet50', _SQUARE, {'stem': 'imagenet'}),
  'resnet50 batch': ('resnet50', _SQUARE, {'normalization': 'batch'}),
}
_ENCODERS |= _LARGE


def _vit():
  config = vit.ViTConfig(dim=8, depth=2, heads=2, patch_size=2)
  return vit.from_config(config, (4, 6, 2))


_OTHERS = {
  'vit': _vit,
  'projector': lambda: projector.build_projector(6, (16, 16, 5)),
  'projector unbiased': lambda: projector.build_projector(
    6, (16, 5), output_bias=False
  ),
  'projector batch': lambda: projector.build_projector(6, (8, 5, 4), 'batch'),
  'predictor': lambda: predictor.build_predictor(6, 16),
  'linear': lambda: projector.build_linear(3, 2),
  'decoder': lambda: decoder.build_decoder(_vit(), dim=12, depth=2, heads=3),
}
# What NumPy makes of parameters and inputs.
_REFERENCES = {
  'resnet8': networks.resnet8,
  'resnet8 plain': functools.partial(networks.resnet8, standardized=False),
  'resnet8 batch': functools.partial(
    networks.resnet8, batch_norm=True, standardized=False
  ),
  'conv2 none': networks.cnn,
  'convnext_micro': networks.convnext,
  'mlp none': networks.mlp,
  'vit': networks.vit,
  'projector': networks.projector,
  'projector unbiased': networks.projector,
  'predictor': networks.projector,
  'linear': networks.projector,
  'decoder': networks.decoder,
}
_NAMES = (*_ENCODERS, *_OTHERS)
# One with each kind of layer. Where dozens of layers are normalised over few values,
# slopes change within any step, so that a difference says nothing.
_DERIVED = ('conv2', 'convnext_micro', 'vit', 'predictor')
_STEEP = (
  'conv4 batch',
  'keras_mobilenet_v2',
  'torch_efficientnet_lite0',
  'torch_resnet18',
  *(name for name in _NAMES if 'resnet50' in name),
)
_TRACED = ('resnet8', 'conv4 batch', 'convnext_micro', 'vit', 'mlp batch', 'projector')
every_network = pytest.mark.parametrize('name', _NAMES)
long_for_large = pytest.mark.long_for(*_LARGE)


@functools.cache
def _net(name):
  if name in _OTHERS:
    return _OTHERS[name]()
  encoder, shape, options = _ENCODERS[name]
  return registry.build_encoder(encoder, shape, 0.25, **options)


def _params(net, dtype=tf.float64):
  """Parameters of which none has its initial, idle value."""
  rng = np.random.default_rng(0)
  return {
    name: value + tf.constant(0.1 * rng.normal(size=value.shape), dtype)
    for name, value in net.init([5, 6], dtype).items()
  }


def _everything(net, dtype=tf.float64):
  """With statistics, whose squares are above those of their means."""
  rng = np.random.default_rng(1)
  statistics = {
    name: value + tf.constant(rng.uniform(0.1, 0.5, value.shape), dtype)
    for name, value in net.init_statistics(dtype).items()
  }
  return _params(net, dtype) | statistics


def _inputs(net, n=3):
  x = np.random.default_rng(n).uniform(size=(n, *net.input_shape))
  if net.name == 'decoder':
    x[..., -1] = x[..., -1] > 0.5
    x[..., :-1] *= 1 - x[..., -1:]
  return x


@pytest.mark.parametrize('name', _REFERENCES)
def test_outputs_are_those_of_numpy(name):
  net = _net(name)
  params = numpy_transformer.random_params(net.specs)
  x = _inputs(net)
  expected = _REFERENCES[name](params, x)
  np.testing.assert_allclose(net.apply(params, x), expected, rtol=1e-6, atol=1e-7)


@long_for_large
@every_network
def test_shapes_and_types_are_those_described(name):
  net = _net(name)
  x = _inputs(net)
  outputs = []
  for dtype in (tf.float32, tf.float64):
    everything, taps = _everything(net, dtype), {}
    params = {key: everything[key] for key in net.specs}
    y = net.apply(params, x, taps)
    outputs.append(net.infer(everything, x))
    assert {key: tuple(value.shape) for key, value in params.items()} == {
      key: spec.shape for key, spec in net.specs.items()
    }
    assert (y.shape[0], y.shape[-1]) == (3, net.output_dim)
    assert {k: tuple(tap.shape[1:]) for k, tap in taps.items()} == net.tap_shapes
    assert {value.dtype for value in (y, *taps.values())} == {dtype}
  # By population statistics: dozens of batch norms over three values make of a
  # difference of 1e-7 any, and deep norms of few values a larger one.
  np.testing.assert_allclose(*outputs, rtol=1e-2, atol=1e-3)


@pytest.mark.long_for('0', *set(_NAMES) - {*_TRACED})
@pytest.mark.parametrize('size', [None, 0])
@every_network
def test_a_graph_takes_any_number_of_examples_and_none(name, size):
  """None have no gradient; an example alone is what it is among others."""
  net = _net(name)
  everything = _everything(net)
  params = {key: everything[key] for key in net.specs}

  @tf.function(
    input_signature=[tf.TensorSpec([size, *net.input_shape], tf.float64)],
    autograph=False,
  )
  def step(x):
    taps = {}
    with tf.GradientTape() as tape:
      tape.watch(params)
      y = net.apply(params, x, taps)
      loss = tf.reduce_sum(tf.sin(y))
    return y, taps, loss, tape.gradient(loss, params), net.infer(everything, x)

  x = _inputs(net)
  y, taps, loss, gradient, inferred = step(x[:0])
  assert y.shape[0] == inferred.shape[0] == loss == 0
  assert {key: tuple(tap.shape[1:]) for key, tap in taps.items()} == net.tap_shapes
  assert not any(np.any(value) for value in gradient.values())
  if size == 0:
    return
  y, _, _, _, inferred = step(x)
  np.testing.assert_allclose(y, net.apply(params, x), rtol=1e-9, atol=1e-12)
  alone = [step(x[k : k + 1])[4] for k in range(3)]
  np.testing.assert_allclose(inferred, tf.concat(alone, 0), rtol=1e-9, atol=1e-12)
  if not net.mixes_examples:
    np.testing.assert_allclose(inferred, y, rtol=1e-12)


@pytest.mark.long_for(*set(_NAMES) - {*_DERIVED})
@pytest.mark.parametrize('name', [name for name in _NAMES if name not in _STEEP])
def test_derivatives_along_a_line_are_finite_differences(name):
  """The second derivative is what MAML takes through its inner step."""
  net = _net(name)
  params, x = _params(net), _inputs(net, 2)
  rng = np.random.default_rng(0)
  direction = {key: rng.normal(size=value.shape) for key, value in params.items()}

  @tf.function(autograph=False)
  def slope(step, x):
    at = {key: value + step * direction[key] for key, value in params.items()}
    with tf.GradientTape() as outer:
      outer.watch(at)
      with tf.GradientTape() as inner:
        inner.watch(at)
        loss = tf.reduce_sum(tf.sin(3.0 * net.apply(at, x)))
      gradient = inner.gradient(loss, at)
      along = tf.add_n([tf.reduce_sum(gradient[k] * direction[k]) for k in at])
    curvature = outer.gradient(along, at, unconnected_gradients='zero')
    twice = tf.add_n([tf.reduce_sum(curvature[k] * direction[k]) for k in at])
    return loss, along, twice, gradient

  size = 1e-6
  found, plus, minus = (
    slope(tf.constant(step, tf.float64), x) for step in (0, size, -size)
  )
  for k in (0, 1):
    difference = float(plus[k] - minus[k]) / (2 * size)
    assert float(found[k + 1]) == pytest.approx(difference, rel=1e-4, abs=1e-6)
  for key, value in found[3].items():
    assert np.isfinite(value).all() and np.abs(value).max() > 0, key
  # Of black images, too.
  dark = slope(tf.constant(0.0, tf.float64), 0 * x)[3]
  assert all(np.isfinite(value).all() for value in dark.values())


@pytest.mark.long_for(*set(_NAMES) - {*_TRACED})
@every_network
def test_what_is_exported_and_read_back_computes_the_same(name, tmp_path):
  net = _net(name)
  everything, x = _everything(net), _inputs(net)
  expected = net.infer(everything, x)
  model = net.to_keras(everything)
  # Features of deep networks are thousands long here; factors of published pixels are
  # float32.
  scale = max(1.0, float(np.abs(expected).max()) / 100)
  atol = scale * (1e-4 if name.startswith(('torch', 'keras')) else 1e-8)
  np.testing.assert_allclose(model(x), expected, rtol=1e-6, atol=atol)
  everything = {key: tf.cast(value, tf.float32) for key, value in everything.items()}
  model, taps = net.to_keras(everything, name='encoder'), {}
  keras_archive.save(model, tmp_path / 'model.keras')
  loaded = tf.keras.models.load_model(tmp_path / 'model.keras')
  assert loaded.name == 'encoder'
  # Keras adds tokens as the bias of a product with ones, which are weights too.
  products = tf.keras.layers.EinsumDense
  adding = [e for e in loaded.layers if isinstance(e, products) and e.bias_axes]
  names = {each.name for each in adding}
  trained = sum(
    int(tf.size(weight))
    for layer in loaded.layers
    for weight in layer.trainable_weights
    if layer.name not in names
  )
  assert trained == sum(
    math.prod(spec.shape)
    for key, spec in net.specs.items()
    if key.rpartition('/')[0].replace('/', '_') not in names
  )
  assert {type(layer).__module__.split('.')[0] for layer in loaded.layers} == {'keras'}
  x = x.astype(np.float32)
  expected = net.infer(everything, x, taps)
  atol = 1e-4 * max(1.0, float(np.abs(expected).max()))
  np.testing.assert_allclose(loaded(x), expected, rtol=1e-4, atol=atol)
  for key, tap in taps.items():
    stage = tf.keras.Model(loaded.input, loaded.get_layer(key).output)
    largest = max(1.0, float(np.abs(tap).max()))
    np.testing.assert_allclose(stage(x), tap, rtol=1e-4, atol=1e-4 * largest)
  found = keras_import.params(net, model)
  assert found.keys() == everything.keys()
  # Kernels that were standardized are standardized again, with an epsilon.
  np.testing.assert_allclose(net.infer(found, x), expected, rtol=2e-3, atol=10 * atol)
  for key, value in found.items():
    if not key.endswith('kernel'):
      np.testing.assert_allclose(value, everything[key], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('name', registry.NAMES)
def test_an_encoder_is_rebuilt_of_its_description(name):
  shape = (5,) if name == 'mlp' else (16, 16, 3)
  encoder = registry.build_encoder(name, shape, width=1 / 8, field='left')
  assert (encoder.name, encoder.input_shape) == (name, shape)
  assert (encoder.field, registry.build_encoder(name, shape).field) == ('left', 'image')
  rebuilt = registry.rebuild(json.loads(json.dumps(registry.describe(encoder))))
  assert rebuilt.config == encoder.config
  assert [(name, spec.shape) for name, spec in rebuilt.specs.items()] == [
    (name, spec.shape) for name, spec in encoder.specs.items()
  ]
  assert rebuilt.statistics.keys() == encoder.statistics.keys()


@pytest.mark.parametrize(
  ('build', 'parameters', 'width'),
  [
    # Published: 78,042 with a head of 650.
    (lambda: registry.build_encoder('resnet8', _COLOURED), 78_042 - 650, 64),
    # By hand: two more 3 x 3 convolutions in each of three stages.
    (
      lambda: registry.build_encoder('resnet14', _COLOURED),
      78_042 - 650 + 2 * sum(9 * c * c + 2 * c for c in (16, 32, 64)),
      64,
    ),
    # 11,173,962 with a head of 5,130, for CIFAR-10.
    (
      lambda: registry.build_encoder('resnet18', _COLOURED),
      11_173_962 - 5_130,
      512,
    ),
    # torchvision: with heads of 513,000 and 2,049,000.
    (
      lambda: registry.build_encoder('resnet18', (64, 64, 3), stem='imagenet'),
      11_689_512 - 513_000,
      512,
    ),
    (
      lambda: registry.build_encoder('resnet50', (64, 64, 3), stem='imagenet'),
      25_557_032 - 2_049_000,
      2048,
    ),
    # DeiT's without its head of 1000, class token and learned positions, and with
    # patches of 2 x 2 pixels in the place of 16 x 16.
    (
      lambda: registry.build_encoder('vit_tiny', _COLOURED),
      5_717_416 - 193_000 - 192 - 197 * 192 - 3 * (256 - 4) * 192,
      192,
    ),
    # DCCO's projector and SimSiam's bottleneck.
    (
      lambda: projector.build_projector(64),
      1024 * (64 + 2 + 1024 + 2 + 1024 + 1),
      1024,
    ),
    (
      lambda: predictor.build_predictor(2048, 512),
      2048 * 512 + 2 * 512 + 512 * 2048 + 2048,
      2048,
    ),
    # Patch, attention, hidden layer and back, each with its bias; three norms.
    (
      lambda: vit.from_config(vit.ViTConfig(12, 1, 3, 2), (4, 6, 2)),
      9 * 12 + 13 * 36 + 13 * 12 + 13 * 48 + 49 * 12 + 3 * 24,
      12,
    ),
    (lambda: registry.build_encoder('convnext_tiny', (224, 224, 3)), 27_820_128, 768),
  ],
)
def test_parameters_are_as_many_as_published(build, parameters, width):
  net = build()
  assert net.num_parameters == parameters
  assert net.output_dim == width
