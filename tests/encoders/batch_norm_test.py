"""Tests of networks with batch norm: training, inference, population statistics."""

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import layers
from tff_ssl.encoders import network
from tff_ssl.encoders import population
from tff_ssl.encoders import projector


def _forward(ops, x):
  """Two dense layers, each with batch norm."""
  for name in ('first', 'second'):
    with ops.scope(name):
      x = ops.dense(x, 'dense', units=3, use_bias=False)
      x = ops.relu(ops.batch_norm(x, 'norm'))
  return x


_NET = network.Network('two_layers', (4,), _forward)


def _params(net=_NET, dtype=tf.float64):
  """Parameters and statistics of which none has its initial, idle value."""
  rng = np.random.default_rng(0)
  return [
    {
      name: tf.constant(value + 0.2 * np.abs(rng.normal(size=value.shape)), dtype)
      for name, value in start.items()
    }
    for start in (net.init([5, 6], dtype), net.init_statistics(dtype))
  ]


def _inputs(n):
  return np.random.default_rng(1).normal(0.5, 2.0, (n, 4))


def _numpy_forward(params, x):
  """The definition in training, and the moments of each layer's input."""
  moments = {}
  for name in ('first', 'second'):
    x = x @ params[f'{name}/dense/kernel'].numpy()
    moments[f'{name}/norm/population_mean'] = x.mean(0)
    moments[f'{name}/norm/population_square'] = (x**2).mean(0)
    scaled = params[f'{name}/norm/gamma'], params[f'{name}/norm/beta']
    x = np.maximum(layers.batch_norm(x, *scaled), 0.0)
  return x, moments


def test_training_and_moments_are_numpys():
  params, _ = _params()
  x = _inputs(7)
  expected, moments = _numpy_forward(params, x)
  np.testing.assert_allclose(_NET.apply(params, x), expected, rtol=1e-9, atol=1e-11)
  got = _NET.moments(params, x)
  assert set(got) == set(moments) == set(_NET.statistics)
  for name, value in moments.items():
    np.testing.assert_allclose(got[name], value, rtol=1e-9)
  # By a population like the batch it is what training computes.
  own = _NET.infer({**params, **got}, x)
  np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-11)


def test_two_batches_are_trained_on_apart():
  params, _ = _params()
  x = _inputs(10)
  together = _NET.apply(params, x, batches=2)
  apart = tf.concat([_NET.apply(params, half) for half in (x[:5], x[5:])], 0)
  np.testing.assert_allclose(together, apart, rtol=1e-9, atol=1e-11)
  assert not np.allclose(together, _NET.apply(params, x), rtol=1e-2)


def test_each_mode_wants_what_it_uses():
  params, statistics = _params()
  x = _inputs(2)
  with pytest.raises(ValueError, match='has no first/norm/population_mean'):
    _NET.infer(params, x)
  with pytest.raises(ValueError, match='has no first/norm/population_mean'):
    _NET.to_keras(params)
  with pytest.raises(ValueError, match='has first/norm/population_mean'):
    _NET.apply({**params, **statistics}, x)


def test_statistics_are_no_parameters():
  assert _NET.mixes_examples
  assert set(_NET.specs).isdisjoint(_NET.statistics)
  assert _NET.num_parameters == 4 * 3 + 3 * 3 + 2 * 2 * 3
  for name, value in _NET.init_statistics().items():
    np.testing.assert_array_equal(value, float(name.endswith('square')))
  assert population.batch_norm_names(_NET) == tuple(
    f'{layer}/norm/{name}'
    for names in (('gamma', 'beta'), ('population_mean', 'population_square'))
    for layer in ('first', 'second')
    for name in names
  )


def test_population_of_parts_is_that_of_the_union_in_the_first_layer():
  params, _ = _params()
  x = _inputs(11)
  parts = [population.statistics(_NET, params, part) for part in (x[:3], x[3:])]
  union = population.statistics(_NET, params, x)
  for name in ('first/norm/population_mean', 'first/norm/population_square'):
    mean = (3 * parts[0][name] + 8 * parts[1][name]) / 11
    np.testing.assert_allclose(mean, union[name], rtol=1e-12)
  # And of an empty part nothing: it counts zero.
  for value in population.statistics(_NET, params, x[:0]).values():
    np.testing.assert_array_equal(value, 0.0)


def test_population_is_the_mean_of_batches_by_examples():
  params, _ = _params()
  x = _inputs(7)
  got = tf.function(population.statistics, autograph=False)(
    _NET, params, tf.constant(10 * x), lambda batch: batch / 10, batch_size=3
  )
  batches = [(x[:3], 3), (x[3:6], 3), (x[6:], 1)]
  found = [(_numpy_forward(params, batch)[1], n) for batch, n in batches]
  for name, value in got.items():
    expected = sum(n * moments[name] for moments, n in found) / 7
    np.testing.assert_allclose(value, expected, rtol=1e-9)


def test_without_batch_norm_there_is_no_population():
  net = projector.build_projector(4, (8, 2))
  assert not net.mixes_examples
  assert not net.init_statistics()
  assert not population.statistics(net, net.init([0, 0]), tf.zeros([3, 4]))
  assert population.batch_norm_names(net) == ()
  x = _inputs(3).astype(np.float32)
  params = net.init([0, 0])
  np.testing.assert_array_equal(net.infer(params, x), net.apply(params, x))


def test_heads_are_normalized_like_their_encoder():
  assert projector.like(_NET) == 'batch'
  assert projector.like(projector.build_projector(4, (8, 2))) == 'group'
