"""FixMatch on linear networks, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.augment import byol
from tff_ssl.augment import weak_strong
from tff_ssl.encoders import projector
from tff_ssl.objectives import fixmatch
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
