"""Tests of dense layers and attention on tensors, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import numpy_transformer
from tff_ssl.encoders import compute
from tff_ssl.encoders import network


@pytest.mark.parametrize('shape', [(3, 4), (3, 5, 4), (3, 2, 5, 4)])
@pytest.mark.parametrize('use_bias', [True, False])
def test_dense_multiplies_the_last_axis(shape, use_bias):
  rng = np.random.default_rng(0)
  x, kernel, bias = rng.normal(size=shape), rng.normal(size=(4, 6)), rng.normal(size=6)
  got = compute.dense(tf.constant(x), kernel, bias if use_bias else None)
  expected = np.einsum('...i,io->...o', x, kernel) + (bias if use_bias else 0)
  np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('heads', [1, 2, 6])
def test_attention_is_numpys(heads):
  net = network.Network(
    'attention', (5, 6), lambda ops, x: ops.attention(x, 'attention', heads=heads)
  )
  params = numpy_transformer.random_params(net.specs)
  x = np.random.default_rng(1).normal(size=(3, 5, 6))
  expected = numpy_transformer.attention(params, 'attention', x, heads)
  np.testing.assert_allclose(net.apply(params, x), expected, rtol=1e-10, atol=1e-12)


def test_heads_that_do_not_divide_the_units_are_refused():
  net = network.Network(
    'attention', (5, 6), lambda ops, x: ops.attention(x, 'mixing', heads=4)
  )
  with pytest.raises(ValueError, match='heads of mixing must divide 6, got 4'):
    net.specs  # noqa: B018


def test_an_offset_has_the_shape_of_an_example():
  values = np.zeros((5, 4))
  net = network.Network('offset', (5, 6), lambda ops, x: ops.offset(x, 'add', values))
  with pytest.raises(ValueError, match=r"offset 'add' needs values of shape \(5, 6\)"):
    net.specs  # noqa: B018
