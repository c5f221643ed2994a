"""Tests of predictors."""

import numpy as np
import pytest

from tff_ssl.encoders import predictor


def test_predictor_is_numpys():
  net = predictor.build_predictor(6, 16)
  rng = np.random.default_rng(0)
  params = {name: rng.normal(size=spec.shape) for name, spec in net.specs.items()}
  x = rng.normal(size=(3, 6))
  kernel = params['dense0/kernel'] - params['dense0/kernel'].mean(0)
  y = x @ (kernel / np.sqrt((kernel**2).sum(0) + 1e-5))
  grouped = y.reshape(3, 2, 8)  # 16 units in groups of no less than 8
  mean, variance = grouped.mean(2, keepdims=True), grouped.var(2, keepdims=True)
  y = ((grouped - mean) / np.sqrt(variance + 1e-5)).reshape(3, 16)
  y = np.maximum(y * params['norm0/gamma'] + params['norm0/beta'], 0)
  y = y @ params['dense1/kernel'] + params['dense1/bias']
  np.testing.assert_allclose(net.apply(params, x), y, rtol=1e-10)


def test_simsiams_is_a_bottleneck():
  net = predictor.build_predictor(2048, 512)
  assert net.output_dim == 2048
  assert net.num_parameters == 2048 * 512 + 2 * 512 + 512 * 2048 + 2048
  assert net.name == 'predictor'


def test_without_norm_both_layers_have_a_bias():
  net = predictor.build_predictor(4, 3, normalization='none')
  assert list(net.specs) == [
    'dense0/kernel',
    'dense0/bias',
    'dense1/kernel',
    'dense1/bias',
  ]


def test_a_bad_width_is_named():
  with pytest.raises(ValueError, match=r'widths is \(0, 4\); each must be at least 1'):
    predictor.build_predictor(4, 0)
