"""Tests of SGD against its recurrence in NumPy."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.optimization import sgd

_GRADS = np.random.default_rng(0).normal(size=(4, 3))


@pytest.mark.parametrize('momentum', [0.0, 0.9])
def test_matches_the_recurrence(momentum):
  params = collections.OrderedDict(w=tf.constant([1.0, -2.0, 0.5], tf.float64))
  state = sgd.init(params, momentum)
  w, v = params['w'].numpy(), 0.0
  for t, g in enumerate(_GRADS):
    rate = 0.1 / (t + 1)
    grads = collections.OrderedDict(w=tf.constant(g))
    params, state = sgd.update(params, state, grads, rate, momentum)
    v = momentum * v + g
    w = w - rate * v
    np.testing.assert_allclose(params['w'], w, rtol=1e-14)


def test_without_momentum_there_is_no_state():
  assert not sgd.init(collections.OrderedDict(w=tf.ones([2])))
