"""Tests of dual encoding models."""

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder

_SEED = tf.constant([1, 2])


def _linear(params, name, x):
  return x @ params[f'{name}/dense0/kernel'].numpy() + params[f'{name}/dense0/bias']


@pytest.mark.parametrize('n', [0, 1, 5])
def test_towers_encode_their_own_modality(n):
  model, examples = networks.towers(), networks.examples(n)
  params = model.init(_SEED, tf.float64)
  f, g = model.encode(params, networks.tensors(examples), _SEED)
  np.testing.assert_allclose(f, _linear(params, 'left', examples['left']), rtol=1e-12)
  np.testing.assert_allclose(g, _linear(params, 'right', examples['right']), rtol=1e-12)
  assert model.output_dims == (2, 2)


@pytest.mark.parametrize('n', [0, 1, 5])
def test_siamese_encodes_two_views_with_one_network(n):
  model, examples = networks.siamese(), networks.examples(n)
  params = model.init(_SEED, tf.float64)
  f, g = model.encode(params, networks.tensors(examples), _SEED)
  # Without augmentation both views are the image.
  pooled = examples['image'].mean(axis=(1, 2)) / 255
  np.testing.assert_allclose(f, _linear(params, 'projector', pooled), rtol=1e-6)
  np.testing.assert_array_equal(f, g)


def test_views_differ_and_follow_the_seed():
  model, examples = networks.siamese('byol'), networks.examples(3)
  params = model.init(_SEED)
  f, g = model.encode(params, networks.tensors(examples), _SEED)
  again, _ = model.encode(params, networks.tensors(examples), _SEED)
  other, _ = model.encode(params, networks.tensors(examples), tf.constant([1, 3]))
  np.testing.assert_array_equal(f, again)
  assert np.abs(f - g).max() > 1e-3
  assert np.abs(f - other).max() > 1e-3


def test_networks_are_prefixed_and_drawn_apart():
  nets = {name: networks.towers().left for name in ('a', 'b')}
  params = dual_encoder.init_networks(_SEED, tf.float32, nets)
  assert list(params) == [
    'a/dense0/kernel',
    'a/dense0/bias',
    'b/dense0/kernel',
    'b/dense0/bias',
  ]
  assert np.abs(params['a/dense0/kernel'] - params['b/dense0/kernel']).max() > 0
  same = dual_encoder.init_networks(_SEED, tf.float32, nets)
  np.testing.assert_array_equal(params['a/dense0/kernel'], same['a/dense0/kernel'])


def test_example_count():
  assert int(base.example_count(networks.examples(7))) == 7
