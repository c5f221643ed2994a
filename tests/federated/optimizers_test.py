"""Tests of the optimizers by name."""

import collections
import math

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.federated import optimizers
from tff_ssl.optimization import lars

_PARAMS = collections.OrderedDict(
  kernel=np.array([[1.0, -2.0], [0.5, 3.0]], np.float32),
  bias=np.array([0.1, -0.2], np.float32),
)
_GRADS = collections.OrderedDict(
  kernel=np.array([[0.3, 0.1], [-0.2, 0.4]], np.float32),
  bias=np.array([0.5, -1.0], np.float32),
)


def _run(config, steps):
  """Returns the parameters after some steps with the same gradient."""
  optimizer = optimizers.build_optimizer(config)
  params = tf.nest.map_structure(tf.constant, _PARAMS)
  grads = tf.nest.map_structure(tf.constant, _GRADS)
  state = optimizer.initialize(
    tf.nest.map_structure(lambda p: tf.TensorSpec(p.shape, p.dtype), params)
  )
  for _ in range(steps):
    state, params = optimizer.next(state, params, grads)
  return {name: value.numpy() for name, value in params.items()}


def _is_kernel(value):
  return value.ndim > 1


def _lars(p, g):
  return 0.001 * np.linalg.norm(p) / np.linalg.norm(g) if _is_kernel(p) else 1.0


# With one gradient, Adam's bias correction makes every step the rate times its sign.
@pytest.mark.parametrize(
  ('fields', 'steps', 'expected'),
  [
    ({'name': 'sgd'}, 3, lambda p, g: p - 0.3 * g),
    # Velocities g, 1.5 g, 1.75 g.
    ({'name': 'sgd', 'momentum': 0.5}, 3, lambda p, g: p - 0.1 * 4.25 * g),
    ({'name': 'adam'}, 2, lambda p, g: p - 0.2 * np.sign(g)),
    # w <- w - rate * decay * w before each step of a matrix.
    (
      {'name': 'adamw', 'weight_decay': 0.5},
      1,
      lambda p, g: (0.95 if _is_kernel(p) else 1.0) * p - 0.1 * np.sign(g),
    ),
    ({'name': 'lars', 'momentum': 0.0}, 1, lambda p, g: p - 0.1 * _lars(p, g) * g),
    # Rates 0.1, 0.05, 0.05, 0.025.
    (
      {'name': 'sgd', 'schedule': 'steps', 'boundaries': (1, 3), 'factor': 0.5},
      4,
      lambda p, g: p - 0.225 * g,
    ),
    (
      {'name': 'adamw', 'schedule': 'steps', 'boundaries': (1, 3), 'factor': 0.5},
      4,
      lambda p, g: p - 0.225 * np.sign(g),
    ),
  ],
)
def test_steps_are_those_by_hand(fields, steps, expected):
  got = _run(optimizers.OptimizerConfig(**{'learning_rate': 0.1, **fields}), steps)
  for name, param in _PARAMS.items():
    want = expected(param.astype(np.float64), _GRADS[name].astype(np.float64))
    np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(('momentum', 'used'), [(None, 0.9), (0.0, 0.0), (0.5, 0.5)])
def test_lars_is_the_library_s(momentum, used):
  config = optimizers.OptimizerConfig('lars', 0.3, momentum=momentum, weight_decay=0.01)
  got = _run(config, 3)
  params = tf.nest.map_structure(tf.constant, _PARAMS)
  velocity = lars.init(params)
  for _ in range(3):
    params, velocity = lars.update(params, velocity, _GRADS, 0.3, used, 0.01)
  for name, expected in params.items():
    np.testing.assert_allclose(got[name], expected, rtol=1e-6)


@pytest.mark.parametrize('schedule', [{}, {'schedule': 'cosine', 'rounds': 5}])
def test_adamw_without_decay_is_adam_to_the_bit(schedule):
  of_both = [
    _run(optimizers.OptimizerConfig(name, 0.01, **schedule), 4)
    for name in ('adam', 'adamw')
  ]
  for name, param in _PARAMS.items():
    np.testing.assert_array_equal(of_both[0][name], of_both[1][name])
    assert np.all(of_both[0][name] != param)


@pytest.mark.parametrize('name', ['sgd', 'lars'])
def test_the_rate_follows_the_cosine_by_round(name):
  config = optimizers.OptimizerConfig(
    name, 0.4, 'cosine', rounds=6, warmup_rounds=2, momentum=0.0
  )
  rates = [0.2, 0.4] + [0.2 * (1 + math.cos(math.pi * t / 4)) for t in range(5)]
  for steps in (1, 2, 4, 7):
    # A vector takes the plain rate in LARS too.
    np.testing.assert_allclose(
      _run(config, steps)['bias'],
      _PARAMS['bias'] - sum(rates[:steps]) * _GRADS['bias'],
      rtol=1e-5,
    )


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'name': 'rmsprop'}, "'rmsprop'; it must be one of sgd, adam, adamw, lars"),
    ({'schedule': 'step'}, "'step'; it must be one of constant, cosine, steps"),
    ({'schedule': 'cosine'}, 'needs the number of rounds'),
    ({'warmup_rounds': 3}, 'only the cosine schedule'),
    ({'momentum': 0.9}, 'only sgd and lars'),
    ({'weight_decay': 0.1}, 'only lars'),
    ({'name': 'adamw', 'momentum': 0.9}, 'only sgd and lars'),
    ({'schedule': 'steps'}, r'boundaries is \(\) with the schedule steps'),
    ({'boundaries': (3,)}, r'boundaries is \(3,\) with the schedule constant'),
    ({'schedule': 'cosine', 'rounds': 3, 'warmup_rounds': 3}, 'warmup_steps is 3'),
  ],
)
def test_config_names_what_is_wrong(fields, message):
  with pytest.raises(ValueError, match=message):
    optimizers.OptimizerConfig(**fields)


@pytest.mark.parametrize(
  'arguments',
  [{'learning_rate': -0.1}, {'momentum': 1.0}, {'weight_decay': -1.0}],
)
def test_lars_names_what_is_out_of_range(arguments):
  with pytest.raises(ValueError, match=next(iter(arguments))):
    optimizers.Lars(**{'learning_rate': 0.1, **arguments})
