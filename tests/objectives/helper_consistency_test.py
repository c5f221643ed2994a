"""FedMatch's losses on linear networks, against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.augment import byol
from tff_ssl.augment import weak_strong
from tff_ssl.encoders import projector
from tff_ssl.objectives import contextual
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import supervised
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])
_NAMES = ('head/dense0/kernel', 'head/dense0/bias')


def _objective(**options) -> helper_consistency.UnlabelledObjective:
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
def test_the_loss_equals_numpy(helped):
  objective, psi, context, batch = _objective(), _part(2), _context(helped), _batch()
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
  objective, psi, context = _objective(), _part(2), _context(True)
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
