"""Tests of L-DAWA: a round of three layers against NumPy, layers kept."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import linear_model
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import l_dawa
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import base
from tff_ssl.settings import learning

_SIZES = (3, 1, 4)
_EPOCHS, _RATE = 2, 0.4
_SERVER = learning.SgdServer()
# The last begins at 0, where there is no angle.
_START = {
  'first/kernel': np.array([0.5, -1.0]),
  'first/bias': np.array(0.25),
  'second/kernel': np.array([1.0, 0.5]),
  'third/kernel': np.array([0.0, 0.0]),
}
_TARGETS = {'first': 1.0, 'second': -2.0, 'third': 3.0}
_LAYERS = tuple(_TARGETS)


class _Layers(base.Objective):
  """Half the mean squared errors of three linear models, each of its own target."""

  def init(self, seed, dtype=tf.float32):
    del seed
    return collections.OrderedDict(
      (name, tf.constant(value, dtype)) for name, value in _START.items()
    )

  def loss(self, params, examples, seed):
    del seed
    n = tf.cast(tf.shape(examples['y'])[0], tf.float32)
    total = tf.zeros([])
    for layer, factor in _TARGETS.items():
      predicted = tf.linalg.matvec(examples['x'], params[f'{layer}/kernel'])
      predicted += params.get(f'{layer}/bias', 0.0)
      total += tf.reduce_sum((predicted - factor * examples['y']) ** 2) / 2
    return tf.math.divide_no_nan(total, n), collections.OrderedDict()


def _clients():
  generator, first_id = np.random.default_rng(5), 0
  for n in _SIZES:
    yield collections.OrderedDict(
      x=generator.normal(size=(n, 2)).astype(np.float32),
      y=generator.normal(size=n).astype(np.float32),
      example_id=np.arange(first_id, first_id + n, dtype=np.int64),
    )
    first_id += n


def _config(weighting='examples'):
  return fedavg.Training(
    learning.SgdClients(learning_rate=_RATE, weighting=weighting, epochs=_EPOCHS)
  )


def _trained(layer, client):
  """Returns a layer as one vector, a bias last, after full batches in float64."""
  w = _vector(_START, layer)
  x, y = client['x'].astype(np.float64), client['y'].astype(np.float64)
  if f'{layer}/bias' in _START:
    x = np.hstack([x, np.ones((len(y), 1))])
  for _ in range(_EPOCHS):
    w = w - _RATE * x.T @ (x @ w - _TARGETS[layer] * y) / len(y)
  return w


def _vector(weights, layer):
  names = (f'{layer}/kernel', f'{layer}/bias')
  return np.concatenate([np.ravel(weights[n]) for n in names if n in weights])


def _cosine(a, b):
  norms = np.linalg.norm(a) * np.linalg.norm(b)
  return a @ b / norms if norms else 1.0


@pytest.mark.parametrize('weighting', ['examples', 'uniform'])
def test_a_round_weighs_each_layer_by_its_cosine(tff_context, weighting):
  process = processes.build(
    l_dawa.l_dawa(_Layers(), optimizers.build_optimizer(_SERVER), _config(weighting)),
    linear_model.ELEMENT,
  )
  cohort = harness.datasets(_clients())
  states, _ = harness.rounds_of(process, [cohort])
  got = process.get_model_weights(states[1]).trainable
  weights = _SIZES if weighting == 'examples' else np.ones(len(_SIZES))
  for layer in _LAYERS:
    start = _vector(_START, layer)
    ends = np.array([_trained(layer, client) for client in _clients()])
    cosines = np.array([_cosine(start, end) for end in ends])
    shares = weights * cosines / np.sum(weights * cosines)
    np.testing.assert_allclose(_vector(got, layer), shares @ ends, rtol=1e-4)
    plain = weights / np.sum(weights) @ ends
    differs = np.abs(shares @ ends - plain).max()
    assert differs == 0 if layer == 'third' else differs > 5e-3


def test_cosines_are_of_all_tensors_of_a_layer():
  """Of (3, 0, 4) and (0, 5, 0, ...): closed forms."""
  x = collections.OrderedDict(
    [('a/b/kernel', [[3.0, 0.0]]), ('a/b/bias', [4.0]), ('a/scale', 2.0), ('w', 0.0)]
  )
  y = collections.OrderedDict(
    [('a/b/kernel', [[3.0, 4.0]]), ('a/b/bias', [0.0]), ('a/scale', -1.0), ('w', 7.0)]
  )
  x, y = (
    collections.OrderedDict((k, tf.constant(v)) for k, v in p.items()) for p in (x, y)
  )
  cosines = l_dawa.cosines(x, y)
  assert list(cosines) == ['a/b', 'a', 'w']
  np.testing.assert_allclose([*cosines.values()], [9 / 25, -1.0, 1.0], rtol=1e-6)
  np.testing.assert_allclose(l_dawa.cosines(y, x)['w'], 1.0)
  # However short a layer is, it has an angle.
  short = {name: 1e-3 * value for name, value in x.items()}
  np.testing.assert_allclose(l_dawa.cosines(short, short)['a/b'], 1.0, rtol=1e-6)
  np.testing.assert_allclose(l_dawa.cosines(short, y)['a'], -1.0, rtol=1e-6)


def test_a_layer_without_a_positive_sum_keeps_its_weights():
  """Whatever momentum the server's optimizer has from the round before."""
  config = learning.SgdServer(momentum=0.9)
  algorithm = l_dawa.l_dawa(_Layers(), optimizers.build_optimizer(config), _config())
  (train,) = algorithm.phases
  state = algorithm.initial()
  trainable = state.global_model_weights.trainable

  def aggregated(second):
    cosines = {'first': 0.5, 'second': second, 'third': 1.0}
    return {
      'update': tf.nest.map_structure(tf.ones_like, trainable),
      'metrics': {'loss': tf.constant(1.0)},
      'cosines': {
        'statistics': {k: tf.constant(v) for k, v in cosines.items()},
        'num_examples': tf.constant(3.0),
      },
    }

  once, _ = train.receive(state, aggregated(0.25))
  after = once.global_model_weights.trainable
  for layer, quotient in (('first', 2.0), ('second', 4.0), ('third', 1.0)):
    moved = _vector(trainable, layer) - _vector(after, layer)
    np.testing.assert_allclose(moved, quotient, rtol=1e-6)
  for second in (0.0, -0.1):
    twice = train.receive(once, aggregated(second))[0].global_model_weights.trainable
    np.testing.assert_array_equal(twice['second/kernel'], after['second/kernel'])
    # Momentum: 0.9 times the last step and this one.
    moved = _vector(after, 'first') - _vector(twice, 'first')
    np.testing.assert_allclose(moved, 0.9 * 2.0 + 2.0, rtol=1e-6)
