"""DCCO's rounds in float32 against centralized gradients in float64.

The expected step is the gradient of Eq. 1, written out over centred encodings, at the
weights that the round starts from, in float64: from the same images and views.
"""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.encoders import network
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import statistics
from tff_ssl.settings import learning

_EXAMPLES = 64
_SPLITS = [[1, 2, 5, 4, 20, 32], [1] * 4 + [60], [32, 32]]
_ROUNDS = 10
_BIAS = 'projector/dense1/bias'


def _project(ops, x):
  x = ops.relu(ops.dense(x, 'dense0', units=8, use_bias=False))
  return ops.dense(x, 'dense1', units=harness.DIMENSION, gain=1.0)


@functools.cache
def _objective(loss_name):
  model = harness.model()
  head = network.Network('projector', model.projector.input_shape, _project)
  return statistics.StatisticsObjective(
    dual_encoder.Siamese(model.encoder, head, model.augmentation),
    harness.STATISTICS_LOSSES[loss_name],
  )


@functools.cache
def _process():
  return processes.build(
    dcco.dcco(
      _objective('cco'),
      optimizers.build_optimizer(learning.SgdServer()),
      seed=harness.SEED,
    ),
    harness.ELEMENT,
  )


def _double(params):
  return collections.OrderedDict(
    (name, tf.constant(np.asarray(value, np.float64))) for name, value in params.items()
  )


def _encodings(params, seed):
  examples = harness.tensors(harness.arrays(_EXAMPLES))
  return _objective('cco').model.encode(params, examples, seed)


def _centralized(params, seed):
  """Returns the gradient of Eq. 1 on all examples as one vector, in float64."""
  params = _double(params)
  with tf.GradientTape() as tape:
    tape.watch(params)
    f, g = (x - tf.reduce_mean(x, axis=0) for x in _encodings(params, seed))
    std_f, std_g = (
      tf.sqrt(tf.reduce_mean(x**2, axis=0) + 1e-5)[tf.newaxis] for x in (f, g)
    )
    c = tf.matmul(f, g, transpose_a=True) / _EXAMPLES / (tf.transpose(std_f) * std_g)
    diagonal = tf.linalg.diag_part(c)
    off = tf.reduce_sum(c**2) - tf.reduce_sum(diagonal**2)
    loss = tf.reduce_sum((1 - diagonal) ** 2) + 20 / (harness.DIMENSION - 1) * off
  return harness.flat(tape.gradient(loss, params))


def _shifted(process, deviations):
  """Returns the initial state with a bias of so many standard deviations."""
  state = process.initialize()
  weights = process.get_model_weights(state)
  f, _ = _encodings(_double(weights.trainable), harness.round_seed(0))
  bias = deviations * np.std(f, axis=0)
  trainable = collections.OrderedDict(weights.trainable)
  trainable[_BIAS] = bias.astype(np.float32)
  return process.set_model_weights(
    state, tff.learning.models.ModelWeights(trainable, weights.non_trainable)
  )


@pytest.mark.long_for('0')
@pytest.mark.parametrize('deviations', [0, 1000])
def test_ten_rounds_are_centralized_steps_in_float32(tff_context, deviations):
  process = _process()
  state = _shifted(process, deviations)
  errors = []
  for round in range(_ROUNDS):
    params = process.get_model_weights(state).trainable
    expected = _centralized(params, harness.round_seed(round))
    split = harness.split(_SPLITS[round % len(_SPLITS)])
    output = process.next(state, harness.cohort(split, harness.arrays(_EXAMPLES)))
    before, after = harness.flat(params), harness.weights(process, output.state)
    # The weights are rounded to float32 after the step, which may be a small one.
    rounding = np.linalg.norm(np.spacing(np.float32(after)) / 2)
    error = np.linalg.norm(before - after - expected) - rounding
    errors.append(error / np.linalg.norm(expected))
    state = output.state
  assert np.median(errors) < 1e-5, errors
  # Where the gradient nearly cancels, float32 in the network alone is 1e-5 of it.
  assert max(errors) < 3e-5, errors
