"""FedCA's loss on linear networks, against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tests.losses import references
from tests.objectives import networks
from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import projector
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simclr as simclr_lib
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])
_TEMPERATURE, _BETA = 0.3, 0.7
_OWN = 1
_FILLED = np.array([[1, 1], [1, 0], [0, 0], [1, 0]], bool)


def _encode(ops, x):
  return ops.dense(ops.global_average_pool(x), 'dense0', units=4)


def _model() -> dual_encoder.Siamese:
  return dual_encoder.Siamese(
    network.Network('encoder', networks.SHAPE, _encode),
    projector.build_linear(4, 2, 'projector'),
    byol.by_name('byol'),
  )


def _objective(beta: float = _BETA) -> dictionary_contrast.FedCAObjective:
  settings = objectives.FedCA(temperature=_TEMPERATURE, alignment_weight=beta)
  return dictionary_contrast.FedCAObjective(_model(), settings)


def _context(filled=_FILLED):
  """Entries of four clients, whose unfilled ones must not be seen."""
  rows = np.random.default_rng(3).normal(size=(4, 2, 2))
  rows /= np.linalg.norm(rows, axis=2, keepdims=True)
  rows[~filled] = np.nan
  return collections.OrderedDict(
    [
      (dictionary_contrast.ROWS, tf.constant(rows)),
      (dictionary_contrast.FILLED, tf.constant(filled)),
      (dictionary_contrast.BASE, _model().encoder.init((5, 6), tf.float64)),
    ]
  )


def _batch(n=5):
  batch = networks.examples(n)
  batch[contextual.CLIENT] = np.full(n, _OWN, np.int32)
  return batch


def _loss(objective, params, context, batch):
  bound = objective.bind_context(context)
  return bound.loss(params, networks.tensors(batch), _SEED)


def _contrastive(objective, params, batch, negatives) -> float:
  """NT-Xent of the views, with the negatives in each denominator."""
  f, g = (
    networks.numpy_linear(
      params, 'projector', networks.numpy_linear(params, 'encoder', view)
    )
    for view in networks.numpy_views(objective.model, batch, _SEED)
  )
  return references.nt_xent(f, g, _TEMPERATURE, negatives)


def _alignment(params, context, batch) -> float:
  """Mean squared distance of unit features on the images as they are."""
  image = np.mean(batch['image'] / 255.0, axis=(1, 2))
  base = parameter_names.with_prefix(context[dictionary_contrast.BASE], 'encoder')
  own, other = (
    references.unit(networks.numpy_linear(p, 'encoder', image)) for p in (params, base)
  )
  return float(np.mean(np.sum((own - other) ** 2, axis=1)))


def test_the_loss_equals_numpy():
  objective, context, batch = _objective(), _context(), _batch()
  params = objective.init(_SEED, tf.float64)
  loss, metrics = _loss(objective, params, context, batch)
  rows = context[dictionary_contrast.ROWS].numpy()
  # Those of clients 0 and 3; client 1 is this one.
  negatives = np.stack([rows[0, 0], rows[0, 1], rows[3, 0]])
  contrast = _contrastive(objective, params, batch, negatives)
  distance = _alignment(params, context, batch)
  assert float(loss) == pytest.approx(contrast + _BETA * distance, rel=1e-6)
  summary = objective.summarize(metrics)
  assert list(summary) == ['contrastive', 'alignment', 'encoding_std', 'effective_rank']
  assert float(summary['contrastive']) == pytest.approx(contrast, rel=1e-6)
  assert float(summary['alignment']) == pytest.approx(distance, rel=1e-6)
  assert distance > 1e-3


def test_each_part_has_its_gradient_and_the_context_none():
  objective, context, batch = _objective(), _context(), _batch()
  params = objective.init(_SEED, tf.float64)
  with tf.GradientTape() as tape:
    tape.watch(
      (params, context[dictionary_contrast.BASE], context[dictionary_contrast.ROWS])
    )
    loss, _ = _loss(objective, params, context, batch)
  gradient, *fixed = tape.gradient(
    loss, (params, context[dictionary_contrast.BASE], context[dictionary_contrast.ROWS])
  )
  assert not any(x is not None for x in tf.nest.flatten(fixed))
  negatives = context[dictionary_contrast.ROWS].numpy()[_FILLED][[0, 1, 3]]
  arrays = {name: value.numpy() for name, value in params.items()}

  def by_hand(moved):
    contrastive = _contrastive(objective, moved, batch, negatives)
    return contrastive + _BETA * _alignment(moved, context, batch)

  for name, index in (('encoder/dense0/kernel', (1, 2)), ('encoder/dense0/bias', (3,))):
    slope = differences.slope(by_hand, arrays, name, index)
    assert gradient[name].numpy()[index] == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
  'filled', [np.zeros((4, 2), bool), np.array([[0, 0], [1, 1], [0, 0], [0, 0]], bool)]
)
def test_without_entries_of_others_and_alignment_it_is_simclr(filled):
  objective, batch = _objective(beta=0.0), _batch()
  params = objective.init(_SEED, tf.float64)
  loss, metrics = _loss(objective, params, _context(filled), batch)
  simclr = simclr_lib.SimclrObjective(
    _model(), objectives.Simclr(temperature=_TEMPERATURE)
  )
  expected, expected_metrics = simclr.loss(params, networks.tensors(batch), _SEED)
  assert float(loss) == pytest.approx(float(expected), rel=1e-14)
  assert list(metrics) == list(expected_metrics)
  for name, value in expected_metrics.items():
    np.testing.assert_array_equal(metrics[name], value)
  for name, value in simclr.init(_SEED).items():
    np.testing.assert_array_equal(objective.init(_SEED)[name], value)


def test_entries_are_unit_projections_of_images_as_they_are():
  objective, batch = _objective(), _batch()
  params = objective.init(_SEED, tf.float64)
  image = np.mean(batch['image'] / 255.0, axis=(1, 2))
  expected = networks.numpy_linear(
    params, 'projector', networks.numpy_linear(params, 'encoder', image)
  )
  got = objective.entries(params, networks.tensors(batch))
  np.testing.assert_allclose(got, references.unit(expected), rtol=1e-6)
