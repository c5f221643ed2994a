"""Tests of the optimizers by name."""

import collections
import math

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.federated import optimizers
from tff_ssl.optimization import lars
from tff_ssl.settings import learning

_PARAMS = collections.OrderedDict(
  kernel=np.array([[1.0, -2.0], [0.5, 3.0]], np.float32),
  bias=np.array([0.1, -0.2], np.float32),
)
_GRADS = collections.OrderedDict(
  kernel=np.array([[0.3, 0.1], [-0.2, 0.4]], np.float32),
  bias=np.array([0.5, -1.0], np.float32),
)


def _run(settings, steps, rounds=None):
  """Returns the parameters after some steps with the same gradient."""
  optimizer = optimizers.build_optimizer(settings, rounds)
  params = tf.nest.map_structure(tf.constant, _PARAMS)
  grads = tf.nest.map_structure(tf.constant, _GRADS)
  state = optimizer.initialize(
    tf.nest.map_structure(lambda p: tf.TensorSpec(p.shape, p.dtype), params)
  )
  for _ in range(steps):
    state, params = optimizer.next(state, params, grads)
  return {name: value.numpy() for name, value in params.items()}


def _check(got, expected_of):
  for name, param in _PARAMS.items():
    expected = expected_of(param.astype(np.float64), _GRADS[name].astype(np.float64))
    np.testing.assert_allclose(got[name], expected, rtol=1e-5, atol=1e-7)


def test_sgd():
  got = _run(learning.SgdServer(0.1), 3)
  _check(got, lambda p, g: p - 0.3 * g)


def test_sgd_with_momentum():
  got = _run(learning.SgdServer(0.1, momentum=0.5), 3)
  # Velocities g, 1.5 g, 1.75 g.
  _check(got, lambda p, g: p - 0.1 * 4.25 * g)


def test_adam():
  got = _run(learning.Server(0.01, kind='adam'), 2)
  # With one gradient, bias correction makes every step the rate times its sign.
  _check(got, lambda p, g: p - 0.02 * np.sign(g))


@pytest.mark.parametrize(('momentum', 'used'), [(None, 0.9), (0.0, 0.0), (0.5, 0.5)])
def test_lars_is_the_library_s(momentum, used):
  config = learning.LarsServer(0.3, momentum=momentum, weight_decay=0.01)
  got = _run(config, 3)
  params = tf.nest.map_structure(tf.constant, _PARAMS)
  velocity = lars.init(params)
  for _ in range(3):
    params, velocity = lars.update(params, velocity, _GRADS, 0.3, used, 0.01)
  for name, expected in params.items():
    np.testing.assert_allclose(got[name], expected, rtol=1e-6)


def test_adamw_is_adam_with_a_decay_of_kernels():
  got = _run(learning.AdamWServer(0.01, weight_decay=0.5), 2)
  # As `test_adam`, with w <- w - rate * decay * w before each step of a matrix.
  step = {name: 0.01 * np.sign(g) for name, g in _GRADS.items()}
  kernel = _PARAMS['kernel'].astype(np.float64)
  for _ in range(2):
    kernel = 0.995 * kernel - step['kernel']
  np.testing.assert_allclose(got['kernel'], kernel, rtol=1e-5)
  np.testing.assert_allclose(got['bias'], _PARAMS['bias'] - 2 * step['bias'], rtol=1e-5)


@pytest.mark.parametrize('schedule', ['constant', 'cosine'])
def test_adamw_without_decay_is_adam_to_the_bit(schedule):
  of_both = [
    _run(learning.SERVERS[name](0.01, schedule, kind=name), 4, rounds=5)
    for name in ('adam', 'adamw')
  ]
  for name, param in _PARAMS.items():
    np.testing.assert_array_equal(of_both[0][name], of_both[1][name])
    assert np.all(of_both[0][name] != param)


@pytest.mark.parametrize('name', ['sgd', 'adamw'])
def test_the_rate_falls_in_steps(name):
  config = learning.SERVERS[name](0.4, 'steps', steps=(1, 3), factor=0.5, kind=name)
  direction = np.sign(_GRADS['bias']) if name == 'adamw' else _GRADS['bias']
  # Rates 0.4, 0.2, 0.2, 0.1.
  expected = _PARAMS['bias'] - 0.9 * direction
  np.testing.assert_allclose(_run(config, 4)['bias'], expected, rtol=1e-5)


@pytest.mark.parametrize('name', ['sgd', 'lars'])
def test_the_rate_follows_the_cosine_by_round(name):
  config = learning.SERVERS[name](0.4, 'cosine', 2, kind=name, momentum=0.0)
  rates = [0.2, 0.4] + [0.2 * (1 + math.cos(math.pi * t / 4)) for t in range(5)]
  for steps in (1, 2, 4, 7):
    # A vector takes the plain rate in LARS too.
    np.testing.assert_allclose(
      _run(config, steps, rounds=6)['bias'],
      _PARAMS['bias'] - sum(rates[:steps]) * _GRADS['bias'],
      rtol=1e-5,
    )


@pytest.mark.parametrize(
  ('rounds', 'message'), [(None, 'rounds is None; the cos'), (2, 'warmup_steps is 2')]
)
def test_rounds_that_the_cosine_needs(rounds, message):
  with pytest.raises(ValueError, match=message):
    optimizers.build_optimizer(learning.SgdServer(1.0, 'cosine', 2), rounds)


@pytest.mark.parametrize(
  'arguments',
  [{'learning_rate': -0.1}, {'momentum': 1.0}, {'weight_decay': -1.0}],
)
def test_lars_names_what_is_out_of_range(arguments):
  with pytest.raises(ValueError, match=next(iter(arguments))):
    optimizers.Lars(**{'learning_rate': 0.1, **arguments})
