"""Tests of the linear objective against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.objectives import linear_classifier

_SEED = tf.constant([1, 2])
_OBJECTIVE = linear_classifier.LinearObjective(4, 3)


def _examples(n, labelled=True):
  generator = np.random.default_rng(n)
  return collections.OrderedDict(
    features=generator.normal(size=(n, 4)),
    example_id=np.arange(n, dtype=np.int64),
    label=np.where(labelled, generator.integers(0, 3, n), -1).astype(np.int32),
  )


def _params():
  generator = np.random.default_rng(5)
  return collections.OrderedDict(
    kernel=tf.constant(generator.normal(size=(4, 3))),
    bias=tf.constant(generator.normal(size=3)),
  )


def test_loss_and_gradient_are_those_of_softmax_cross_entropy():
  params, examples = _params(), _examples(7)
  kernel, bias = (params[name].numpy() for name in ('kernel', 'bias'))
  logits = examples['features'] @ kernel + bias
  share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
  residual = (share - np.eye(3)[examples['label']]) / 7
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, metrics = _OBJECTIVE.loss(params, examples, _SEED)
  gradient = tape.gradient(loss, params)
  expected = -np.log(share[np.arange(7), examples['label']]).mean()
  assert float(loss) == pytest.approx(expected, rel=1e-12)
  np.testing.assert_allclose(gradient['kernel'], examples['features'].T @ residual)
  np.testing.assert_allclose(gradient['bias'], residual.sum(axis=0))
  right = logits.argmax(axis=1) == examples['label']
  assert float(metrics['accuracy']) == pytest.approx(right.mean())
  assert _OBJECTIVE.summarize(metrics) is metrics


def test_it_starts_at_zero_where_all_classes_are_alike():
  params = _OBJECTIVE.init(_SEED, tf.float64)
  assert [(k, v.shape) for k, v in params.items()] == [('kernel', (4, 3)), ('bias', 3)]
  loss, _ = _OBJECTIVE.loss(params, _examples(5), _SEED)
  assert float(loss) == pytest.approx(np.log(3), rel=1e-12)


def test_unlabelled_examples_take_no_part():
  params, examples = _params(), _examples(6)
  examples['label'][:2] = -1
  rest = collections.OrderedDict((name, x[2:]) for name, x in examples.items())
  for found, expected in zip(
    tf.nest.flatten(_OBJECTIVE.loss(params, examples, _SEED)),
    tf.nest.flatten(_OBJECTIVE.loss(params, rest, _SEED)),
    strict=True,
  ):
    assert float(found) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize('examples', [_examples(0), _examples(3, labelled=False)])
def test_without_labels_the_loss_is_zero(examples):
  loss, metrics = _OBJECTIVE.loss(_params(), examples, _SEED)
  assert float(loss) == float(metrics['accuracy']) == 0.0
