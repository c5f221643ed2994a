"""Tests of projectors and linear heads."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.encoders import projector


def test_projector_is_numpys():
  net = projector.build_projector(6, (16, 16, 5))
  rng = np.random.default_rng(0)
  params = {name: rng.normal(size=spec.shape) for name, spec in net.specs.items()}
  x = rng.normal(size=(4, 6))
  y = x
  for layer in (0, 1):
    kernel = params[f'dense{layer}/kernel']
    kernel = kernel - kernel.mean(0)
    y = y @ (kernel / np.sqrt((kernel**2).sum(0) + 1e-5))
    grouped = y.reshape(4, 2, 8)  # 16 units in groups of no less than 8
    mean, variance = grouped.mean(2, keepdims=True), grouped.var(2, keepdims=True)
    y = ((grouped - mean) / np.sqrt(variance + 1e-5)).reshape(4, 16)
    y = np.maximum(y * params[f'norm{layer}/gamma'] + params[f'norm{layer}/beta'], 0)
  y = y @ params['dense2/kernel'] + params['dense2/bias']
  np.testing.assert_allclose(net.apply(params, x), y, rtol=1e-10)


def test_the_papers_projector_has_its_layers_and_count():
  net = projector.build_projector(64)
  assert list(net.specs) == [
    'dense0/kernel',
    'norm0/gamma',
    'norm0/beta',
    'dense1/kernel',
    'norm1/gamma',
    'norm1/beta',
    'dense2/kernel',
    'dense2/bias',
  ]
  assert net.num_parameters == 1024 * (64 + 2 + 1024 + 2 + 1024 + 1)
  assert net.output_dim == 1024


def test_the_last_bias_can_be_left_out():
  with_bias = projector.build_projector(6, (16, 5))
  net = projector.build_projector(6, (16, 5), output_bias=False)
  assert list(with_bias.specs) == [*net.specs, 'dense1/bias']
  params = with_bias.init([0, 1], tf.float64)
  x = np.random.default_rng(0).normal(size=(4, 6))
  without = {name: params[name] for name in net.specs}
  # The bias is 0 at first, so that nothing else may differ.
  np.testing.assert_array_equal(net.apply(without, x), with_bias.apply(params, x))
  np.testing.assert_allclose(net.to_keras(without)(x), net.apply(without, x), 1e-9)


def test_without_normalization_all_layers_have_a_bias():
  net = projector.build_projector(4, (3, 2), normalization='none')
  assert list(net.specs) == [
    'dense0/kernel',
    'dense0/bias',
    'dense1/kernel',
    'dense1/bias',
  ]


def test_no_widths_are_the_identity():
  net = projector.build_projector(3, ())
  x = tf.constant([[1.0, -2.0, 3.0]])
  assert net.init([0, 0]) == {}
  assert net.output_dim == 3
  np.testing.assert_array_equal(net.apply({}, x), x)
  np.testing.assert_array_equal(net.to_keras({})(x), x)


def test_linear_is_a_matrix_and_a_bias():
  net = projector.build_linear(3, 2)
  params = {'dense0/kernel': np.arange(6.0).reshape(3, 2), 'dense0/bias': [1.0, 2.0]}
  params['dense0/bias'] = np.array(params['dense0/bias'])
  np.testing.assert_array_equal(net.apply(params, np.eye(3)), [[1, 3], [3, 5], [5, 7]])


@pytest.mark.parametrize(
  ('build', 'message'),
  [
    (lambda: projector.build_projector(0), 'input_dim is 0; it must be at least 1'),
    (lambda: projector.build_projector(4, (8, 0)), r'widths is \(8, 0\); each'),
    (
      lambda: projector.build_projector(1, (8, 4)),
      'dense0: the inputs per output are 1; they must be at least 2',
    ),
    (lambda: projector.build_linear(4, 0), 'num_classes is 0; it must be at least 1'),
  ],
)
def test_a_bad_configuration_names_field_and_value(build, message):
  with pytest.raises(ValueError, match=message):
    build()
