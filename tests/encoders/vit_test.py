"""Tests of the vision transformers."""

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import numpy_transformer
from tff_ssl.encoders import network
from tff_ssl.encoders import vit

_SHAPE = (4, 6, 2)


def _small():
  return vit.from_config(vit.ViTConfig(dim=8, depth=2, heads=2, patch_size=2), _SHAPE)


def _images(n, shape=_SHAPE):
  return np.random.default_rng(n).uniform(size=(n, *shape))


def test_the_tiny_one_has_the_published_size():
  # DeiT's 5,717,416 without its head of 1000, class token and learned positions, and
  # with patches of 2 x 2 pixels in the place of 16 x 16.
  expected = 5_717_416 - 193_000 - 192 - 197 * 192 - 3 * (256 - 4) * 192
  encoder = vit.build_encoder()
  assert encoder.num_parameters == expected
  assert encoder.output_dim == 192
  assert encoder.grid == (16, 16)
  assert encoder.config == vit.ViTConfig(dim=192, depth=12, heads=3, patch_size=2)


def test_width_keeps_heads_and_layers():
  configs = [vit.build_encoder('vit_tiny', width=w).config for w in (1 / 16, 0.5, 2)]
  assert [(c.dim, c.depth, c.heads) for c in configs] == [
    (12, 12, 3),
    (96, 12, 3),
    (384, 12, 3),
  ]


@pytest.mark.parametrize(
  ('size', 'expected'), [(8, 2), (28, 2), (32, 2), (64, 4), (224, 14), (31, 31), (1, 1)]
)
def test_default_patch_size(size, expected):
  assert vit.default_patch_size((size, size, 3)) == expected


def test_encodings_are_numpys():
  encoder, x = _small(), _images(3)
  params = numpy_transformer.random_params(encoder.specs)
  tokens = numpy_transformer.embed(params, x, 2)
  np.testing.assert_allclose(encoder.embed(params, x), tokens, rtol=1e-9, atol=1e-12)
  encoded = numpy_transformer.blocks(params, tokens, depth=2, heads=2)
  np.testing.assert_allclose(
    encoder.apply(params, x), encoded.mean(1), rtol=1e-6, atol=1e-7
  )
  some = [4, 0, 3]
  np.testing.assert_allclose(
    encoder.encode_tokens(params, tf.constant(tokens[:, some])),
    numpy_transformer.blocks(params, tokens[:, some], depth=2, heads=2),
    rtol=1e-6,
    atol=1e-7,
  )


def test_missing_parameters_of_a_part_are_named():
  with pytest.raises(ValueError, match=r'has no embedding/.*; it must hold all 2'):
    _small().embed({}, _images(1))


@pytest.mark.parametrize('dtype', [tf.float32, tf.float64])
def test_the_keras_model_computes_what_apply_computes(dtype, tmp_path):
  encoder = _small()
  params = {
    name: tf.constant(value, dtype)
    for name, value in numpy_transformer.random_params(encoder.specs).items()
  }
  x = tf.constant(_images(3), dtype)
  model = encoder.to_keras(params, name='encoder')
  assert model.output.dtype == dtype
  expected = encoder.apply(params, x)
  np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-5)
  path = tmp_path / 'encoder.keras'
  model.save(path)
  loaded = tf.keras.models.load_model(path)
  assert {type(layer).__module__.split('.')[0] for layer in loaded.layers} == {'keras'}
  np.testing.assert_allclose(loaded(x), expected, rtol=1e-5, atol=1e-5)
  assert loaded.name == 'encoder'
  assert encoder.to_keras(params, name='encoder').to_json() == model.to_json()
  # Positions are not weights.
  assert model.count_params() - encoder.num_parameters == 6 * 8 + 8
  trained = sum(int(tf.size(value)) for value in model.trainable_weights)
  assert trained == encoder.num_parameters


@pytest.mark.long_for('None')
@pytest.mark.parametrize('size', [None, 0])
def test_a_batch_of_no_images_has_no_encodings_and_no_gradient(size):
  encoder = _small()
  params = encoder.init([0, 0])

  @tf.function(input_signature=[tf.TensorSpec([size, *_SHAPE])], autograph=False)
  def step(x):
    with tf.GradientTape() as tape:
      tape.watch(params)
      y = encoder.apply(params, x)
      loss = tf.reduce_sum(y)
    return y, tape.gradient(loss, params)

  y, gradient = step(tf.zeros([0, *_SHAPE]))
  assert y.shape == (0, 8)
  for value in gradient.values():
    np.testing.assert_array_equal(value, 0.0)


def test_derivatives_along_a_line_are_finite_differences():
  # The second derivative is what MAML takes through its inner step.
  encoder, x = _small(), _images(2)
  params = encoder.init([0, 5], tf.float64)
  rng = np.random.default_rng(0)
  direction = {name: rng.normal(size=value.shape) for name, value in params.items()}

  def slope(step):
    at = {name: value + step * direction[name] for name, value in params.items()}
    with tf.GradientTape() as outer:
      outer.watch(at)
      with tf.GradientTape() as inner:
        inner.watch(at)
        loss = tf.reduce_sum(tf.sin(3.0 * encoder.apply(at, x)))
      gradient = inner.gradient(loss, at)
      along = tf.add_n([tf.reduce_sum(gradient[k] * direction[k]) for k in at])
    curvature = outer.gradient(along, at)
    twice = tf.add_n([tf.reduce_sum(curvature[k] * direction[k]) for k in at])
    return float(loss), float(along), float(twice)

  (_, first, second), plus, minus = slope(0.0), slope(1e-6), slope(-1e-6)
  assert first == pytest.approx((plus[0] - minus[0]) / 2e-6, rel=1e-5)
  assert second == pytest.approx((plus[1] - minus[1]) / 2e-6, rel=1e-5)


@pytest.mark.parametrize(
  ('options', 'message'),
  [
    ({'name': 'vit_huge'}, "encoder is 'vit_huge'; it must be one of"),
    ({'patch_size': 0}, 'patch_size is 0; it must be at least 1'),
    ({'patch_size': 3}, r'patch_size is 3; it must divide .* \(32, 32\)'),
  ],
)
def test_a_bad_configuration_names_field_and_value(options, message):
  with pytest.raises(ValueError, match=message):
    vit.build_encoder(**options)


def test_crops_that_are_not_whole_patches_are_refused():
  """They are not padded."""
  encoder = vit.build_encoder('vit_micro', (28, 28, 1), patch_size=4)
  message = r'take .* \(14, 14, 1\): patch_size is 4; it must divide .*, \(14, 14\)'
  with pytest.raises(ValueError, match=message):
    encoder.for_inputs((14, 14, 1))
  assert encoder.for_inputs((12, 12, 1)).grid == (3, 3)


@pytest.mark.parametrize('dim', [0, 6, 8])
def test_config_refuses_units_that_can_not_be_divided(dim):
  with pytest.raises(
    ValueError, match=f'dim is {dim}; it must be a multiple of 4 and of the 3 heads'
  ):
    vit.ViTConfig(dim=dim, depth=1, heads=3, patch_size=2)


def test_a_configuration_of_ones_own():
  config = vit.ViTConfig(dim=12, depth=1, heads=3, patch_size=2)
  encoder = vit.from_config(config, _SHAPE)
  assert isinstance(encoder, network.Network)
  assert encoder.output_dim == 12
  # Patch, attention, hidden layer and back, each with its bias; three norms.
  expected = 9 * 12 + 13 * 36 + 13 * 12 + 13 * 48 + 49 * 12 + 3 * 24
  assert encoder.num_parameters == expected
