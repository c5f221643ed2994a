"""Tests of the residual encoders."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import network
from tff_ssl.encoders import resnet


def _tiny(**options):
  options = {'image_shape': (8, 8, 1), 'width': 0.5, **options}
  return resnet.build_encoder('resnet8', **options)


def _images(n, shape=(8, 8, 1), dtype=np.float32):
  return np.random.default_rng(n).uniform(size=(n, *shape)).astype(dtype)


def _loss_and_gradient(encoder, params, x):
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss = tf.reduce_sum(tf.sin(3.0 * encoder.apply(params, x)))
  return loss, tape.gradient(loss, params)


def _cifar_count(blocks, channels=3):
  """Closed form of depths 8 and 14: kernels, and two values a normalized channel."""
  kernels = 9 * channels * 16 + 9 * 16 * 16 * 2 * blocks
  normalized = 16 + 16 * 2 * blocks
  for width in (32, 64):
    kernels += 9 * width * (width // 2) + 9 * width**2 * (2 * blocks - 1)
    kernels += width * (width // 2)  # the projected shortcut
    normalized += width * (2 * blocks + 1)
  return kernels + 2 * normalized


@pytest.mark.parametrize(
  ('name', 'stem', 'size', 'count', 'stages'),
  [
    ('resnet8', 'cifar', 32, _cifar_count(1), [16, 32, 64]),
    ('resnet14', 'cifar', 32, _cifar_count(2), [16, 32, 64]),
    # Published: 11,173,962 with a head of 5,130, for CIFAR-10.
    ('resnet18', 'cifar', 32, 11_168_832, [64, 128, 256, 512]),
    # torchvision: 11,689,512 and 25,557,032 with heads of 513,000 and 2,049,000.
    ('resnet18', 'imagenet', 64, 11_176_512, [64, 128, 256, 512]),
    ('resnet50', 'imagenet', 64, 23_508_032, [256, 512, 1024, 2048]),
  ],
)
def test_counts_and_shapes(name, stem, size, count, stages):
  encoder = resnet.build_encoder(name, (size, size, 3), stem=stem)
  assert encoder.num_parameters == count
  assert encoder.output_dim == stages[-1]
  first = size if stem == 'cifar' else size // 4
  assert encoder.tap_shapes == {
    f'stage{i + 1}': (first >> i, first >> i, channels)
    for i, channels in enumerate(stages)
  }


def test_resnet8_with_a_head_of_ten_has_78_042_parameters():
  assert resnet.build_encoder('resnet8').num_parameters + 650 == 78_042


@pytest.mark.parametrize(
  ('name', 'stem'),
  [('resnet14', 'cifar'), ('resnet18', 'imagenet'), ('resnet50', 'imagenet')],
)
def test_described_shapes_are_the_computed_ones(name, stem):
  # 9 pixels: every stride meets an odd size.
  encoder = resnet.build_encoder(name, (9, 9, 2), width=1 / 8, stem=stem)
  params, taps = encoder.init([0, 1]), {}
  y = encoder.apply(params, _images(2, (9, 9, 2)), taps)
  assert {key: tuple(value.shape) for key, value in params.items()} == {
    key: spec.shape for key, spec in encoder.specs.items()
  }
  assert y.shape == (2, encoder.output_dim)
  assert {key: tuple(tap.shape[1:]) for key, tap in taps.items()} == encoder.tap_shapes
  np.testing.assert_allclose(tf.reduce_mean(list(taps.values())[-1], [1, 2]), y)


def test_names_are_paths():
  specs = resnet.build_encoder('resnet50', stem='imagenet').specs
  assert {'stem/conv/kernel', 'stage1/block0/conv_shortcut/kernel'} <= set(specs)
  assert specs['stage4/block2/norm3/gamma'].shape == (2048,)


@pytest.mark.parametrize('normalization', ['group', 'none'])
def test_an_example_alone_is_the_example_in_a_batch(normalization):
  encoder = _tiny(normalization=normalization)
  params, x = encoder.init([1, 1], tf.float64), _images(5)
  alone = [encoder.apply(params, x[i : i + 1]) for i in range(5)]
  np.testing.assert_allclose(
    encoder.apply(params, x), np.concatenate(alone), rtol=1e-12
  )


def test_float64_is_float32_refined():
  encoder, x = _tiny(), _images(3)
  y32 = encoder.apply(encoder.init([1, 2]), x)
  y64 = encoder.apply(encoder.init([1, 2], tf.float64), x)
  assert (y32.dtype, y64.dtype) == (tf.float32, tf.float64)
  np.testing.assert_allclose(y32, y64, rtol=1e-4, atol=1e-5)


@pytest.mark.long_for('None')
@pytest.mark.parametrize('size', [None, 0])
def test_a_batch_of_no_images_has_no_encodings_and_no_gradient(size):
  encoder = _tiny()
  params = encoder.init([0, 0])

  # The size is unknown to the graph, as on a client of TFF, or known.
  @tf.function(input_signature=[tf.TensorSpec([size, 8, 8, 1])], autograph=False)
  def step(x):
    taps = {}
    y = encoder.apply(params, x, taps)
    loss, gradient = _loss_and_gradient(encoder, params, x)
    return y, taps, loss, gradient

  y, taps, loss, gradient = step(tf.zeros([0, 8, 8, 1]))
  assert y.shape == (0, 32)
  assert [tap.shape for tap in taps.values()] == [
    (0, 8, 8, 8),
    (0, 4, 4, 16),
    (0, 2, 2, 32),
  ]
  assert float(loss) == 0.0
  for value in gradient.values():
    np.testing.assert_array_equal(value, 0.0)


@pytest.mark.parametrize('dark', [False, True])
def test_gradients_are_finite_and_reach_every_parameter(dark):
  encoder = _tiny()
  x = np.zeros((2, 8, 8, 1), np.float32) if dark else _images(2)
  _, gradient = _loss_and_gradient(encoder, encoder.init([0, 3]), x)
  for name, value in gradient.items():
    assert np.isfinite(value).all(), name
    if not dark:
      assert np.abs(value).max() > 0, name


def test_derivatives_along_a_line_are_finite_differences():
  # The second derivative is what MAML takes through its inner step.
  encoder = _tiny(width=0.25)
  params, x = encoder.init([0, 5], tf.float64), _images(2, dtype=np.float64)
  rng = np.random.default_rng(0)
  direction = {name: rng.normal(size=value.shape) for name, value in params.items()}

  def moved(step):
    return {name: value + step * direction[name] for name, value in params.items()}

  def slope(at):
    with tf.GradientTape() as tape:
      tape.watch(at)
      loss, gradient = _loss_and_gradient(encoder, at, x)
      along = tf.add_n([tf.reduce_sum(gradient[k] * direction[k]) for k in at])
    curvature = tape.gradient(along, at)
    along_twice = tf.add_n([tf.reduce_sum(curvature[k] * direction[k]) for k in at])
    return float(loss), float(along), float(along_twice)

  _, first, second = slope(moved(0.0))
  plus, minus = slope(moved(1e-6)), slope(moved(-1e-6))
  assert first == pytest.approx((plus[0] - minus[0]) / 2e-6, rel=1e-5)
  assert second == pytest.approx((plus[1] - minus[1]) / 2e-6, rel=1e-5)


def test_standardization_makes_kernels_free_of_shift_and_scale():
  params = _tiny().init([2, 2], tf.float64)
  moved = {k: 2 * v + 1 if k.endswith('kernel') else v for k, v in params.items()}
  x = _images(2)
  for standardized in (True, False):
    # The tolerance is one of groups of one channel.
    encoder = _tiny(weight_standardization=standardized, groups=32)
    same = np.allclose(encoder.apply(params, x), encoder.apply(moved, x), rtol=1e-3)
    assert same == standardized


def test_without_normalization_there_are_biases_and_the_scale_is_kept():
  encoder = resnet.build_encoder(
    'resnet50', (8, 8, 3), 1 / 4, normalization='none', weight_standardization=False
  )
  assert not [name for name in encoder.specs if 'norm' in name]
  assert 'stem/conv/bias' in encoder.specs
  y = encoder.apply(encoder.init([0, 0]), _images(2, (8, 8, 3)))
  assert 0.01 < float(tf.reduce_mean(tf.square(y))) < 100


def test_the_batch_size_may_be_unknown():
  encoder = _tiny()
  params = encoder.init([0, 0])

  @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)], autograph=False)
  def encode(x):
    return encoder.apply(params, x)

  np.testing.assert_allclose(
    encode(_images(3)), encoder.apply(params, _images(3)), rtol=1e-5, atol=1e-6
  )


@pytest.mark.parametrize(
  ('options', 'message'),
  [
    ({'name': 'resnet9'}, "encoder is 'resnet9'; it must be one of"),
    ({'image_shape': (8, 8)}, r'image_shape is \(8, 8\); it must be'),
    ({'image_shape': (0, 8, 1)}, 'image_shape is .*; it must be'),
    ({'width': 0}, 'width is 0; it must be between 0.0625'),
    ({'width': float('nan')}, 'width is nan; it must be'),
    ({'stem': 'resnet'}, "stem is 'resnet'; it must be one of"),
    ({'normalization': 'layer'}, "normalization is 'layer'; it must be one of"),
    ({'groups': 0}, 'groups is 0; it must be at least 1'),
  ],
)
def test_a_bad_configuration_names_field_and_value(options, message):
  with pytest.raises(ValueError, match=message):
    resnet.build_encoder(**options)


def test_config_refuses_an_unknown_depth():
  with pytest.raises(
    ValueError, match=r'depth is 20; it must be one of \(8, 14, 18, 50\)'
  ):
    resnet.ResNetConfig(20)


def test_an_encoder_is_a_network():
  assert isinstance(resnet.build_encoder(), network.Network)
