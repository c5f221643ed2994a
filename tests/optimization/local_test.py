"""Tests of the clients' optimizers."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.optimization import local
from tff_ssl.settings import learning

_PARAMS = collections.OrderedDict(w=tf.constant([1.0, -2.0], tf.float64))


def _steps(clients, grads):
  params, state = _PARAMS, local.init(clients, _PARAMS)
  for g in grads:
    params, state = local.update(
      clients, params, state, collections.OrderedDict(w=tf.constant(g)), 0.1
    )
  return params['w'].numpy()


def test_weight_decay_is_added_to_the_gradient():
  got = _steps(learning.SgdClients(weight_decay=0.5), [np.array([1.0, 1.0])])
  np.testing.assert_allclose(got, [1 - 0.1 * 1.5, -2 - 0.1 * 0.0])


def test_adamw_decays_apart_from_the_gradient():
  # Where gradients are zero Adam does not move; the decay does, by rate * decay * w.
  clients = learning.AdamClients(kind='adamw', weight_decay=0.5)
  params = collections.OrderedDict(w=tf.constant([[2.0]]), b=tf.constant([2.0]))
  zeros = tf.nest.map_structure(tf.zeros_like, params)
  moved, _ = local.update(clients, params, local.init(clients, params), zeros, 0.1)
  np.testing.assert_allclose(moved['w'], [[2 - 0.1 * 0.5 * 2]])
  np.testing.assert_allclose(moved['b'], [2.0])


@pytest.mark.parametrize('name', ['adam', 'adamw'])
def test_beta_2_is_that_of_the_second_moment(name):
  # m_hat / sqrt(v_hat) of gradients 1 and 2: m_hat = (0.09 + 0.2) / 0.19, and with
  # beta_2 = 0 v_hat is the last square.
  got = _steps(
    learning.AdamClients(kind=name, beta_2=0.0), np.array([[1.0, 1], [2.0, 2]])
  )
  np.testing.assert_allclose(
    got, [1 - x for x in (0.1 + 0.1 * 0.29 / 0.38,) * 2] - np.array([0, 3.0])
  )


@pytest.mark.parametrize(
  'clients',
  [
    learning.SgdClients(),
    learning.SgdClients(momentum=0.9, weight_decay=0.1),
    learning.AdamClients(),
    learning.AdamClients(kind='adamw', weight_decay=0.1),
  ],
)
def test_the_mean_of_first_steps(clients):
  grads = np.random.default_rng(2).normal(size=(5, 2))
  mean = np.mean([_steps(clients, [g]) for g in grads], axis=0)
  of_mean = _steps(clients, [grads.mean(axis=0)])
  assert np.allclose(mean, of_mean, rtol=1e-12) == local.first_step_is_affine(clients)
