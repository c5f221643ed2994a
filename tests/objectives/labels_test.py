"""Objectives of labels and pseudo-labels against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.augment import byol
from tff_ssl.augment import weak_strong
from tff_ssl.encoders import projector
from tff_ssl.objectives import contextual
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import linear_classifier
from tff_ssl.objectives import separable
from tff_ssl.objectives import supervised
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])


def _objective(threshold: float = 0.6) -> fixmatch.FixMatchObjective:
  return fixmatch.FixMatchObjective(
    networks.encoder(),
    projector.build_linear(3, 2),
    settings=objectives.Fixmatch(threshold),
  )


def _params(objective):
  params = objective.init(_SEED, tf.float64)
  # Predictions of the initial weights are all nearly the same.
  params['head/dense0/kernel'] = tf.constant([[8.0, -8], [-8, 8], [1, 0]], tf.float64)
  return params


@pytest.mark.parametrize('threshold', [0.0, 0.75])
def test_the_loss_equals_numpy(threshold):
  objective, batch = _objective(threshold), networks.examples(12)
  params = _params(objective)
  loss, metrics = objective.loss(params, networks.tensors(batch), _SEED)
  arguments = (
    tf.constant(batch['image']),
    tf.constant(batch['example_id']),
    _SEED,
    objective.augmentation,
  )
  probabilities = []
  for view in (weak_strong.weak_view, weak_strong.strong_view):
    mean = view(*arguments).numpy().astype(np.float64).mean(axis=(1, 2))
    logits = networks.numpy_linear(params, 'head', mean)
    probabilities.append(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
  weak, strong = probabilities
  kept = weak.max(axis=1) >= threshold
  assert kept.all() == (threshold == 0)
  assert kept.any()
  entropy = -np.log(strong[np.arange(12), weak.argmax(axis=1)])
  assert float(loss) == pytest.approx((kept * entropy).sum() / 12, rel=1e-5)
  assert float(metrics['pseudo_labelled']) == pytest.approx(kept.mean())
  assert objective.summarize(metrics) is metrics


def test_labels_are_not_read():
  objective, batch = _objective(0.0), networks.examples(4)
  params = _params(objective)
  del batch['label']
  assert np.isfinite(objective.loss(params, networks.tensors(batch), _SEED)[0])


def test_its_networks_are_those_of_supervised_training():
  objective = _objective()
  assert isinstance(objective, separable.Separable)
  assert objective.logits is not None
  networks = objective.encoder, objective.head
  labelled = supervised.SupervisedObjective(*networks, byol.by_name('none'))
  start, expected = objective.init(_SEED), labelled.init(_SEED)
  assert list(start) == list(expected)
  for name, value in expected.items():
    np.testing.assert_array_equal(start[name], value)
  assert objective.shared_prefixes == ('encoder', 'head')


_NAMES = ('head/dense0/kernel', 'head/dense0/bias')


def _fedmatch(**options) -> helper_consistency.UnlabelledObjective:
  head = projector.build_linear(3, 2)
  weights = {
    'settings': objectives.Fedmatch(0.7),
    'consistency_weight': 0.5,
    'agreement_weight': 0.25,
    'l1_weight': 0.01,
    'l2_weight': 0.1,
    **options,
  }
  return helper_consistency.UnlabelledObjective(networks.encoder(), head, **weights)


def _part(seed, scale=4.0):
  generator = np.random.default_rng(seed)
  shapes = ((3, 2), (2,))
  return collections.OrderedDict(
    (name, tf.constant(scale * generator.normal(size=shape)))
    for name, shape in zip(_NAMES, shapes, strict=True)
  )


def _context(helped):
  """Client 1 of three has the other two as helpers, if it has any."""
  others = [_part(k) for k in (10, 11, 12)]
  return collections.OrderedDict(
    [
      (helper_consistency.SIGMA, _part(1)),
      (
        helper_consistency.MODELS,
        collections.OrderedDict((n, tf.stack([o[n] for o in others])) for n in _NAMES),
      ),
      (helper_consistency.HELPERS, tf.constant([[1, 2], [2, 0], [0, 1]])),
      (helper_consistency.HELPED, tf.constant([0, int(helped), 0])),
    ]
  )


def _batch(n=12):
  batch = networks.examples(n)
  batch[contextual.CLIENT] = np.full(n, 1, np.int32)
  return batch


def _predict(sigma, psi, image):
  mean = image.astype(np.float64).mean(axis=(1, 2))
  kernel, bias = (sigma[n].numpy() + psi[n].numpy() for n in _NAMES)
  logits = mean @ kernel + bias
  return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


@pytest.mark.parametrize('helped', [False, True])
def test_the_loss_of_fedmatch_equals_numpy(helped):
  objective, psi, context, batch = _fedmatch(), _part(2), _context(helped), _batch()
  loss, metrics = objective.bind_context(context).loss(
    psi, networks.tensors(batch), _SEED
  )
  sigma = context[helper_consistency.SIGMA]
  image = batch['image'] / 255
  strong_image = weak_strong.strong_view(
    tf.constant(batch['image']),
    tf.constant(batch['example_id']),
    _SEED,
    objective.augmentation,
  ).numpy()
  own, strong = _predict(sigma, psi, image), _predict(sigma, psi, strong_image)
  helpers = [_predict(sigma, _part(k), image) for k in (12, 10)] if helped else []
  total = 0.0
  for i in np.flatnonzero(own.max(axis=1) >= 0.7):
    votes = np.bincount([p[i].argmax() for p in (own, *helpers)], minlength=2)
    total -= 0.25 * np.log(strong[i, votes.argmax()])
    divergences = [(p[i] * np.log(p[i] / own[i])).sum() for p in helpers]
    total += 0.5 * np.mean(divergences or [0.0])
  penalty = sum(
    0.01 * np.abs(psi[n]).sum() + 0.1 * ((sigma[n] - psi[n]).numpy() ** 2).sum()
    for n in _NAMES
  )
  assert float(loss) == pytest.approx(total / 12 + penalty, rel=1e-5)
  share = float(metrics['pseudo_labelled'])
  assert share == pytest.approx((own.max(axis=1) >= 0.7).mean())
  assert 0 < share < 1


def test_the_gradient_of_the_penalties_alone():
  objective, psi, context = _fedmatch(), _part(2), _context(True)
  with tf.GradientTape() as tape:
    tape.watch(psi)
    loss, _ = objective.bind_context(context).loss(
      psi, networks.tensors(_batch(0)), _SEED
    )
  for name, gradient in tape.gradient(loss, psi).items():
    value, sigma = psi[name].numpy(), context[helper_consistency.SIGMA][name].numpy()
    expected = 0.01 * np.sign(value) + 0.2 * (value - sigma)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9)


def test_the_server_trains_the_sum_and_moves_sigma():
  labelled = supervised.SupervisedObjective(
    networks.encoder(), projector.build_linear(3, 2), byol.by_name('none')
  )
  objective = helper_consistency.LabelledObjective(labelled, weight=10.0)
  sigma, psi = _part(1), _part(2)
  batch = networks.tensors(networks.examples(5))
  loss, _ = objective.bind_context(
    collections.OrderedDict([(helper_consistency.PSI, psi)])
  ).loss(sigma, batch, _SEED)
  expected, _ = labelled.loss(helper_consistency.add(sigma, psi), batch, _SEED)
  assert float(loss) == pytest.approx(10 * float(expected), rel=1e-12)


_OBJECTIVE = linear_classifier.LinearObjective(4, 3)


def _examples(n, labelled=True):
  generator = np.random.default_rng(n)
  return collections.OrderedDict(
    features=generator.normal(size=(n, 4)),
    example_id=np.arange(n, dtype=np.int64),
    label=np.where(labelled, generator.integers(0, 3, n), -1).astype(np.int32),
  )


def _linear_params():
  generator = np.random.default_rng(5)
  return collections.OrderedDict(
    kernel=tf.constant(generator.normal(size=(4, 3))),
    bias=tf.constant(generator.normal(size=3)),
  )


def test_loss_and_gradient_are_those_of_softmax_cross_entropy():
  params, examples = _linear_params(), _examples(7)
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
  params, examples = _linear_params(), _examples(6)
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
  loss, metrics = _OBJECTIVE.loss(_linear_params(), examples, _SEED)
  assert float(loss) == float(metrics['accuracy']) == 0.0
