"""Tests of target networks: names, and limits that hold to the bit."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.objectives import target

_ONLINE = collections.OrderedDict(
  (name, tf.constant([0.1 * i, 1.0 / 3.0]))
  for i, name in enumerate(('encoder/a/b', 'encoder2/a', 'predictor/a'), start=1)
)
_STATE = collections.OrderedDict(
  [('target/encoder/a/b', tf.constant([0.7, -0.9])), ('queue', tf.zeros([2]))]
)


def test_only_the_named_networks_are_copied():
  copied = target.copy(_ONLINE, ('encoder',))
  assert list(copied) == ['target/encoder/a/b']
  np.testing.assert_array_equal(copied['target/encoder/a/b'], _ONLINE['encoder/a/b'])


@pytest.mark.parametrize(
  ('momentum', 'expected'),
  [(0.0, _ONLINE['encoder/a/b']), (1.0, _STATE['target/encoder/a/b'])],
)
def test_limits_of_the_momentum_are_exact(momentum, expected):
  moved = target.follow(_STATE, _ONLINE, momentum)
  assert list(moved) == ['target/encoder/a/b']
  np.testing.assert_array_equal(moved['target/encoder/a/b'], expected)


def test_after_n_steps_the_old_target_counts_m_to_the_n():
  state, zeros = _STATE, {'encoder/a/b': tf.zeros([2])}
  for _ in range(10):
    state = target.follow(state, zeros, 0.9)
  expected = 0.9**10 * _STATE['target/encoder/a/b'].numpy()
  np.testing.assert_allclose(state['target/encoder/a/b'], expected, rtol=1e-5)
