"""Tests of the federated linear classifier against FedAvg written out in NumPy."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tff_ssl.algorithms import federated_linear
from tff_ssl.federated import processes
from tff_ssl.settings import learning

_N, _D, _CLASSES = 12, 3, 2
_ELEMENT = collections.OrderedDict(
  features=tf.TensorSpec([_D], tf.float32),
  example_id=tf.TensorSpec([], tf.int64),
  label=tf.TensorSpec([], tf.int32),
)
# All clients' examples are one batch.
_CONFIG = learning.FederatedLinear(2, epochs=3, batch_size=_N, learning_rate=0.5)


def _examples():
  generator = np.random.default_rng(0)
  return collections.OrderedDict(
    features=generator.normal(size=(_N, _D)).astype(np.float32),
    example_id=np.arange(_N, dtype=np.int64),
    label=generator.integers(0, _CLASSES, _N).astype(np.int32),
  )


def _trained(theta, x, label, rate):
  """Returns theta [d + 1, classes] after E steps of SGD with momentum."""
  x = np.concatenate([x.astype(np.float64), np.ones([len(x), 1])], axis=1)
  velocity = np.zeros_like(theta)
  for _ in range(_CONFIG.epochs):
    share = np.exp(x @ theta)
    share /= share.sum(axis=1, keepdims=True)
    gradient = x.T @ (share - np.eye(_CLASSES)[label]) / len(x)
    velocity = 0.9 * velocity + gradient
    theta = theta - rate * velocity
  return theta


def _fedavg(clients):
  """Returns theta after the rounds; the cosine's rates of two rounds are r and r/2."""
  examples, theta = _examples(), np.zeros([_D + 1, _CLASSES])
  for rate in (_CONFIG.learning_rate, _CONFIG.learning_rate / 2):
    updates = [
      len(k) / _N * _trained(theta, examples['features'][k], examples['label'][k], rate)
      for k in clients
    ]
    theta = sum(updates)
  return theta


@pytest.fixture(scope='module')
def process():
  return processes.build(
    federated_linear.federated_linear(_D, _CLASSES, _CONFIG), _ELEMENT
  )


def _run(process, clients):
  cohort = harness.cohort(clients, _examples())
  states, _ = harness.rounds_of(process, [cohort] * _CONFIG.rounds)
  weights = process.get_model_weights(states[-1]).trainable
  return np.concatenate([weights['kernel'], [weights['bias']]])


@pytest.mark.parametrize('sizes', [[_N], [2, 1, 9]])
def test_rounds_are_those_of_fedavg(tff_context, process, sizes):
  clients = harness.split(sizes)
  np.testing.assert_allclose(_run(process, clients), _fedavg(clients), atol=1e-5)
