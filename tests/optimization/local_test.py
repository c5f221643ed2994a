"""Tests of the clients' optimizers."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.optimization import adam
from tff_ssl.optimization import local

_PARAMS = collections.OrderedDict(w=tf.constant([1.0, -2.0], tf.float64))


def _steps(optimizer, grads):
  params, state = _PARAMS, optimizer.init(_PARAMS)
  for g in grads:
    params, state = optimizer.update(
      params, state, collections.OrderedDict(w=tf.constant(g)), 0.1
    )
  return params['w'].numpy()


def test_weight_decay_is_added_to_the_gradient():
  got = _steps(local.LocalOptimizer(weight_decay=0.5), [np.array([1.0, 1.0])])
  np.testing.assert_allclose(got, [1 - 0.1 * 1.5, -2 - 0.1 * 0.0])


def test_adam_matches_reference():
  grads = np.random.default_rng(1).normal(size=(3, 2))
  params, state = _PARAMS, adam.init(_PARAMS)
  for g in grads:
    params, state = adam.update(params, state, {'w': tf.constant(g)}, 0.1)
  np.testing.assert_array_equal(
    _steps(local.LocalOptimizer('adam'), grads), params['w']
  )


def test_adamw_decays_apart_from_the_gradient():
  # Where gradients are zero Adam does not move; the decay does, by rate * decay * w.
  optimizer = local.LocalOptimizer('adamw', weight_decay=0.5)
  params = collections.OrderedDict(w=tf.constant([[2.0]]), b=tf.constant([2.0]))
  zeros = tf.nest.map_structure(tf.zeros_like, params)
  moved, _ = optimizer.update(params, optimizer.init(params), zeros, 0.1)
  np.testing.assert_allclose(moved['w'], [[2 - 0.1 * 0.5 * 2]])
  np.testing.assert_allclose(moved['b'], [2.0])


def test_adamw_without_decay_is_adam_to_the_bit():
  grads = np.random.default_rng(1).normal(size=(4, 2))
  of_both = [_steps(local.LocalOptimizer(name), grads) for name in ('adam', 'adamw')]
  np.testing.assert_array_equal(*of_both)


@pytest.mark.parametrize('name', ['adam', 'adamw'])
def test_beta_2_is_that_of_the_second_moment(name):
  # m_hat / sqrt(v_hat) of gradients 1 and 2: m_hat = (0.09 + 0.2) / 0.19, and with
  # beta_2 = 0 v_hat is the last square.
  got = _steps(local.LocalOptimizer(name, beta_2=0.0), np.array([[1.0, 1], [2.0, 2]]))
  np.testing.assert_allclose(
    got, [1 - x for x in (0.1 + 0.1 * 0.29 / 0.38,) * 2] - np.array([0, 3.0])
  )


@pytest.mark.parametrize(
  'optimizer',
  [
    local.LocalOptimizer(),
    local.LocalOptimizer(momentum=0.9, weight_decay=0.1),
    local.LocalOptimizer(momentum=0.9, nesterov=True),
    local.LocalOptimizer('adam'),
    local.LocalOptimizer('adamw', weight_decay=0.1),
  ],
)
def test_the_mean_of_first_steps(optimizer):
  grads = np.random.default_rng(2).normal(size=(5, 2))
  mean = np.mean([_steps(optimizer, [g]) for g in grads], axis=0)
  of_mean = _steps(optimizer, [grads.mean(axis=0)])
  assert np.allclose(mean, of_mean, rtol=1e-12) == optimizer.first_step_is_affine


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'name': 'lamb'}, "optimizer is 'lamb'"),
    ({'name': 'adam', 'momentum': 0.9}, 'only sgd takes it'),
    ({'nesterov': True}, 'nesterov is True'),
    ({'name': 'adamw', 'momentum': 0.9}, 'only sgd takes it'),
    ({'beta_2': 0.9}, 'beta_2 is 0.9; only adam and adamw'),
  ],
)
def test_out_of_range_values_are_named(fields, message):
  with pytest.raises(ValueError, match=message):
    local.LocalOptimizer(**fields)
