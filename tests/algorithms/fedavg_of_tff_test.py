"""FedAvg and FedProx against `tff.learning.algorithms`, TFF's own, of TFF 0.87."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import processes
from tff_ssl.objectives import base
from tff_ssl.settings import learning

_FEATURES, _HIDDEN, _CLASSES = 5, 4, 3
_SIZES = (3, 5, 1, 8)
# TFF weights a client by all examples that it visits, E n_k: a power of two changes no
# bit of the mean.
_EPOCHS, _RATE, _MOMENTUM, _PULL = 4, 0.25, 0.5, 1.0
_ELEMENT = collections.OrderedDict(
  x=tf.TensorSpec([_FEATURES], tf.float32),
  y=tf.TensorSpec([], tf.int32),
  example_id=tf.TensorSpec([], tf.int64),
)


def _initial():
  generator = np.random.default_rng(0)
  return (
    generator.normal(size=(_FEATURES, _HIDDEN)).astype(np.float32),
    generator.normal(size=(_HIDDEN, _CLASSES)).astype(np.float32),
  )


def _predict(weights, x):
  return tf.tanh(x @ weights[0]) @ weights[1]


def _mean_loss(logits, y):
  return tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
  )


class _TwoLayers(base.Objective):
  """Cross-entropy of a network without biases, as `_model` has it."""

  def init(self, seed, dtype=tf.float32):
    del seed
    return collections.OrderedDict(
      (f'kernel{i}', tf.constant(w, dtype)) for i, w in enumerate(_initial())
    )

  def loss(self, params, examples, seed):
    del seed
    logits = _predict(list(params.values()), examples['x'])
    return _mean_loss(logits, examples['y']), collections.OrderedDict()


def _model():
  @tf.function(autograph=False)
  def predict(weights, x, training):
    del training
    return _predict(weights[0], x)

  @tf.function(autograph=False)
  def loss(output, label, sample_weight=None):
    del sample_weight
    return _mean_loss(output, label)

  return tff.learning.models.FunctionalModel(
    initial_weights=(_initial(), ()),
    predict_on_batch_fn=predict,
    loss_fn=loss,
    input_spec=(
      tf.TensorSpec([None, _FEATURES], tf.float32),
      tf.TensorSpec([None], tf.int32),
    ),
  )


def _clients():
  generator = np.random.default_rng(1)
  for size in _SIZES:
    x = generator.normal(size=(size, _FEATURES)).astype(np.float32)
    yield x, generator.integers(0, _CLASSES, size).astype(np.int32)


def _of_tff(build, *arguments):
  """Returns the weights after each of three rounds of TFF's algorithm."""
  sgd = tff.learning.optimizers.build_sgdm
  process = build(
    _model(),
    *arguments,
    client_optimizer_fn=sgd(_RATE, _MOMENTUM),
    server_optimizer_fn=sgd(1.0),
  )
  cohort = [
    tf.data.Dataset.from_tensor_slices(client).batch(len(client[1])).repeat(_EPOCHS)
    for client in _clients()
  ]
  states, _ = harness.rounds_of(process, [cohort] * 3)
  return [process.get_model_weights(state).trainable for state in states]


def _of_ours(**fields):
  """Returns the same of our FedAvg, where a batch is all that a client has."""
  clients = learning.SgdClients(_RATE, epochs=_EPOCHS, momentum=_MOMENTUM, **fields)
  algorithm = fedavg.fedavg(
    _TwoLayers(),
    tff.learning.optimizers.build_sgdm(1.0),
    fedavg.Training(clients),
  )
  process = processes.build(algorithm, _ELEMENT)
  cohort = [
    tf.data.Dataset.from_tensor_slices(
      collections.OrderedDict(x=x, y=y, example_id=np.arange(len(y), dtype=np.int64))
    )
    for x, y in _clients()
  ]
  states, _ = harness.rounds_of(process, [cohort] * 3)
  return [list(process.get_model_weights(s).trainable.values()) for s in states]


def _by_hand(pull):
  """Returns the same in float64, with `pull` times w - w_global in each gradient."""
  weights = [np.float64(w) for w in _initial()]
  results = [weights]
  for _ in range(3):
    ends = []
    for x, y in _clients():
      own, velocity = weights, [0.0, 0.0]
      for _ in range(_EPOCHS):
        own = [tf.constant(w) for w in own]
        with tf.GradientTape() as tape:
          tape.watch(own)
          loss = _mean_loss(_predict(own, np.float64(x)), y)
        steps = zip(velocity, tape.gradient(loss, own), own, weights, strict=True)
        velocity = [_MOMENTUM * v + g + pull * (w - w0) for v, g, w, w0 in steps]
        own = [w - _RATE * v for w, v in zip(own, velocity, strict=True)]
      ends.append(own)
    weights = [
      np.average([end[i] for end in ends], axis=0, weights=_SIZES) for i in range(2)
    ]
    results.append(weights)
  return results


def test_three_rounds_of_fedavg_are_tff_s_to_the_bit(tff_context):
  of_tff = _of_tff(tff.learning.algorithms.build_weighted_fed_avg)
  for theirs, ours in zip(of_tff, _of_ours(), strict=True):
    for a, b in zip(theirs, ours, strict=True):
      np.testing.assert_array_equal(a, b)
  assert not np.array_equal(of_tff[2][0], of_tff[3][0])


@pytest.mark.long
def test_tff_s_fedprox_pushes_clients_away_from_the_global_model(tff_context):
  """TFF 0.87 has the proximal term with the wrong sign.

  Its templates/proximal_client_work.py adds mu (w_global - w) to the gradient of the
  loss. The paper's mu/2 |w - w_global|^2 (Li et al. 2020, Eq. 2) has the gradient
  mu (w - w_global), which ours adds.
  """
  of_tff = _of_tff(tff.learning.algorithms.build_weighted_fed_prox, _PULL)
  of_ours = _of_ours(proximal_weight=_PULL)
  for got, pull in ((of_ours, _PULL), (of_tff, -_PULL)):
    for weights, expected in zip(got, _by_hand(pull), strict=True):
      for a, b in zip(weights, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
  assert harness.relative(of_tff[-1][0], of_ours[-1][0]) > 1e-2
